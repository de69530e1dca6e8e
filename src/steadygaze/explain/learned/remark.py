"""What is said when fitting is over: whether the mask alone told the label."""

from dataclasses import dataclass

from torch import Tensor

from steadygaze.explain.learned.selecting import Selecting
from steadygaze.maths import neutral

KEEPS_OUT = ("random-pretraining", "random-query")
"""Techniques in which the approximator never learns from masks that were chosen by the label."""


@dataclass(frozen=True)
class Remark:
    text: str
    harmless: bool


def remark(how: Selecting, lost: float, probs: Tensor) -> Remark | None:
    """None where the judge does not know the labels, by what it loses on inputs of which the black box says `probs`.

    What the black box itself is unsure of, nobody can know.  In nats; (N,C)
    """
    target = how.target(probs).double()
    prior, unsure = target.mean(0), float(-target.xlogy(target).sum(-1).mean())
    if not neutral.decided(lost, prior, unsure):
        return None
    told = f"the mask alone tells the label ({lost - unsure:.3f} nats left of {neutral.entropy(prior) - unsure:.3f})"
    if how.technique in KEEPS_OUT:
        return Remark(f"{told}; with {how.technique} the approximator has not learnt from those masks", True)
    return Remark(
        f"{told}: the approximator can read the label off which places are selected, whatever stands there.  "
        f"Weights of mask-neutral are then all alike and mend nothing; {_cure(how)}",
        False,
    )


def _cure(how: Selecting) -> str:
    able = [name for name in KEEPS_OUT if name in how.techniques and (how.query or name != "random-query")]
    return f"{' or '.join(able)} does" if able else f"l2x with {KEEPS_OUT[0]} does"
