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
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from steadygaze.audit.case import Case, Rows
from steadygaze.audit.finding import Finding
from steadygaze.audit.measure import agreement, erasure
from steadygaze.audit.names import of, under
from steadygaze.audit.probe.erase import SHARES, Erasure, counts, erased
from steadygaze.audit.probe.gradient import gradient
from steadygaze.audit.probe.moves import LACKING
from steadygaze.audit.protocol.absent import ONLY_RANDOM, absent, own, unasked
from steadygaze.audit.protocol.yardstick import RANDOM, others, weights
from steadygaze.reader import Ability
from steadygaze.types import Batch

GRADIENTS: dict[str, frozenset[Ability]] = {
    "gradient": frozenset({"vectors", "seams"}),
    "gradient-through-attention": frozenset({"vectors"}),
}
"""How the gradient is taken, and what a model must have for it."""
UNREAD = "the model reads what it selects alone: elsewhere the gradient is 0, whatever was learnt"


def matters(case: Case) -> Iterator[Finding]:
    if case.plan.removal == "zero" and "vectors" not in case.model.abilities:
        yield from absent(of("comprehensiveness", "sufficiency", "post-hoc-accuracy"), LACKING["vectors"])
    else:
        yield from _erasure(case)
    yield from _gradients(case)


def _erasure(case: Case) -> Iterator[Finding]:
    sizes = ",".join(f"{100 * share:g}" for share in SHARES)
    how = {"erase": case.plan.removal, "sizes": f"{sizes}%"}
    by_chance = case.gather(f"{RANDOM} words erased", lambda rows, batch: _erased(case, RANDOM, rows, batch))
    for measure, values in by_chance.items():
        yield Finding(measure, values, RANDOM, how)
    if not others(case):
        yield from absent(["comprehensiveness/above-random"], ONLY_RANDOM)
    for name in others(case):
        found = case.gather(f"{name} erased", lambda r, b, n=name: _erased(case, n, r, b), case.rows(name))  # type: ignore[misc]
        for measure, values in found.items():
            yield Finding(measure, values, name, how)
        yield Finding("comprehensiveness/above-random", _above(case, name, found, by_chance), name, how)


def _above(case: Case, name: str, found: dict[str, Tensor], by_chance: dict[str, Tensor]) -> Tensor:
    """The mean over sizes of what is lost beyond random words; NaN in a text of one word, which has no other choice.

    An explainer that deletes words one by one to weigh them is not asked about sizes of one word: it chose it so.
    """
    words = case.words
    sizes = [name for name in found if name.startswith("comprehensiveness/")]
    above = torch.stack([found[size] - by_chance[size] for size in sizes], -1)  # (N,K)
    if case.explainers[name].deletes_words:
        above = above.masked_fill(counts(words, SHARES) <= 1, torch.nan)
    return above.nanmean(-1).masked_fill(words < 2, torch.nan)


def _erased(case: Case, name: str, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    full = case.probs[torch.from_numpy(rows)].to(batch.ids.device)
    how = Erasure(removal=case.plan.removal, most_tokens=case.plan.most_tokens)
    gone, kept = erased(case.model, batch, full, weights(case, name, rows, batch), how)
    found = {
        "comprehensiveness": erasure.comprehensiveness(full, gone),
        "sufficiency": erasure.sufficiency(full, kept),
        "post-hoc-accuracy": erasure.post_hoc_accuracy(full, kept),
    }
    for measure, changed in (("comprehensiveness", gone), ("sufficiency", kept)):
        for share, lost in zip(SHARES, erasure.drops(full, changed).unbind(-1), strict=True):
            found[f"{measure}/{share:.0%}"] = lost
    nothing = ~batch.mask.any(-1)  # no word to lose
    return {name: values.masked_fill(nothing, torch.nan) for name, values in found.items()}


def _gradients(case: Case) -> Iterator[Finding]:
    for way, needs in GRADIENTS.items():
        lacking = needs - case.model.abilities
        selects = UNREAD if "selection" in case.model.abilities else ""
        if why := unasked(case) or selects or (LACKING[min(lacking)] if lacking else ""):
            yield from absent(under(way), why)
            continue
        fixed = "seams" in needs
        for measure, values in case.gather(way, lambda r, b, f=fixed: _agreement(case, r, b, f)).items():  # type: ignore[misc]
            yield Finding(f"{measure}/{way}", values, own(case))


def _agreement(case: Case, rows: Rows, batch: Batch, fixed: bool) -> dict[str, Tensor]:
    shown = case.of(case.saliency(own(case)), rows, batch)
    slope = gradient(case.model, batch, detach_attention=fixed)
    return {
        "pearson": agreement.pearson(shown, slope, batch.mask),
        "kendall": agreement.kendall(shown, slope, batch.mask),
    }
