"""Does it matter to the prediction?  The words it points at are taken away, or left alone: what becomes of the label?

    comprehensiveness              what the predicted class loses without the heaviest words
    comprehensiveness/above-random the same, minus what it loses without as many words drawn at random
    sufficiency                    what it loses when they alone are left
    pearson/gradient, kendall/...  whether the gradient points at the same words

The random yardstick is drawn anew for every text, and the same for all explanations of it.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from steadygaze.audit.case import Case, Rows
from steadygaze.audit.finding import Finding
from steadygaze.audit.measure import agreement, erasure
from steadygaze.audit.probe.erase import without
from steadygaze.audit.probe.gradient import gradient
from steadygaze.audit.probe.look import text_key
from steadygaze.maths.chance import Chance
from steadygaze.model import Classifier
from steadygaze.types import Batch


def matters(case: Case) -> Iterator[Finding]:
    how = {"erase": case.plan.removal, "sizes": "1,5,10,20,50%"}
    by_chance = case.gather("random words erased", lambda _, b: _erased(case, b, _random(case, b)))
    for measure, values in by_chance.items():
        yield Finding(measure, values, "random", how)
    for name in case.explainers:

        def work(rows: Rows, batch: Batch, name: str = name) -> dict[str, Tensor]:
            return _erased(case, batch, case.of(case.saliency(name), rows, batch).abs())

        found = case.gather(f"{name} erased", work, case.rows(name))
        for measure, values in found.items():
            yield Finding(measure, values, name, how)
        above = found["comprehensiveness"] - by_chance["comprehensiveness"]
        yield Finding("comprehensiveness/above-random", above, name, how)
    if "attention" in case.explainers and isinstance(case.model, Classifier):
        yield from _gradients(case, case.model)


def _erased(case: Case, batch: Batch, weights: Tensor) -> dict[str, Tensor]:
    full = case.probs[batch.index.cpu()].to(batch.ids.device)
    gone = without(case.model, batch, weights, removal=case.plan.removal)
    kept = without(case.model, batch, weights, keep=True, removal=case.plan.removal)
    return {
        "comprehensiveness": erasure.comprehensiveness(full, gone),
        "sufficiency": erasure.sufficiency(full, kept),
    }


def _random(case: Case, batch: Batch) -> Tensor:
    return Chance(case.plan.seed).child(7).uniform(text_key(batch), batch.ids.shape[1], dtype=torch.float64)


def _gradients(case: Case, model: Classifier) -> Iterator[Finding]:
    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        weights = case.of(case.saliency("attention"), rows, batch)
        through = gradient(model, batch, detach_attention=False)
        fixed = gradient(model, batch)
        return {
            "pearson/gradient": agreement.pearson(weights, fixed, batch.mask),
            "kendall/gradient": agreement.kendall(weights, fixed, batch.mask),
            "pearson/gradient-through-attention": agreement.pearson(weights, through, batch.mask),
            "kendall/gradient-through-attention": agreement.kendall(weights, through, batch.mask),
        }

    for measure, values in case.gather("gradients", work).items():
        yield Finding(measure, values, "attention")
