"""Faithfulness under permuted, adversarial and randomized attention.

    prediction-change/permuted    change of the prediction when the weights are permuted: the median of 100
                                  permutations.  Near 0: the prediction does not depend on the weights
    jensen-shannon/adversarial    the largest divergence of an attention that changes the prediction by at most 0.05.
                                  Near ln 2: other words would explain the prediction as well
    kendall/randomized            rank correlation with the explanation of a copy with permuted parameters: the mean of
                                  three copies.  Near 1: the explanation does not depend on what the model learned
    jensen-shannon/randomized     divergence from the explanation of the copy

NaN for a text of fewer than two words; a correlation needs three.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from steadygaze.audit.audit_case import (
    ONLY_RANDOM,
    AuditCase,
    Finding,
    Rows,
    missing_capability_reason,
    missing_findings,
    other_explainers,
    saliency_divergence,
)
from steadygaze.audit.measures import probe_names, stability_measures
from steadygaze.audit.probes.counterfactual_attention import (
    MAX_CHANGE,
    NUMBER,
    adversarial_attention,
    permuted_predictions,
    randomized_copy,
)
from steadygaze.core.maths.distributions import kendall
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import finite_weights
from steadygaze.models.classifier import Classifier, has_extension_points
from steadygaze.models.inference import MISSING_CAPABILITY, Model
from steadygaze.results.row import MeasureKey, ValueKey

RANDOMIZED = "randomized"
DRAWS = 3
"""Copies with random parameters."""
NO_PARAMETERS = "the model is a black box: its parameters cannot be randomized"


def attention_interventions(case: AuditCase) -> Iterator[Finding]:
    reason = missing_capability_reason(case)
    if has_extension_points(case.model) and not reason:
        yield from _counterfactual(case, case.model)
    else:
        yield from missing_findings(
            probe_names("permuted", "adversarial"), reason or MISSING_CAPABILITY["extension_points"]
        )
    explainers = other_explainers(case)
    black_box = next(case.model.parameters(), None) is None
    if black_box or not explainers:
        yield from missing_findings(probe_names(RANDOMIZED), NO_PARAMETERS if black_box else ONLY_RANDOM)
    else:
        yield from _randomized(case, explainers)


def _counterfactual(case: AuditCase, model: Classifier) -> Iterator[Finding]:
    key = RandomKey(case.config.seed)

    def permuted(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        before = case.probs[torch.from_numpy(rows)].to(batch.ids.device).unsqueeze(1)
        change = stability_measures.prediction_change(before, permuted_predictions(model, batch, key.child(8)))
        return {"permuted": _nan_below_two_words(change.quantile(0.5, dim=-1), batch)}

    def adversarial(_: Rows, batch: Batch) -> dict[str, Tensor]:
        distance = adversarial_attention(model, batch, key.child(9)).distance
        return {"adversarial": _nan_below_two_words(distance, batch)}

    values = case.gather("permuted attention", permuted)["permuted"]
    yield Finding("prediction-change/permuted", values, "attention", {"permutations": NUMBER})
    exact = model.has_linear_decoder and case.probs.shape[1] == 2
    rows = case.all_rows if exact else case.sample  # a search takes hundreds of steps
    values = case.gather("adversarial attention", adversarial, rows)["adversarial"]
    settings = {"within": MAX_CHANGE, "solver": "exact" if exact else "search"}
    yield Finding("jensen-shannon/adversarial", values, "attention", settings)


def _nan_below_two_words(values: Tensor, batch: Batch) -> Tensor:
    return values.masked_fill(batch.mask.sum(-1) < 2, torch.nan)


def _randomized(case: AuditCase, names: list[str]) -> Iterator[Finding]:
    draws: list[dict[ValueKey, Tensor]] = []
    for draw in range(DRAWS):
        randomized = randomized_copy(case.model, RandomKey(case.config.seed).child(10, draw))
        draws.append({key: value for name in names for key, value in _compare(case, name, randomized, draw).items()})
        del randomized  # one copy at a time
    for key in draws[0]:
        values = torch.stack([scores[key] for scores in draws]).nanmean(0)
        yield Finding(str(key.measure), values, key.explainer, {"draws": DRAWS})


def _compare(case: AuditCase, name: str, randomized: Model, draw: int) -> dict[ValueKey, Tensor]:
    explainer, saliency = case.explainers[name], case.saliency(name)

    def work(rows: Rows, batch: Batch) -> dict[ValueKey, Tensor]:
        label = case.probs[torch.from_numpy(rows)].argmax(-1).to(batch.ids.device) if explainer.class_specific else None
        after = finite_weights(explainer.explain(randomized, batch, label), batch)
        before = case.gather_rows(saliency, rows, batch)
        divergence = _nan_below_two_words(saliency_divergence(before, after, batch.mask), batch)
        return {
            ValueKey(MeasureKey("kendall", RANDOMIZED), name): kendall(before, after, batch.mask),
            ValueKey(MeasureKey("jensen-shannon", RANDOMIZED), name): divergence,
        }

    return case.gather(randomized_task(name, draw), work, case.rows(name))


def randomized_task(name: str, draw: int) -> str:
    return f"{name} of a randomized model, {draw + 1} of {DRAWS}"
