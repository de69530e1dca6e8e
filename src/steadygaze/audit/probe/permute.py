"""The attention weights of each text dealt out anew among its words: does the prediction notice?

Jain & Wallace 2019 (arXiv:1902.10186), §4.2.1: of a hundred permutations π, the prediction under w_π(1) … w_π(n).  If
it stays the same whichever word gets which weight, the weights do not say what the prediction rests on.

Only words change places: padding and special tokens keep their 0.  Which permutations is the text's own chance.

Departs from the paper: nothing known.  Pinned by tests/audit/probe/test_permute.py.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from steadygaze.audit.probe.held import hold
from steadygaze.infer import inference
from steadygaze.maths.chance import Chance
from steadygaze.model import Classifier
from steadygaze.perturb.texts import text_key
from steadygaze.types import Batch

NUMBER = 100
"""Permutations: the paper's."""
CHUNK = 20
"""Permutations at once: 65,536 tokens, a large batch, are then 10 MB of doubles."""


def permuted(model: Classifier, batch: Batch, chance: Chance, number: int = NUMBER) -> Tensor:
    """Probabilities under each permutation.  (B,number,C)"""
    held = hold(model, batch)
    with inference(model):
        return torch.cat([held.read(some) for some in _dealt(held.weights, batch, chance, number)], 1)


def _dealt(weights: Tensor, batch: Batch, chance: Chance, number: int) -> Iterator[Tensor]:
    """The weights in other orders, some at a time.  (B,T) -> (B,K,T)"""
    key, width = text_key(batch), batch.ids.shape[1]
    outside = ~batch.mask.unsqueeze(1)  # (B,1,T)
    reading = outside.to(torch.uint8).argsort(dim=-1, stable=True)  # the words in their order, then the rest
    for start in range(0, number, CHUNK):
        many = min(CHUNK, number - start)
        drawn = chance.child(start).uniform(key, width, many, dtype=torch.float64).transpose(1, 2)
        order = drawn.masked_fill(outside, 2.0).argsort(dim=-1)  # the words in a random order, then the rest
        moved = weights.unsqueeze(1).expand_as(drawn).gather(-1, order)
        yield torch.zeros_like(moved).scatter(-1, reading.expand_as(order), moved)
