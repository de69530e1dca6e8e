"""Scores -> weights.  (B,T) -> (B,T)"""

from torch import nn

from steadygaze.attend.softmax import Softmax
from steadygaze.attend.sparse import Entmax15, Sparsemax
from steadygaze.attend.uniform import Uniform

ATTENTIONS: dict[str, type[nn.Module]] = {
    "softmax": Softmax,
    "sparsemax": Sparsemax,
    "entmax15": Entmax15,
    "uniform": Uniform,
}
