"""The heaviest words erased, or all others: what is predicted then?

DeYoung et al., ERASER, ACL 2020 (arXiv:1911.03429), §4: of a text of n words, ⌈q·n⌉ for each share q.  Of words that
weigh the same, as all those of a selected sentence do, the text's own chance says which comes first: by their places
it would be the first words of a sentence, which say least.

    removal    delete   the words are taken out and the text closes up
               pad      their id becomes that of padding; their places stay
               zero     their vectors become 0; their places stay

What is left of all texts of a batch at all sizes is gathered first.  Each different remainder is read once, as short
as it is, beside others of its length (bench/audit.py); one that is still the whole text is not read again.  Of memory
this takes what `max_tokens` allows, and some 60 bytes for each place of the batch, 2K times.

A word of several pieces is one unit: its pieces are weighed together and erased together.

Departs from the paper: nothing known.  Each text loses its own words, whatever its batch.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from steadygaze.audit.audit_config import Removal as Removal
from steadygaze.audit.probes.observation import Observation, observe
from steadygaze.core.maths.ranking import top_k
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import length_batches
from steadygaze.models.inference import BATCH, inference
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.perturbations.word_removal import delete_words, take_rows, text_key, trim_padding, units_of

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Shares of the words: ERASER's."""
ROUNDING = 1e-9
"""0.07 · 100 is 7 words, but 7.000000000000001 in doubles: more than they err by, and less than any share tells."""
LOTS = RandomKey(0).child(5)
"""Which of equal words comes first."""
ZEROED = -1
"""Stands for any token whose vector becomes 0."""


@dataclass(frozen=True)
class Erasure:
    """What is erased, and how."""

    shares: tuple[float, ...] = SHARES
    """Which parts of a text's words, K of them."""
    removal: Removal = "delete"
    """`zero` needs a model that has vectors."""
    max_tokens: int = 1 << 13
    """Of one forward pass, padding and questions included: this bounds the memory.  A longer text is read alone."""

    def __post_init__(self) -> None:
        if not all(0 <= share <= 1 for share in self.shares):
            raise ValueError(f"shares of a text's words are {self.shares}; each lies between 0 and 1")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens is {self.max_tokens}; a forward pass has at least 1")


ERASER = Erasure()


def erase_words(
    model: Model, batch: Batch, clean: Tensor, saliency: Tensor, how: Erasure = ERASER
) -> tuple[Tensor, Tensor]:
    """Probabilities without the heaviest words, and with these words alone; `clean` are those of the texts as they are.

    (B,C), (B,T) -> (B,K,C), (B,K,C)
    """
    gone = rationale_masks(batch, saliency, how.shares)  # (B,2K,T)
    found = clean.to(gone.device, torch.float64).unsqueeze(1).repeat(1, gone.shape[1], 1)
    rows, number = gone.any(-1).nonzero(as_tuple=True)  # (V,)
    if len(rows):
        rest = remaining_texts(take_rows(batch, rows), gone[rows, number], how.removal, model.padding)
        first, kind = distinct_texts(rest)
        found[rows, number] = _read(model, take_rows(rest, first), how)[kind]
    without, alone = found.chunk(2, 1)
    return without, alone


def rationale_masks(batch: Batch, saliency: Tensor, shares: tuple[float, ...]) -> Tensor:
    """The words that go: for each share the heaviest, then for each share all but those.  (B,T) -> (B,2K,T) bool

    A word of several tokens weighs what they weigh together, and goes whole.
    """
    units = units_of(batch, question=False)
    many = rationale_sizes(units.mask.sum(-1), shares)
    words = units.mask.unsqueeze(1).expand(-1, len(shares), -1)  # (B,K,U)
    weight = units.total(saliency).unsqueeze(1).expand_as(words)
    drawn = (
        LOTS.uniform(text_key(batch), words.shape[-1], dtype=torch.float64).argsort(-1).unsqueeze(1).expand_as(words)
    )
    dealt = top_k(weight.gather(-1, drawn), words.gather(-1, drawn), many)
    heaviest = torch.zeros_like(words).scatter(-1, drawn, dealt)
    tokens = [units.tokens(one) for one in heaviest.unbind(1)]
    return torch.stack([*tokens, *(batch.mask & ~one for one in tokens)], 1)


def rationale_sizes(words: Tensor, shares: tuple[float, ...]) -> Tensor:
    """⌈q·n⌉.  (B,) -> (B,K)"""
    sizes = torch.tensor(shares, dtype=torch.float64, device=words.device)
    return (words.unsqueeze(-1) * sizes - ROUNDING).ceil().long()


def remaining_texts(batch: Batch, gone: Tensor, removal: Removal, padding: int) -> Batch:
    """What is left of texts without these words.  (V,T)"""
    if removal == "delete":
        return delete_words(batch, gone)
    return replace(batch, ids=batch.ids.masked_fill(gone, ZEROED if removal == "zero" else padding))


def distinct_texts(rest: Batch) -> tuple[Tensor, Tensor]:
    """Where each kind of text comes first, and the kind of each: D kinds.  V -> (D,), (V,)"""
    key = text_key(replace(rest, ids=rest.ids * 2 + rest.mask))  # a special token is another than the word of its id
    if rest.question_ids is not None and rest.question_present is not None:
        there = rest.question_present
        key = key + RandomKey(2).scramble(text_key(Batch(rest.question_ids, there, there, rest.index)))
    # Of ten thousand texts that differ, two have the same 64 bits once in 10^11 times.
    kinds, kind = torch.unique(key, return_inverse=True)
    places = torch.arange(len(key), device=key.device)
    return torch.full_like(kinds, len(key)).scatter_reduce(0, kind, places, "amin"), kind


def _read(model: Model, rest: Batch, how: Erasure) -> Tensor:
    """D texts, those of like length together -> (D,C)"""
    see = _zeroed if how.removal == "zero" else observe
    order, parts = [], []
    for some, width in length_batches(rest.present.sum(-1), rest, how.max_tokens, BATCH):
        order.append(some)
        parts.append(see(model, trim_padding(take_rows(rest, some), width)).probs)
    return torch.cat(parts)[torch.cat(order).argsort()]


def _zeroed(model: Model, batch: Batch) -> Observation:
    zeroed = batch.ids == ZEROED
    batch = replace(batch, ids=batch.ids.masked_fill(zeroed, model.padding))
    with inference(model):
        embedded = model.embed(batch).masked_fill(zeroed.unsqueeze(-1), 0.0)
    return observe(model, batch, embedded)
