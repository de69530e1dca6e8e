"""What is said when fitting is over: whether the mask alone told the label."""

from dataclasses import dataclass

from torch import Tensor

from steadygaze.explain.learned.selecting import Selecting, one_hot
from steadygaze.maths import neutral

CURE = "random-pretraining"
"""The technique in which the approximator never learns from masks that were chosen by the input."""
BEFORE = {
    CURE: "the approximator has not learnt from those masks",
    "random-query": "the approximator learnt from masks that other labels asked for: a code is rarer, not ruled out",
}
"""What is said of techniques in which it stands still when the label is first told to the selector."""


@dataclass(frozen=True)
class Remark:
    text: str
    harmless: bool


def remark(how: Selecting, lost: float, probs: Tensor) -> Remark | None:
    """None where the judge does not know the labels, by what it loses, in nats, on inputs of which the black box says
    `probs`.  (N,C)
    """
    prior = one_hot(probs.double()).mean(0)
    if not neutral.decided(lost, prior):
        return None
    told = f"the mask alone tells the label ({lost:.3f} nats left of {neutral.entropy(prior):.3f})"
    if how.technique in BEFORE:
        return Remark(f"{told}; with {how.technique} {BEFORE[how.technique]}", True)
    return Remark(
        f"{told}: the approximator can read the label off which places are selected, whatever stands there.  "
        f"Weights of mask-neutral mend nothing then where the black box is sure; {_cure(how)}",
        not how.query and how.technique == "plain",  # what a selector takes by what it reads may well lie in one place
    )


def _cure(how: Selecting) -> str:
    return f"{CURE} does" if CURE in how.techniques else f"l2x with {CURE} does"
