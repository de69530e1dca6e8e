"""What is said when fitting is over: whether the mask alone told the label."""

from dataclasses import dataclass

from torch import Tensor

from steadygaze.explain.learned.selecting import Selecting, one_hot
from steadygaze.maths import neutral

TAUGHT_BEFORE = ("random-pretraining", "random-query")
"""Techniques in which the approximator stands still when the label is first told to the selector."""
CURE = "random-pretraining"
"""The one in which it never learns from masks that were chosen by the input."""


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
    if how.technique in TAUGHT_BEFORE:
        return Remark(f"{told}; with {how.technique} the approximator has not learnt from those masks", True)
    return Remark(
        f"{told}: the approximator can read the label off which places are selected, whatever stands there.  "
        f"Weights of mask-neutral mend nothing then where the black box is sure; {_cure(how)}",
        not how.query and how.technique == "plain",  # what a selector takes by what it reads may well lie in one place
    )


def _cure(how: Selecting) -> str:
    return f"{CURE} does" if CURE in how.techniques else f"l2x with {CURE} does"
