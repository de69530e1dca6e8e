"""Rewording: a share of the words of each text is substituted by synonyms, and the others keep their weights or not.

    weight-correlation/reworded       SHARE of the words, drawn at random
    weight-correlation/reworded-top   as many, those whose weights are farthest from the median of the text
    label-flip/reworded               how often the model changes its label: its own instability

⌈SHARE · n⌉ words of a text of n words; texts with fewer words that have a synonym are left out.  The subword tokens of
a word count as one: their weights are summed.  The explained class is the one predicted for the original text.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import finite_weights
from steadygaze.perturbations.word_removal import Units, units_of
from steadygaze.perturbations.word_substitution import Synonyms, substitute_top_words
from steadygaze.properties.audit_case import AuditCase, Finding, Rows, missing_findings
from steadygaze.properties.measures.measure import REWORDED
from steadygaze.properties.measures.stability_measures import label_flip, weight_correlation
from steadygaze.properties.probes.erasure import rationale_sizes
from steadygaze.properties.probes.text_perturbations import observe, table_origin
from steadygaze.results.note import Note, NoteCode, note

SHARE = 0.1
"""Share of the words of a text that are substituted."""
REWORDED_TEXTS = "reworded texts"
FLIP = "label-flip/reworded"
REWORDING_ROWS = (*(f"weight-correlation/{condition}" for condition in REWORDED), FLIP)


def rewording(case: AuditCase) -> Iterator[Finding]:
    if not case.substitutions:
        yield from missing_findings(REWORDING_ROWS, Note(NoteCode.NO_SYNONYM_TABLE))
        return
    synonyms, _ = next(iter(case.substitutions.values()))
    settings: dict[str, str | int | float] = {"synonyms": table_origin(synonyms), "share": SHARE}
    flips = case.gather(REWORDED_TEXTS, partial(_flips, case, synonyms))["flips"]
    yield Finding(FLIP, flips, settings=settings, notes=_left_out(flips, len(case)))
    for name in case.explainers:
        rows = case.rows(name)
        scores = case.gather(rewording_task(name), partial(_correlations, case, synonyms, name), rows)
        for condition, values in scores.items():
            yield Finding(
                f"weight-correlation/{condition}",
                values,
                name,
                settings,
                _left_out(values[torch.from_numpy(rows)], len(rows)),
            )


def rewording_task(name: str) -> str:
    return f"{name} of reworded texts"


def _left_out(values: Tensor, texts: int) -> tuple[Note, ...]:
    left = int(values.isnan().sum())
    return (note(NoteCode.LEFT_OUT_WITHOUT_SYNONYMS, left=left, texts=texts),) if left else ()


def _reworded(case: AuditCase, synonyms: Synonyms, batch: Batch, scores: Tensor) -> tuple[Batch, Tensor]:
    """The batch with synonyms for the words with the largest scores, and whether each text has enough of them."""
    table, key = synonyms.to(batch.ids.device), RandomKey(case.config.seed).child(17)
    words = units_of(batch, question=False).mask.sum(-1)
    number = rationale_sizes(words, (SHARE,)).squeeze(-1)
    ids = substitute_top_words(batch.ids, batch.mask, table, key, text_key(batch), scores=scores, number=number)
    return replace(batch, ids=ids), (table.swappable(batch.ids, batch.mask).sum(-1) >= number) & (words > 0)


def _random_scores(case: AuditCase, batch: Batch) -> Tensor:
    return RandomKey(case.config.seed).child(18).uniform(text_key(batch), batch.ids.shape[1], dtype=torch.float64)


def _flips(case: AuditCase, synonyms: Synonyms, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    reworded, enough = _reworded(case, synonyms, batch, _random_scores(case, batch))
    before = case.probs[torch.from_numpy(rows)].to(batch.ids.device)
    return {"flips": label_flip(before, observe(case.model, reworded).probs).masked_fill(~enough, torch.nan)}


def _prominence(weights: Tensor, units: Units) -> Tensor:
    """Distance of the weight of each word from the median of its text, on its first token.  (B,T) -> (B,T)"""
    of_words = units.total(weights).masked_fill(~units.mask, torch.nan)
    distance = (of_words - of_words.nanquantile(0.5, dim=-1, keepdim=True)).abs().nan_to_num(0.0)
    return units.on_first(distance)


def _correlations(case: AuditCase, synonyms: Synonyms, name: str, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    explainer, before = case.explainers[name], case.gather_rows(case.saliency(name), rows, batch)
    label = case.probs[torch.from_numpy(rows)].argmax(-1).to(batch.ids.device)
    units = units_of(batch, question=False)
    scores = {}
    for condition, order in zip(REWORDED, (_random_scores(case, batch), _prominence(before, units)), strict=True):
        reworded, enough = _reworded(case, synonyms, batch, order)
        after = explainer.explain(case.model, reworded, label if explainer.class_specific else None)
        weights = finite_weights(after, reworded)
        values = weight_correlation(units.total(before), units.total(weights), units.mask)
        scores[condition] = values.masked_fill(~enough, torch.nan)
    return scores
