"""Scores -> weights.  (B,T) -> (B,T)"""

from torch import nn

from steadygaze.attend.softmax import Softmax
from steadygaze.attend.sparse import Entmax15, Sparsemax

ATTENTIONS: dict[str, type[nn.Module]] = {"softmax": Softmax, "sparsemax": Sparsemax, "entmax15": Entmax15}
