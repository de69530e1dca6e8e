"""Soft stability: do the top-weighted words carry the prediction when other words are added?

Jin et al. 2025 (arXiv:2504.13787); the equation is in measures/faithfulness_measures.py, the draws are in
probes/added_words.py.

    soft-stability    the rate with ⌈TOP·n⌉ words and at most ADDED others: the mean over texts

The certificate (certificates/soft_stability.py) computes the rate of each text with a bound.  The mean over texts needs
fewer draws: SAMPLES for each text and explainer, on a sample of the texts, in a thorough audit only.  The rate of
random words is reported beside those of the explainers: it is high where the words hardly matter.

NaN for a text of fewer than two words: no word can be added.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.types import Batch
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import row_chunks, take_rows, units_of
from steadygaze.properties.audit_case import (
    RANDOM,
    AuditCase,
    Finding,
    Rows,
    lacks,
    missing_findings,
    other_explainers,
    random_weights,
)
from steadygaze.properties.measures.faithfulness_measures import soft_stability as rate_of_same_class
from steadygaze.properties.probes.added_words import Additions, predict_extended, top_words
from steadygaze.properties.probes.erasure import Erasure, top_units
from steadygaze.results.note import NoteCode, note

TOP = 0.2
"""Share of the words that are selected."""
ADDED = 5
"""Largest number of added words."""
SAMPLES = 50
"""Sets of added words of a text."""
CELLS = 1 << 22
"""Tokens of the texts with added words that are in memory together."""
NAME = "soft-stability"


def soft_stability(case: AuditCase) -> Iterator[Finding]:
    removal = case.config.removal
    if removal == "zero" and "embeddings" not in case.model.capabilities:
        yield from missing_findings([NAME], lacks("embeddings"))
        return
    additions = Additions(ADDED, SAMPLES, RandomKey(case.config.seed).child(17))
    erasure = Erasure(removal=removal, max_tokens=case.runtime.max_tokens)
    settings: dict[str, str | int | float] = {"added": ADDED, "erase": removal, "samples": SAMPLES, "top": f"{TOP:.0%}"}
    for name in (RANDOM, *other_explainers(case)):

        def work(rows: Rows, batch: Batch, name: str = name) -> dict[str, Tensor]:
            key = text_key(batch)
            selected = selected_words(batch, random_weights(case, name, rows, batch), key, TOP)
            rates = stability_rates(case.model, batch, selected, key, additions, erasure)
            short = units_of(batch, question=False).mask.sum(-1) < 2
            return {key: value.double().masked_fill(short, torch.nan) for key, value in rates.items()}

        values = case.gather(added_task(name), work, case.sample)
        known = ~values["rate"].isnan()
        exact = int(values["exact"][known].sum())
        notes = (note(NoteCode.EXACT_RATES, exact=exact, texts=int(known.sum())),) if exact else ()
        yield Finding(NAME, values["rate"], name, settings, notes)


def added_task(name: str) -> str:
    return f"words added to those of {name}"


def selected_words(batch: Batch, saliency: Tensor, key: Tensor, top: float) -> Tensor:
    """The top-weighted words, a number or a share of them.  (B,T), (B,) -> (B,U) bool"""
    units = units_of(batch, question=False)
    counts = top_words(units, top).unsqueeze(-1)
    return top_units(key, units, units.total(saliency).unsqueeze(1), counts).squeeze(1)


def stability_rates(
    model: Model, batch: Batch, selected: Tensor, key: Tensor, additions: Additions, erasure: Erasure
) -> dict[str, Tensor]:
    """(B,) each: `rate`, `exact` (all sets are counted), `sets` (their number), `label` (of the selected words)."""
    parts: list[dict[str, Tensor]] = []
    for rows in row_chunks(batch, max(1, CELLS // (additions.samples * batch.ids.shape[1]))):
        predicted = predict_extended(model, take_rows(batch, rows), selected[rows], key[rows], additions, erasure)
        rate = rate_of_same_class(predicted.alone, predicted.extended, predicted.members)
        label = predicted.alone.argmax(-1)
        parts.append({"rate": rate, "exact": predicted.exact, "sets": predicted.members.sum(-1), "label": label})
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
