"""Recommendation: which of several audited explainers to use, as data.  report/sentences.py has its sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from steadygaze.results.row import Verdict

ORDER = ("faithfulness", "shortcut-leakage", "stability", "seed-consistency", "plausibility")
"""Properties, the most important one first.  Those of a user and later ones follow, in the order of the verdicts."""
UNCOUNTED = ("robustness",)
"""Properties that do not count: explanations that read words have no answer, which must not be an advantage."""
REQUIRED = ORDER[0]
"""A `no` for this property excludes an explainer."""
LEVELS = {"no": 0, "yes": 2}
"""How good an answer is; all other answers decide nothing, and are between both."""
Choice = Literal["none-acceptable", "only-acceptable", "fewer-no", "more-yes", "order", "first-named"]
"""Why an explainer is recommended; see `recommend`."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The decided answers about one explainer."""

    explainer: str
    yes: tuple[str, ...] = ()
    """Properties whose answer is yes, the most important one first."""
    no: tuple[str, ...] = ()
    """Properties whose answer is no, the most important one first."""

    @property
    def is_acceptable(self) -> bool:
        """True if faithfulness has no `no`."""
        return REQUIRED not in self.no


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Which explainer to use, and why."""

    explainer: str | None
    """None: no explainer is acceptable."""
    choice: Choice
    """Its advantage over the next acceptable explainer."""
    decisive: tuple[str, ...]
    """The properties that do; empty: none does."""
    ranking: tuple[Tally, ...]
    """All candidates, the best one first."""


def recommend(verdicts_by: Mapping[str, Sequence[Verdict]]) -> Recommendation | None:
    """Rank explainers by their verdicts, and recommend the first; None for fewer than two.

    1. An explainer whose answer for faithfulness is `no` is not acceptable, and ranks below all others.  If no
       explainer is acceptable, none is recommended.
    2. The fewer answers are `no`, the better.
    3. The more answers are `yes`, the better.
    4. The first property of `ORDER` whose answers differ decides: `yes` is better than undecided, and that than `no`.
    5. The explainer that was named first.

    An answer that is neither `yes` nor `no` counts as undecided.
    """
    if len(verdicts_by) < 2:
        return None
    answers = {
        name: {item.key or item.title: item.answer for item in items if item.key not in UNCOUNTED}
        for name, items in verdicts_by.items()
    }
    known = {key for levels in answers.values() for key in levels}
    properties = [key for key in ORDER if key in known]
    properties += dict.fromkeys(key for levels in answers.values() for key in levels if key not in ORDER)
    levels = {name: tuple(LEVELS.get(of.get(key, ""), 1) for key in properties) for name, of in answers.items()}
    tallies = {name: Tally(name, *(_at(level, levels[name], properties) for level in (2, 0))) for name in answers}

    def rank(name: str) -> tuple[bool, int, int, tuple[int, ...]]:
        tally = tallies[name]
        return not tally.is_acceptable, len(tally.no), -len(tally.yes), tuple(-level for level in levels[name])

    ranked = sorted(answers, key=rank)  # a stable sort: of equals, the first named stays first
    ranking = tuple(tallies[name] for name in ranked)
    best, second = ranking[:2]
    if not best.is_acceptable:
        return Recommendation(None, "none-acceptable", (REQUIRED,), ranking)
    if not second.is_acceptable:
        return Recommendation(best.explainer, "only-acceptable", (REQUIRED,), ranking)
    differing = [
        key for key, *pair in zip(properties, *(levels[name] for name in ranked[:2]), strict=True) if len(set(pair)) > 1
    ]
    return Recommendation(best.explainer, *_difference(best, second, differing), ranking)


def _at(level: int, levels: Sequence[int], properties: Sequence[str]) -> tuple[str, ...]:
    """The properties whose answers have this level."""
    return tuple(key for key, value in zip(properties, levels, strict=True) if value == level)


def _difference(best: Tally, second: Tally, differing: Sequence[str]) -> tuple[Choice, tuple[str, ...]]:
    """The advantage of an explainer over the next one, and the properties that decide it."""
    if len(best.no) < len(second.no):
        return "fewer-no", tuple(key for key in second.no if key not in best.no)
    if len(best.yes) > len(second.yes):
        return "more-yes", tuple(key for key in best.yes if key not in second.yes)
    return ("order", tuple(differing[:1])) if differing else ("first-named", ())
