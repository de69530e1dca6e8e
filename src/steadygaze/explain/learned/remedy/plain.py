"""None: selector and approximator learn together, and may agree on a code."""

from steadygaze.explain.learned.ail import Ail
from steadygaze.explain.learned.remedy.remedy import Remedy, both
from steadygaze.explain.learned.selecting import Round, Selecting
from steadygaze.objective.technique import Player
from steadygaze.types import Terms


class Plain(Remedy):
    def players(self, how: Selecting) -> tuple[Player, ...]:
        return both(how)

    def terms(self, round_: Round, stage: str) -> Terms:
        scores = round_.scores()
        mask = round_.mask(scores)
        terms = round_.lost(mask, scores)
        return {**terms, **round_.how.opposed(round_, mask)} if isinstance(round_.how, Ail) else terms
