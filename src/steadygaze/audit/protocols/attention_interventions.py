"""Does it matter to the prediction?  Other weights in place of the model's own, and a model that has learnt nothing.

    prediction-change/permuted    how far the prediction moves when the weights change places: the median of a hundred
                                  permutations.  Near 0: which word has which weight is nothing to it
    jensen-shannon/adversarial    how far another attention can be from its own without the prediction moving by more
                                  than 0.05.  Near ln 2: the words highlighted are not the only ones that would do
    kendall/randomised            whether a copy with its parameters dealt out anew puts the words in the same order:
                                  the mean of three copies.  Near 1: the explanation is not about what was learnt
    jensen-shannon/randomised     how far the copy's explanation is from its own

NaN in a text of fewer than two words, which has no other attention; a correlation needs three.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from steadygaze.audit.audit_case import AuditCase, Rows, other_explainers, saliency_divergence
from steadygaze.audit.finding import ONLY_RANDOM, Finding, missing_capability_reason, missing_findings
from steadygaze.audit.measure_names import probe_names
from steadygaze.audit.measures import faithfulness_measures, stability_measures
from steadygaze.audit.probes.counterfactual_attention import (
    ALLOWED,
    NUMBER,
    adversarial_attention,
    permuted_predictions,
    randomized_copy,
)
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import finite_weights
from steadygaze.models.attention_layers import Linear
from steadygaze.models.classifier import Classifier
from steadygaze.models.model_protocol import MISSING_CAPABILITY, Model

DRAWS = 3
"""Copies with random parameters."""
CLOSED = "the model is a black box: its parameters cannot be dealt out anew"


def attention_interventions(case: AuditCase) -> Iterator[Finding]:
    why = missing_capability_reason(case)
    if isinstance(case.model, Classifier) and not why:
        yield from _reweighed(case, case.model)
    else:
        yield from missing_findings(
            probe_names("permuted", "adversarial"), why or MISSING_CAPABILITY["extension_points"]
        )
    asked = other_explainers(case)
    closed = next(case.model.parameters(), None) is None
    if closed or not asked:
        yield from missing_findings(probe_names("randomised"), CLOSED if closed else ONLY_RANDOM)
    else:
        yield from _randomised(case, asked)


def _reweighed(case: AuditCase, model: Classifier) -> Iterator[Finding]:
    chance = RandomKey(case.plan.seed)

    def shuffled(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        before = case.probs[torch.from_numpy(rows)].to(batch.ids.device).unsqueeze(1)
        moved = stability_measures.prediction_change(before, permuted_predictions(model, batch, chance.child(8)))
        return {"permuted": _of_several(moved.quantile(0.5, dim=-1), batch)}

    def attacked(_: Rows, batch: Batch) -> dict[str, Tensor]:
        return {"adversarial": _of_several(adversarial_attention(model, batch, chance.child(9)).distance, batch)}

    found = case.gather("weights permuted", shuffled)["permuted"]
    yield Finding("prediction-change/permuted", found, "attention", {"permutations": NUMBER})
    exact = isinstance(model.decoder, Linear) and case.probs.shape[1] == 2
    rows = case.all_rows if exact else case.sample  # a search takes hundreds of steps
    found = case.gather("adversarial attention", attacked, rows)["adversarial"]
    how = {"within": ALLOWED, "solver": "exact" if exact else "search"}
    yield Finding("jensen-shannon/adversarial", found, "attention", how)


def _of_several(values: Tensor, batch: Batch) -> Tensor:
    return values.masked_fill(batch.mask.sum(-1) < 2, torch.nan)


def _randomised(case: AuditCase, names: list[str]) -> Iterator[Finding]:
    draws: list[dict[str, Tensor]] = []
    for draw in range(DRAWS):
        other = randomized_copy(case.model, RandomKey(case.plan.seed).child(10, draw))
        draws.append({key: value for name in names for key, value in _compared(case, name, other, draw).items()})
        del other  # one copy at a time
    for key in draws[0]:
        measure, _, name = key.partition("|")
        values = torch.stack([one[key] for one in draws]).nanmean(0)
        yield Finding(f"{measure}/randomised", values, name, {"draws": DRAWS})


def _compared(case: AuditCase, name: str, other: Model, draw: int) -> dict[str, Tensor]:
    explainer, own = case.explainers[name], case.saliency(name)

    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        label = case.probs[torch.from_numpy(rows)].argmax(-1).to(batch.ids.device) if explainer.class_specific else None
        said = finite_weights(explainer.explain(other, batch, label), batch)
        before = case.gather_rows(own, rows, batch)
        far = _of_several(saliency_divergence(before, said, batch.mask), batch)
        return {
            f"kendall|{name}": faithfulness_measures.kendall(before, said, batch.mask),
            f"jensen-shannon|{name}": far,
        }

    return case.gather(f"{name} of a random model, {draw + 1} of {DRAWS}", work, case.rows(name))
