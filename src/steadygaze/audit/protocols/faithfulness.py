"""Does it matter to the prediction?  The words it points at are taken away, or left alone: what becomes of the label?

    comprehensiveness               what the predicted class loses without the heaviest words
    comprehensiveness/above-random  the same, minus what it loses without as many words drawn at random
    sufficiency                     what it loses when they alone are left
    post-hoc-accuracy               how often they alone give the same label: the mean over sizes
    …/5%                            either at one size: a point of the curve whose mean they are
    pearson/gradient, kendall/…     whether the gradient points at the same words, the attention held fixed
    …/gradient-through-attention    the same of the gradient that flows through the attention too

Where a saliency tells for from against, the words most for the predicted class are its heaviest: erasing those against
it would hide what it loses.  The random yardstick is drawn for every text, and is the same for all explanations of it.

Do the weights add up to what the prediction loses, and do they stay where vectors hardly move?  Yeh et al. 2019.

    infidelity        SAMPLES random sets of words are deleted: any size from one word to all is as likely
    max-sensitivity   DRAWS points within ‖δ‖∞ ≤ ρ of the word vectors, ρ as for the probe `noise`

Both are measured on the plan's sample of the texts.  Infidelity costs SAMPLES forward passes a text, whatever the
number of explainers; max-sensitivity costs DRAWS explanations a text and explainer.  Only a thorough audit asks them.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from steadygaze.audit.audit_case import RANDOM, AuditCase, Rows, other_explainers, random_weights
from steadygaze.audit.finding import (
    ONLY_RANDOM,
    Finding,
    explainer_or_none,
    missing_capability_reason,
    missing_findings,
)
from steadygaze.audit.measure_names import measure_names, probe_names
from steadygaze.audit.measures import faithfulness_measures
from steadygaze.audit.measures import faithfulness_measures as infidelity_measures
from steadygaze.audit.probes.erasure import SHARES, Erasure, erase_words, rationale_sizes
from steadygaze.audit.probes.observation import gradient
from steadygaze.audit.probes.text_perturbations import embedding_noise, perturbation_radius
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import predict_without
from steadygaze.models.model_protocol import MISSING_CAPABILITY, Capability
from steadygaze.techniques.perturbations.word_removal import Units, text_key, units_of

GRADIENTS: dict[str, frozenset[Capability]] = {
    "gradient": frozenset({"embeddings", "extension_points"}),
    "gradient-through-attention": frozenset({"embeddings"}),
}
"""How the gradient is taken, and what a model must have for it."""
UNREAD = "the model reads what it selects alone: elsewhere the gradient is 0, whatever was learnt"


def faithfulness(case: AuditCase) -> Iterator[Finding]:
    if case.plan.removal == "zero" and "embeddings" not in case.model.capabilities:
        yield from missing_findings(
            measure_names("comprehensiveness", "sufficiency", "post-hoc-accuracy"), MISSING_CAPABILITY["embeddings"]
        )
    else:
        yield from _erasure(case)
    yield from _gradients(case)


def _erasure(case: AuditCase) -> Iterator[Finding]:
    sizes = ",".join(f"{100 * share:g}" for share in SHARES)
    how = {"erase": case.plan.removal, "sizes": f"{sizes}%"}
    by_chance = case.gather(f"{RANDOM} words erased", lambda rows, batch: _erased(case, RANDOM, rows, batch))
    for measure, values in by_chance.items():
        yield Finding(measure, values, RANDOM, how)
    if not other_explainers(case):
        yield from missing_findings(["comprehensiveness/above-random"], ONLY_RANDOM)
    for name in other_explainers(case):
        found = case.gather(f"{name} erased", lambda r, b, n=name: _erased(case, n, r, b), case.rows(name))  # type: ignore[misc]
        for measure, values in found.items():
            yield Finding(measure, values, name, how)
        yield Finding("comprehensiveness/above-random", _above(case, name, found, by_chance), name, how)


def _above(case: AuditCase, name: str, found: dict[str, Tensor], by_chance: dict[str, Tensor]) -> Tensor:
    """The mean over sizes of what is lost beyond random words; NaN in a text of one word, which has no other choice.

    An explainer that deletes words one by one to weigh them is not asked about sizes of one word: it chose it so.
    """
    words = case.words
    sizes = [name for name in found if name.startswith("comprehensiveness/")]
    above = torch.stack([found[size] - by_chance[size] for size in sizes], -1)  # (N,K)
    if case.explainers[name].deletes_words:
        above = above.masked_fill(rationale_sizes(words, SHARES) <= 1, torch.nan)
    return above.nanmean(-1).masked_fill(words < 2, torch.nan)


def _erased(case: AuditCase, name: str, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    full = case.probs[torch.from_numpy(rows)].to(batch.ids.device)
    how = Erasure(removal=case.plan.removal, max_tokens=case.plan.max_tokens)
    gone, kept = erase_words(case.model, batch, full, random_weights(case, name, rows, batch), how)
    found = {
        "comprehensiveness": faithfulness_measures.comprehensiveness(full, gone),
        "sufficiency": faithfulness_measures.sufficiency(full, kept),
        "post-hoc-accuracy": faithfulness_measures.post_hoc_accuracy(full, kept),
    }
    for measure, changed in (("comprehensiveness", gone), ("sufficiency", kept)):
        for share, lost in zip(SHARES, faithfulness_measures.probability_drops(full, changed).unbind(-1), strict=True):
            found[f"{measure}/{share:.0%}"] = lost
    nothing = ~batch.mask.any(-1)  # no word to lose
    return {name: values.masked_fill(nothing, torch.nan) for name, values in found.items()}


def _gradients(case: AuditCase) -> Iterator[Finding]:
    for way, needs in GRADIENTS.items():
        lacking = needs - case.model.capabilities
        selects = UNREAD if "selection" in case.model.capabilities else ""
        if why := missing_capability_reason(case) or selects or (MISSING_CAPABILITY[max(lacking)] if lacking else ""):
            yield from missing_findings(probe_names(way), why)
            continue
        fixed = "extension_points" in needs
        for measure, values in case.gather(way, lambda r, b, f=fixed: _agreement(case, r, b, f)).items():  # type: ignore[misc]
            yield Finding(f"{measure}/{way}", values, explainer_or_none(case))


def _agreement(case: AuditCase, rows: Rows, batch: Batch, fixed: bool) -> dict[str, Tensor]:
    shown = case.gather_rows(case.saliency(explainer_or_none(case)), rows, batch)
    slope = gradient(case.model, batch, detach_attention=fixed)
    return {
        "pearson": faithfulness_measures.pearson(shown, slope, batch.mask),
        "kendall": faithfulness_measures.kendall(shown, slope, batch.mask),
    }


SAMPLES = 20
"""Random sets of words deleted from each text."""
DRAWS = 10
"""Points near the vectors of each text: Captum's and Quantus's default."""
NO_VECTORS = "it explains words, not their vectors: vectors that moved a little change nothing it looks at"


def infidelity(case: AuditCase) -> Iterator[Finding]:
    chance = RandomKey(case.plan.seed).child(13)

    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        units, places = units_of(batch, question=False), torch.from_numpy(rows)
        gone = removed(units, text_key(batch), chance)  # (B,S,U)
        full = case.probs[places].to(batch.ids.device)
        aim = full.argmax(-1)
        owner = torch.arange(len(batch), device=aim.device).repeat_interleave(SAMPLES)
        left = predict_without(case.model, batch, owner, units.tokens(gone.flatten(0, 1), owner), aim).view(-1, SAMPLES)
        lost = full.gather(-1, aim.unsqueeze(-1)) - left
        found = {}
        for name in case.explainers:
            weights = units.total(case.gather_rows(case.saliency(name), rows, batch))
            attributed = (gone * weights.unsqueeze(1)).sum(-1)
            found[name] = infidelity_measures.infidelity(attributed, lost).masked_fill(~units.mask.any(-1), torch.nan)
        return found

    how: dict[str, str | int | float] = {"sets": SAMPLES, "erase": "delete", "scale": "best"}
    for name, values in case.gather("random words removed", work, case.sample).items():
        yield Finding("infidelity", values, name, how)


def removed(units: Units, key: Tensor, chance: RandomKey) -> Tensor:
    """Random sets of words, from one to all of them.  (B,) -> (B,S,U) bool"""
    shape = SAMPLES, units.mask.shape[1]
    own = chance.scramble(key.unsqueeze(-1) + torch.arange(SAMPLES, device=key.device)).flatten()
    size = chance.child(1).uniform(own, 1, dtype=torch.float64).view(-1, SAMPLES)
    many = (size * units.mask.sum(-1, keepdim=True)).floor().long() + 1
    lots = chance.uniform(own, shape[1], dtype=torch.float64).view(-1, *shape)
    lots = lots.masked_fill(~units.mask.unsqueeze(1), 2.0)
    rank = lots.argsort(-1).argsort(-1)
    return (rank < many.unsqueeze(-1)) & units.mask.unsqueeze(1)


def max_sensitivity(case: AuditCase) -> Iterator[Finding]:
    if "embeddings" not in case.model.capabilities:
        yield from missing_findings(["max-sensitivity"], MISSING_CAPABILITY["embeddings"])
        return
    radius = perturbation_radius(case.model, case.plan.radius)
    for name, explainer in case.explainers.items():
        if not explainer.requires:
            yield Finding("max-sensitivity", explainer=name, absent=NO_VECTORS)
            continue
        found = case.gather(f"{name} near the text", lambda r, b, n=name: _moved(case, n, r, b, radius), case.sample)  # type: ignore[misc]
        how = {"draws": DRAWS, "radius": case.plan.radius}
        yield Finding("max-sensitivity", found["moved"], name, how)


def _moved(case: AuditCase, name: str, rows: Rows, batch: Batch, radius: Tensor) -> dict[str, Tensor]:
    units, explainer = units_of(batch, question=False), case.explainers[name]
    before = units.total(case.gather_rows(case.saliency(name), rows, batch))
    aim = case.probs[torch.from_numpy(rows)].argmax(-1).to(batch.ids.device) if explainer.class_specific else None
    chance, distances = RandomKey(case.plan.seed).child(14), []
    for draw in range(DRAWS):
        near = embedding_noise(case.model, batch, radius, chance.child(draw)).embedded
        after = units.total(explainer.explain(case.model, batch, aim, near).weights.double())
        distances.append((after - before).norm(dim=-1))
    return {"moved": infidelity_measures.max_sensitivity(torch.stack(distances, -1), before.norm(dim=-1))}
