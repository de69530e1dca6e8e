"""What a remedy is: who learns from which masks, in which order."""

from abc import ABC, abstractmethod

from steadygaze.explain.learned.ail import Ail
from steadygaze.explain.learned.selecting import Round, Selecting
from steadygaze.objective.technique import Player, Stage
from steadygaze.types import Terms

JUDGE = Player("judge", trains=("judge.",), terms=("mask",))
"""Always there, so that it is always known how far the mask gives the label away; nobody else hears it."""


class Remedy(ABC):
    def stages(self, how: Selecting) -> tuple[Stage, ...]:
        return (Stage("selecting", trains=("selector.", "approximator.", "opponent.", "judge."), epochs=how.epochs),)

    @abstractmethod
    def players(self, how: Selecting) -> tuple[Player, ...]: ...

    @abstractmethod
    def terms(self, round_: Round, stage: str) -> Terms:
        """Per-input terms (B,), by name."""


def both(how: Selecting) -> tuple[Player, ...]:
    """Selector and approximator learn from the same guess; an opponent, where there is one, from its own."""
    own = ("prediction",) if type(how).brevity is Selecting.brevity else ("prediction", "brevity")
    if not isinstance(how, Ail):
        return Player("selector", trains=("selector.", "approximator."), terms=own), JUDGE
    return (
        Player("selector", trains=("selector.",), terms=("prediction", "infidelity")),
        Player("approximator", trains=("approximator.",), terms=("prediction",)),
        Player("opponent", trains=("opponent.",), terms=("opponent",)),
        JUDGE,
    )
