"""Ids -> hidden states.  (B,T) -> (B,T,H)"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import nn

from steadygaze.models.encoders.word_encoders import Average, Convolutional, Recurrent

TRANSFORMER = "transformer:"
"""Prefix of an encoder that is a Hugging Face model: a hub id, a folder, or `minilm`."""


@dataclass(frozen=True)
class EncoderEntry:
    about: str
    make: Callable[[int, int], nn.Module]
    """Maps the size of a word vector and the hidden size to a tower."""


ENCODERS: dict[str, EncoderEntry] = {
    "rnn": EncoderEntry("tanh recurrent network, one direction", partial(Recurrent, "rnn", both=False)),
    "gru": EncoderEntry("gated recurrent units, one direction", partial(Recurrent, "gru", both=False)),
    "bigru": EncoderEntry("gated recurrent units, both directions", partial(Recurrent, "gru", both=True)),
    "lstm": EncoderEntry("long short-term memory, one direction", partial(Recurrent, "lstm", both=False)),
    "bilstm": EncoderEntry("long short-term memory, both directions", partial(Recurrent, "lstm", both=True)),
    "cnn": EncoderEntry("convolutions over 1, 3, 5 and 7 words", Convolutional),
    "average": EncoderEntry("each word separately, without context", Average),
}
