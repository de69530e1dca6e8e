"""Ids -> hidden states.  (B,T) -> (B,T,H)"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import nn

from steadygaze.models.encoders.word_encoders import Average, Convolutional, Recurrent

TRANSFORMER = "transformer:"
"""Prefix of an encoder that is a Hugging Face model: a hub id, a folder, or `minilm`."""


@dataclass(frozen=True)
class Tower:
    about: str
    make: Callable[[int, int], nn.Module]
    """From the size of a word vector and the hidden size."""


ENCODERS: dict[str, Tower] = {
    "rnn": Tower("tanh recurrent network, one direction", partial(Recurrent, "rnn", both=False)),
    "gru": Tower("gated recurrent units, one direction", partial(Recurrent, "gru", both=False)),
    "bigru": Tower("gated recurrent units, both directions", partial(Recurrent, "gru", both=True)),
    "lstm": Tower("long short-term memory, one direction", partial(Recurrent, "lstm", both=False)),
    "bilstm": Tower("long short-term memory, both directions", partial(Recurrent, "lstm", both=True)),
    "cnn": Tower("convolutions over 1, 3, 5 and 7 words", Convolutional),
    "average": Tower("each word by itself, without context", Average),
}
