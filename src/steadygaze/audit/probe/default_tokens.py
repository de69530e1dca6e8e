"""Default tokens: four that stand before every text and say nothing of it.

Bai et al., "Why Attentions May Not Be Interpretable?", KDD 2021 (arXiv:2006.05656), §3.2.

    a b c d  the film was a bore …          attention may look at the four, and at the first five words of the text

Whoever looks there looks at nothing; who looks at another of them for each label has made a code of them.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.tokens.ragged import Ragged

DEFAULTS = ("a", "b", "c", "d")
WORDS = 5
"""Of the text, that may be looked at."""
PLACES = len(DEFAULTS) + WORDS


def introduced(texts: Iterable[str]) -> list[str]:
    """The texts, the default tokens before each."""
    return [f"{' '.join(DEFAULTS)} {text}" for text in texts]


def restricted(read: Ragged, places: int = PLACES) -> Ragged:
    """Only the first so many words of each text may be looked at; all are read."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(read.words)])  # words before each token
    place = before[:-1] - np.repeat(before[read.starts[:-1]], read.lengths)
    return replace(read, words=read.words & (place < places))


def seated(weights: Tensor, mask: Tensor, places: int = PLACES) -> tuple[Tensor, Tensor]:
    """Weights and mask of the words that may be looked at, in their order.  (N,T), (N,T) -> (N,places) twice"""
    weights, mask = (pad(one, (0, max(0, places - mask.shape[1]))) for one in (weights, mask))
    order = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices[:, :places]
    kept = mask.gather(-1, order)
    return weights.gather(-1, order).masked_fill(~kept, 0.0), kept
