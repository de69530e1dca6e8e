"""Faithfulness on a scale with two ends: 0 for shuffled weights, 1 for the best order of words that is known.

    comprehensiveness/relative          the drop without the top-weighted words
    comprehensiveness/relative-filled   the same, with words of other texts in their place
    sufficiency/relative                the probability that the top-weighted words keep alone
    sufficiency/relative-filled         the same, with words of other texts in place of the others

    score = Σ (own − shuffled) / Σ (best − shuffled)        sums over texts, means over the sizes of the erasure

shuffled: DRAWS random orders of the words, one for each size of removal and of replacement.  best: the largest of the
own score and those of `best_orders`, and for removal in a thorough audit of a beam search.  The scale of the
prediction, the number of classes and the length of the texts cancel out.

In short texts both ends of removal are exact: the mean and the maximum over all orders of the words
(probes/subset_predictions.py).  Those of replacement are not: a maximum over many orders knows the new words, which no
explanation does: exact weights of a sum of words reached 0.67 of it.

The scores of removal that `erasure` has are not computed again.

An explainer that deletes words agrees with itself in the first row; it has no such advantage in the others.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from steadygaze.core.maths.subsets import best_order, mean_order
from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.types import Batch
from steadygaze.perturbations.word_removal import units_of
from steadygaze.properties.audit_case import (
    ONLY_RANDOM,
    AuditCase,
    Finding,
    Rows,
    lacks,
    missing_findings,
    other_explainers,
)
from steadygaze.properties.measures.faithfulness_measures import RELATIVE_ROWS
from steadygaze.properties.probes.beam_search import WIDTH, searched_orders
from steadygaze.properties.probes.erasure import SHARES, Erasure, erase_words
from steadygaze.properties.probes.subset_predictions import FEWEST_WORDS, size_coefficients
from steadygaze.properties.protocols.faithfulness import erasure_caveat
from steadygaze.results.note import Note, NoteCode

DRAWS = 10
"""Random orders of the words of a text."""
ORDERS = 2, 1
"""Good orders that are scored by removal, and by replacement, in texts whose orders are not searched."""
TASK = "orders of words"
REMOVED, FILLED = ("comprehensiveness/relative", "sufficiency/relative"), RELATIVE_ROWS[2:]
ALONE = Note(NoteCode.NO_OTHER_TEXTS)


def relative_erasure(case: AuditCase) -> Iterator[Finding]:
    names = other_explainers(case)
    if not names:
        yield from missing_findings(RELATIVE_ROWS, ONLY_RANDOM)
        return
    if case.config.removal == "zero" and "embeddings" not in case.model.capabilities:
        yield from missing_findings(RELATIVE_ROWS, lacks("embeddings"))
        return
    fill = len(case) > 1
    replacements = case.fillers if fill else None
    work = partial(_scores, case, names, replacements)
    scores = case.gather(TASK, work, case.sample)  # name -> (N,2K)
    exact = _mean_orders(case)
    scores[SHUFFLED][:, : len(REMOVED)] = torch.where(exact.isnan(), scores[SHUFFLED][:, : len(REMOVED)], exact)
    settings: dict[str, str | int | float] = {"draws": DRAWS, "enumerated": case.most_enumerated}
    settings |= {"beam": WIDTH} if case.config.thorough else {}
    filler = {} if case.filled is None else {"filler": case.filled[0]}
    for name in names:
        for index, row in enumerate(RELATIVE_ROWS if fill else REMOVED):
            own, floor, best = scores[name][:, index], scores[SHUFFLED][:, index], scores[BEST][:, index]
            known = exact[:, index].isfinite() & own.isfinite() if row in REMOVED else torch.zeros(0)
            yield Finding(
                row,
                own,
                name,
                settings if row in REMOVED else settings | filler,
                caveat=erasure_caveat(case, name) if row in REMOVED else None,
                exact=int(known.sum()),
                floor=floor,
                best=torch.maximum(own, best),
            )
    if not fill:
        yield from missing_findings(FILLED, ALONE)


SHUFFLED, BEST = "shuffled words", "best words"


def _scores(
    case: AuditCase, names: list[str], replacements: Tensor | None, rows: Rows, batch: Batch
) -> dict[str, Tensor]:
    """Explainer, SHUFFLED or BEST -> the scores under RELATIVE_ROWS.  (B,4) or (B,2)"""
    full = case.probs[torch.from_numpy(rows)].to(batch.ids.device)
    drops, both = (case.gather_rows(order, rows, batch) for order in case.best_orders)
    searched = _searched_orders(case, rows, batch, full, both)
    own = {name: case.gather_rows(case.saliency(name), rows, batch) for name in names}
    shared = {name: case.erased[name][torch.from_numpy(rows)].to(full) for name in names if name in case.erased}
    new = [order for name, order in own.items() if name not in shared]
    removed = _of_orders(case, batch, full, [*new, _random_orders(case, batch, 0), drops, both, *searched], None)
    computed = iter(removed.unbind(1))
    rated = [shared[name] if name in shared else next(computed) for name in names]
    scores = [torch.stack([*rated, *computed], 1)]
    if replacements is not None:
        orders = [*own.values(), _random_orders(case, batch, 1), both]
        scores.append(_of_orders(case, batch, full, orders, case.gather_rows(replacements, rows, batch)))
    short = (batch.mask.sum(-1) < 2).unsqueeze(-1)
    values = {name: torch.cat([part[:, index] for part in scores], -1) for index, name in enumerate((*names, SHUFFLED))}
    values[BEST] = torch.cat([part[:, len(names) + 1 :].amax(1) for part in scores], -1)
    return {name: value.masked_fill(short, torch.nan) for name, value in values.items()}


def _mean_orders(case: AuditCase) -> Tensor:
    """The scores of removal over all orders of the words of short texts; NaN for others.  (N,2)"""
    table = case.subset_probabilities
    means = torch.full((len(case), 2), torch.nan, dtype=torch.float64)
    for words, rows in _short(case, case.all_rows):
        for column, values in enumerate(lost_and_kept(table[rows, : 1 << words])):
            means[rows, column] = mean_order(values, size_coefficients(words, SHARES))
    return means


def _searched_orders(case: AuditCase, rows: Rows, batch: Batch, full: Tensor, otherwise: Tensor) -> list[Tensor]:
    """The orders whose first words lose most, and keep most: of all in short texts, by a search in thorough audits.

    (B,C), (B,T) -> two (B,T); `otherwise` in other texts
    """
    units = units_of(batch, question=False)
    weights = units.total(otherwise).unsqueeze(1).repeat(1, 2, 1)
    if case.config.thorough:
        erasure = Erasure(SHARES, case.config.removal, case.runtime.max_tokens)
        searched = searched_orders(case.model, batch, full, weights[:, 0], erasure)
        weights = torch.where(searched.isnan().all(-1, keepdim=True), weights, searched.nan_to_num(0.0))
    table = case.subset_probabilities[torch.from_numpy(rows)]
    for words, short in _short(case, rows):
        for column, values in enumerate(lost_and_kept(table[short, : 1 << words])):
            _, order = best_order(values, size_coefficients(words, SHARES))
            weights[short, column] = 0.0
            weights[short, column, :words] = order.to(weights.device)
    return [units.on_first(order) for order in weights.unbind(1)]


def _short(case: AuditCase, rows: Rows) -> Iterator[tuple[int, Tensor]]:
    """Number of words -> which of these texts have as many, and are enumerated."""
    counts, known = (values[torch.from_numpy(rows)] for values in (case.words, case.subset_probabilities[:, 0]))
    for words in range(FEWEST_WORDS, case.most_enumerated + 1):
        same = ((counts == words) & known.isfinite()).nonzero().squeeze(-1)
        if len(same):
            yield words, same


def lost_and_kept(kept: Tensor) -> tuple[Tensor, Tensor]:
    """What a prediction loses without each subset of words, and keeps with it alone.  (R,2ⁿ) -> (R,2ⁿ), (R,2ⁿ)"""
    return kept[:, -1:] - kept.flip(-1), kept


def _of_orders(case: AuditCase, batch: Batch, full: Tensor, orders: list[Tensor], filled: Tensor | None) -> Tensor:
    """Drop without the top-weighted words, and probability of these alone, as means over the sizes.  (B,O,2)

    All orders share one call: texts that several of them leave are predicted once.
    """
    shares = SHARES * len(orders)
    by_size = [order if order.dim() == 3 else order.unsqueeze(1).expand(-1, len(SHARES), -1) for order in orders]
    erasure = Erasure(shares, case.config.removal, case.runtime.max_tokens)
    predicted = full.argmax(-1).view(-1, 1, 1).expand(-1, len(shares), 1)
    without, alone = (
        probs.gather(-1, predicted).view(len(batch), len(orders), len(SHARES)).mean(-1)
        for probs in erase_words(case.model, batch, full, torch.cat(by_size, 1), erasure, filled)
    )
    return torch.stack([full.amax(-1, keepdim=True) - without, alone], -1)


def _random_orders(case: AuditCase, batch: Batch, draw: int) -> Tensor:
    """A random order of the words for each size.  (B,K,T)"""
    key = RandomKey(case.config.seed).child(16, draw)
    drawn = [
        key.child(size).uniform(text_key(batch), batch.ids.shape[1], dtype=torch.float64) for size in range(len(SHARES))
    ]
    return torch.stack(drawn, 1)
