"""SHA-256 of what a number depends on, for its signature."""

import hashlib
import json
from collections.abc import Sequence

import torch

from steadygaze.perturb.words import Synonyms
from steadygaze.types import Example


def fingerprint(examples: Sequence[Example]) -> str:
    """Of everything in them, in order."""
    digest = hashlib.sha256()
    for one in examples:
        digest.update(json.dumps([one.text, one.question, one.label, one.evidence, one.sentences]).encode())
    return digest.hexdigest()


def origin(synonyms: Synonyms) -> str:
    """Which words may stand for which: the digest of a table.

    >>> table, one = torch.tensor([[0, 0], [2, 0], [1, 0]]), torch.tensor([0, 1, 1])
    >>> origin(Synonyms(table, one, torch.zeros(3, dtype=torch.bool)))[:6]
    'table-'
    >>> origin(Synonyms(table, one, torch.zeros(3, dtype=torch.bool), origin="none"))
    'none'
    """
    if synonyms.origin != "table":
        return synonyms.origin
    table, count = synonyms.table.cpu(), synonyms.count.cpu()
    told = table.masked_fill(torch.arange(table.shape[1]) >= count.unsqueeze(-1), -1)
    return f"table-{hashlib.sha256(told.contiguous().numpy().tobytes()).hexdigest()[:12]}"
