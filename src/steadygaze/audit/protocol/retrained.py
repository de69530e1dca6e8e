"""Is it the same after retraining?  The same texts put to models that differ by their seed alone.

jensen-shannon/seeds      how far their saliencies are apart, the mean over all pairs of models
top-k-overlap/seeds       which part of the k heaviest words two of them share
prediction-change/seeds   how far their predictions are apart
"""

from collections.abc import Callable, Iterator
from itertools import combinations

import torch
from torch import Tensor

from steadygaze.audit.case import Case, apart
from steadygaze.audit.finding import Finding
from steadygaze.audit.measure import stability

ALONE = "only one model was given: name others trained alike, with other seeds"


def retrained(case: Case) -> Iterator[Finding]:
    measures = ("jensen-shannon/seeds", "top-k-overlap/seeds")
    if not case.others:
        yield Finding("prediction-change/seeds", absent=ALONE)
        yield Finding("flipped/seeds", absent=ALONE)
        yield from (Finding(measure, explainer=name, absent=ALONE) for name in case.explainers for measure in measures)
        return
    models = (case, *case.others)
    many = {"models": len(models)}
    probs = [model.probs for model in models]
    yield Finding("prediction-change/seeds", _pairs(probs, stability.prediction_change), settings=many)
    yield Finding("flipped/seeds", _pairs(probs, stability.flipped), settings=many)
    for name in case.explainers:
        said = [model.saliency(name) for model in models]
        far = _pairs(said, lambda p, q: apart(p, q, case.mask))
        shared = _pairs(said, lambda p, q: stability.overlap(p, q, case.mask, case.plan.k))
        asked = ~case.saliency(name).isnan().any(-1) & (case.mask.sum(-1) > 1)
        for measure, values in zip(measures, (far, shared), strict=True):
            known = many | ({"k": case.plan.k} if measure.startswith("top-k") else {})
            yield Finding(measure, torch.where(asked, values, torch.nan), name, known)


def _pairs(said: list[Tensor], measure: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The mean over all pairs of models.  (N,)"""
    return torch.stack([measure(one, other) for one, other in combinations(said, 2)]).mean(0)
