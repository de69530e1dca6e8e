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

from steadygaze.audit.audit_case import Case, Rows, apart, others
from steadygaze.audit.finding import ONLY_RANDOM, Finding, absent, unasked
from steadygaze.audit.measure_names import under
from steadygaze.audit.measures import faithfulness_measures, stability_measures
from steadygaze.audit.probes.counterfactual_attention import ALLOWED, NUMBER, adversary, permuted, randomised
from steadygaze.core.random_key import Chance
from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import finite_weights
from steadygaze.models.attention_layers import Linear
from steadygaze.models.classifier import Classifier
from steadygaze.models.model_protocol import LACKING, Reader

DRAWS = 3
"""Copies with random parameters."""
CLOSED = "the model is a black box: its parameters cannot be dealt out anew"


def intervened(case: Case) -> Iterator[Finding]:
    why = unasked(case)
    if isinstance(case.model, Classifier) and not why:
        yield from _reweighed(case, case.model)
    else:
        yield from absent(under("permuted", "adversarial"), why or LACKING["seams"])
    asked = others(case)
    closed = next(case.model.parameters(), None) is None
    if closed or not asked:
        yield from absent(under("randomised"), CLOSED if closed else ONLY_RANDOM)
    else:
        yield from _randomised(case, asked)


def _reweighed(case: Case, model: Classifier) -> Iterator[Finding]:
    chance = Chance(case.plan.seed)

    def shuffled(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        before = case.probs[torch.from_numpy(rows)].to(batch.ids.device).unsqueeze(1)
        moved = stability_measures.prediction_change(before, permuted(model, batch, chance.child(8)))
        return {"permuted": _of_several(moved.quantile(0.5, dim=-1), batch)}

    def attacked(_: Rows, batch: Batch) -> dict[str, Tensor]:
        return {"adversarial": _of_several(adversary(model, batch, chance.child(9)).distance, batch)}

    found = case.gather("weights permuted", shuffled)["permuted"]
    yield Finding("prediction-change/permuted", found, "attention", {"permutations": NUMBER})
    exact = isinstance(model.decoder, Linear) and case.probs.shape[1] == 2
    rows = case.everything if exact else case.sample  # a search takes hundreds of steps
    found = case.gather("adversarial attention", attacked, rows)["adversarial"]
    how = {"within": ALLOWED, "solver": "exact" if exact else "search"}
    yield Finding("jensen-shannon/adversarial", found, "attention", how)


def _of_several(values: Tensor, batch: Batch) -> Tensor:
    return values.masked_fill(batch.mask.sum(-1) < 2, torch.nan)


def _randomised(case: Case, names: list[str]) -> Iterator[Finding]:
    draws: list[dict[str, Tensor]] = []
    for draw in range(DRAWS):
        other = randomised(case.model, Chance(case.plan.seed).child(10, draw))
        draws.append({key: value for name in names for key, value in _compared(case, name, other, draw).items()})
        del other  # one copy at a time
    for key in draws[0]:
        measure, _, name = key.partition("|")
        values = torch.stack([one[key] for one in draws]).nanmean(0)
        yield Finding(f"{measure}/randomised", values, name, {"draws": DRAWS})


def _compared(case: Case, name: str, other: Reader, draw: int) -> dict[str, Tensor]:
    explainer, own = case.explainers[name], case.saliency(name)

    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        label = case.probs[torch.from_numpy(rows)].argmax(-1).to(batch.ids.device) if explainer.by_class else None
        said = finite_weights(explainer.explain(other, batch, label), batch)
        before = case.of(own, rows, batch)
        far = _of_several(apart(before, said, batch.mask), batch)
        return {
            f"kendall|{name}": faithfulness_measures.kendall(before, said, batch.mask),
            f"jensen-shannon|{name}": far,
        }

    return case.gather(f"{name} of a random model, {draw + 1} of {DRAWS}", work, case.rows(name))
