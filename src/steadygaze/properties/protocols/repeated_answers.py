"""Repeated answers: the same texts, explained twice by answers of a noisy black box.

    weight-correlation/repeated …  two explanations of a text, each from answers of its own
    label-flip/repeated …          two predictions for a text

These texts have not changed: a difference from `Measure.identical` is noise of the answers, and part of every shift
under a perturbation.  Only models that `QueryNoise` calls noisy are asked again, with at most TEXTS texts.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import finite_weights
from steadygaze.properties.audit_case import AuditCase, Finding, Rows
from steadygaze.properties.measures import stability_measures
from steadygaze.properties.measures.measure import REPEATED, measures_of
from steadygaze.properties.probes.text_perturbations import observe
from steadygaze.results.row import MeasureKey, ValueKey

TEXTS = 20
"""Texts that are explained twice."""
DRAW = 3
"""Draw of the second answers; the check of the noise uses those before it."""
OF_SHIFT = measures_of("shift", stability_measures.MEASURES, REPEATED)
OF_PREDICTIONS = measures_of("predictions", stability_measures.MEASURES, REPEATED)
REPEATED_ROWS = tuple(str(MeasureKey(name, REPEATED)) for name in (*OF_SHIFT, *OF_PREDICTIONS))


def repeated_answers(case: AuditCase) -> Iterator[Finding]:
    if case.noise is None or not case.noise.is_noisy:
        return
    rows = case.sample[:TEXTS]
    scores = case.gather("repeated answers", lambda r, b: _scores(case, r, b), rows)
    for key, values in scores.items():
        settings = {"k": case.config.k} if key.measure.measure == "top-k-overlap" else {}
        yield Finding(str(key.measure), values, key.explainer, settings)


def _scores(case: AuditCase, rows: Rows, batch: Batch) -> dict[ValueKey, Tensor]:
    before = case.probs[torch.from_numpy(rows)].to(batch.ids.device)
    first = {name: case.gather_rows(case.saliency(name), rows, batch) for name in case.explainers}
    label, too_short, scores = before.argmax(-1), batch.mask.sum(-1) < 2, {}
    with case.model.redrawn(DRAW):
        after = observe(case.model, batch).probs
        for name, explainer in case.explainers.items():
            again = explainer.explain(case.model, batch, label if explainer.class_specific else None)
            values = {"x": first[name], "y": finite_weights(again, batch), "mask": batch.mask, "k": case.config.k}
            for measure, of in OF_SHIFT.items():
                scores[ValueKey(MeasureKey(measure, REPEATED), name)] = of.score(values).masked_fill(
                    too_short, torch.nan
                )
    for measure, of in OF_PREDICTIONS.items():
        scores[ValueKey(MeasureKey(measure, REPEATED))] = of.score({"p": before, "q": after})
    return scores
