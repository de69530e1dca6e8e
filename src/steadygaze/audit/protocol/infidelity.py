"""Do the weights add up to what the prediction loses, and do they stay where vectors hardly move?  Yeh et al. 2019.

    infidelity        SAMPLES random sets of words are deleted: any size from one word to all is as likely
    max-sensitivity   DRAWS points within ‖δ‖∞ ≤ ρ of the word vectors, ρ as for the probe `noise`

Both are measured on the plan's sample of the texts.  Infidelity costs SAMPLES forward passes a text, whatever the
number of explainers; max-sensitivity costs DRAWS explanations a text and explainer.  Only a thorough audit asks them.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from steadygaze.audit.case import Case, Rows
from steadygaze.audit.finding import Finding
from steadygaze.audit.measure import infidelity as measure
from steadygaze.audit.probe.embeddings import noise, reach
from steadygaze.audit.probe.moves import LACKING
from steadygaze.audit.protocol.absent import absent
from steadygaze.explain.chances import without
from steadygaze.maths.chance import Chance
from steadygaze.perturb.texts import text_key
from steadygaze.perturb.units import Units, units_of
from steadygaze.types import Batch

SAMPLES = 20
"""Random sets of words deleted from each text."""
DRAWS = 10
"""Points near the vectors of each text: Captum's and Quantus's default."""
NO_VECTORS = "it explains words, not their vectors: vectors that moved a little change nothing it looks at"


def infidelity(case: Case) -> Iterator[Finding]:
    chance = Chance(case.plan.seed).child(13)

    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        units, places = units_of(batch, question=False), torch.from_numpy(rows)
        gone = removed(units, text_key(batch), chance)  # (B,S,U)
        full = case.probs[places].to(batch.ids.device)
        aim = full.argmax(-1)
        owner = torch.arange(len(batch), device=aim.device).repeat_interleave(SAMPLES)
        left = without(case.model, batch, owner, units.tokens(gone.flatten(0, 1), owner), aim).view(-1, SAMPLES)
        lost = full.gather(-1, aim.unsqueeze(-1)) - left
        found = {}
        for name in case.explainers:
            weights = units.total(case.of(case.saliency(name), rows, batch))
            attributed = (gone * weights.unsqueeze(1)).sum(-1)
            found[name] = measure.infidelity(attributed, lost).masked_fill(~units.mask.any(-1), torch.nan)
        return found

    how: dict[str, str | int | float] = {"sets": SAMPLES, "erase": "delete", "scale": "best"}
    for name, values in case.gather("random words removed", work, case.sample).items():
        yield Finding("infidelity", values, name, how)


def removed(units: Units, key: Tensor, chance: Chance) -> Tensor:
    """Random sets of words, from one to all of them.  (B,) -> (B,S,U) bool"""
    shape = SAMPLES, units.mask.shape[1]
    own = chance.scramble(key.unsqueeze(-1) + torch.arange(SAMPLES, device=key.device)).flatten()
    size = chance.child(1).uniform(own, 1, dtype=torch.float64).view(-1, SAMPLES)
    many = (size * units.mask.sum(-1, keepdim=True)).floor().long() + 1
    lots = chance.uniform(own, shape[1], dtype=torch.float64).view(-1, *shape)
    lots = lots.masked_fill(~units.mask.unsqueeze(1), 2.0)
    rank = lots.argsort(-1).argsort(-1)
    return (rank < many.unsqueeze(-1)) & units.mask.unsqueeze(1)


def max_sensitivity(case: Case) -> Iterator[Finding]:
    if "vectors" not in case.model.abilities:
        yield from absent(["max-sensitivity"], LACKING["vectors"])
        return
    radius = reach(case.model, case.plan.radius)
    for name, explainer in case.explainers.items():
        if not explainer.needs:
            yield Finding("max-sensitivity", explainer=name, absent=NO_VECTORS)
            continue
        found = case.gather(f"{name} near the text", lambda r, b, n=name: _moved(case, n, r, b, radius), case.sample)  # type: ignore[misc]
        how = {"draws": DRAWS, "radius": case.plan.radius}
        yield Finding("max-sensitivity", found["moved"], name, how)


def _moved(case: Case, name: str, rows: Rows, batch: Batch, radius: Tensor) -> dict[str, Tensor]:
    units, explainer = units_of(batch, question=False), case.explainers[name]
    before = units.total(case.of(case.saliency(name), rows, batch))
    aim = case.probs[torch.from_numpy(rows)].argmax(-1).to(batch.ids.device) if explainer.by_class else None
    chance, distances = Chance(case.plan.seed).child(14), []
    for draw in range(DRAWS):
        near = noise(case.model, batch, radius, chance.child(draw)).embedded
        after = units.total(explainer.explain(case.model, batch, aim, near).weights.double())
        distances.append((after - before).norm(dim=-1))
    return {"moved": measure.max_sensitivity(torch.stack(distances, -1), before.norm(dim=-1))}
