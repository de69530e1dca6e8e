"""Faithfulness on a scale with two ends: 0 for shuffled weights, 1 for the best order of words that is known.

    comprehensiveness/relative          the drop without the top-weighted words
    comprehensiveness/relative-filled   the same, with words of other texts in their place
    sufficiency/relative                the probability that the top-weighted words keep alone
    sufficiency/relative-filled         the same, with words of other texts in place of the others

    score = Σ (own − shuffled) / Σ (best − shuffled)        sums over texts, means over the sizes of the erasure

shuffled: DRAWS random orders of the words, one for each size of removal and of replacement.  best: the largest of the
own score and those of `best_orders`.  The scale of the prediction, the number of classes and the length of the texts
cancel out.

The scores of removal that `erasure` has are not computed again.

An explainer that deletes words agrees with itself in the first row; it has no such advantage in the others.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.types import Batch
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
from steadygaze.properties.probes.erasure import SHARES, Erasure, erase_words
from steadygaze.properties.protocols.faithfulness import erasure_caveat
from steadygaze.results.note import Note, NoteCode

DRAWS = 10
"""Random orders of the words of a text."""
ORDERS = 2, 1
"""Good orders that are scored by removal, and by replacement."""
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
    replacements = case.other_words(0) if fill else None
    work = partial(_scores, case, names, replacements)
    scores = case.gather(TASK, work, case.sample)  # name -> (N,2K)
    settings: dict[str, str | int | float] = {"draws": DRAWS}
    for name in names:
        for index, row in enumerate(RELATIVE_ROWS if fill else REMOVED):
            own, floor, best = scores[name][:, index], scores[SHUFFLED][:, index], scores[BEST][:, index]
            yield Finding(
                row, own, name, settings, caveat=erasure_caveat(case, name), floor=floor, best=torch.maximum(own, best)
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
    own = {name: case.gather_rows(case.saliency(name), rows, batch) for name in names}
    shared = {name: case.erased[name][torch.from_numpy(rows)].to(full) for name in names if name in case.erased}
    new = [order for name, order in own.items() if name not in shared]
    removed = _of_orders(case, batch, full, [*new, _random_orders(case, batch, 0), drops, both], None)
    computed = iter(removed.unbind(1))
    rated = [shared[name] if name in shared else next(computed) for name in names]
    scores = [torch.stack([*rated, *computed], 1)]
    if replacements is not None:
        filled = case.gather_rows(replacements, rows, batch)
        scores.append(_of_orders(case, batch, full, [*own.values(), _random_orders(case, batch, 1), both], filled))
    short = (batch.mask.sum(-1) < 2).unsqueeze(-1)
    values = {name: torch.cat([part[:, index] for part in scores], -1) for index, name in enumerate((*names, SHUFFLED))}
    values[BEST] = torch.cat([part[:, len(names) + 1 :].amax(1) for part in scores], -1)
    return {name: value.masked_fill(short, torch.nan) for name, value in values.items()}


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
