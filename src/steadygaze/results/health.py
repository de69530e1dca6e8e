"""Health: known-bad states of a model or a fitted explainer, as data that travel with every result.

A problem is data; its sentence is rendered here and nowhere else.  Every output says it once, before the result: JSON
under the key `health`, a page in a banner, a command on standard error.  Does not import torch.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

from steadygaze.core.errors import HealthWarning, UserError, one_line
from steadygaze.core.rounding import percent
from steadygaze.core.types import Label

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema
    from rich.text import Text

R = TypeVar("R")


class ProblemKind(StrEnum):
    """Known-bad states, the worst first."""

    NON_FINITE = "non-finite-weights"
    CONSTANT_LABEL = "constant-label"
    NOT_LEARNED = "not-learned"
    COLLAPSED = "collapsed-attention"
    COLLAPSED_EXPLANATION = "collapsed-explanation"
    UNINFORMATIVE = "uninformative-selection"
    INTERLOCKED = "interlocked-selection"
    UNLEARNED_TEACHER = "unlearned-teacher"
    ONE_LABEL = "one-label-black-box"
    UNANSWERED = "unanswered"
    NOISY = "noisy-answers"
    LOW_FIDELITY = "low-fidelity"
    RANDOM_SELECTION = "random-selection"


UNLEARNED = frozenset({ProblemKind.NON_FINITE, ProblemKind.CONSTANT_LABEL, ProblemKind.NOT_LEARNED})
"""States of a model that only guesses."""
OTHERS = 5
"""Fewest texts of other labels that a constant prediction misses: a model with a recall of 0.5 misses five by chance in
3 % of the cases."""
UNLABELED = 20
"""Fewest texts without labels."""
MODEL = "The model"
NO_REASONS = "Its highlighted words are not reasons"
SENTENCES = {
    ProblemKind.NON_FINITE: "{subject} has weights that are NaN or infinite.  Its outputs have no meaning.",
    ProblemKind.CONSTANT_LABEL: "{subject} predicts the label {label} for every {texts} text: its explanations say "
    "little.",
    ProblemKind.NOT_LEARNED: "{subject} has not learned: its validation macro-F1 is {number}, and guessing reaches "
    "{limit_number}.",
    ProblemKind.COLLAPSED: "{subject} has collapsed attention: {detail}  Words that attention highlights are no "
    "reasons.",
    ProblemKind.COLLAPSED_EXPLANATION: "{subject} does not depend on the text: {detail}  " + f"{NO_REASONS}.",
    ProblemKind.UNINFORMATIVE: "{subject} has an uninformative selection: {detail}  " + f"{NO_REASONS}.",
    ProblemKind.INTERLOCKED: "{subject} has an interlocked selection: {detail}  " + f"{NO_REASONS}.",
    ProblemKind.UNLEARNED_TEACHER: "{subject} learned from {detail}, which has not learned the labels.",
    ProblemKind.ONE_LABEL: "{subject} was fitted to a black box that predicts the same label for all texts: any "
    "selection scores the same.",
    ProblemKind.UNANSWERED: "{subject} names no label in {share} of its answers: change the prompt or the label words.",
    ProblemKind.NOISY: "{subject} answers the same text differently: its probabilities differ by {number} on average "
    "({detail}).  Smaller differences between words or texts are noise.",
    ProblemKind.LOW_FIDELITY: "{subject} does not follow its black box: it predicts the same class in {share} of the "
    "held-out texts, and a constant class reaches {limit_share}.",
    ProblemKind.RANDOM_SELECTION: "{subject} selects words that are no better than random words: a reader recovers the "
    "predicted class in {share} of the held-out texts, and in {limit_share} from random words.",
}
"""One sentence for each state."""


@dataclass(frozen=True, slots=True)
class HealthProblem:
    """A known-bad state, with the numbers that show it."""

    kind: ProblemKind
    subject: str = MODEL
    """The subject of this state: the model, one of several, or an explainer."""
    label: Label | None = None
    """The constant label."""
    value: float | None = None
    """The measured number."""
    limit: float | None = None
    """The number that a healthy model exceeds."""
    detail: str = ""
    """Statistics of the attention, or the name of a teacher."""
    texts: str = "validation"
    """The texts on which the state was seen."""

    @property
    def sentence(self) -> str:
        """The state in words."""
        numbers = {
            f"{name}{form}": write(number)
            for name, number in (("", self.value), ("limit_", self.limit))
            for form, write in (("number", "{:.3f}".format), ("share", lambda value: percent(value, 1)))
            if number is not None
        }
        words = {"subject": self.subject, "detail": self.detail, "texts": self.texts, "label": f"{self.label!r:.80}"}
        return one_line(SENTENCES[self.kind].format(**words, **numbers))

    def to_dict(self) -> dict[str, Any]:
        """The problem as values for JSON; `message` is its sentence."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "kind": str(self.kind), "message": self.sentence}


@dataclass(frozen=True, slots=True)
class Health:
    """The known-bad states of a model or of a fitted explainer; none if it is healthy."""

    problems: tuple[HealthProblem, ...] = ()

    def __iter__(self) -> Iterator[HealthProblem]:
        return iter(self.problems)

    def __add__(self, other: "Health") -> "Health":
        """The problems of both, the worst first; one of each kind and subject."""
        known = {(problem.kind, problem.subject): problem for problem in (*self, *other, *self)}  # keeps the order
        order = list(ProblemKind)
        return Health(tuple(sorted(known.values(), key=lambda problem: order.index(problem.kind))))

    def __sub__(self, other: "Health") -> "Health":
        """The problems that the other does not have."""
        known = {(problem.kind, problem.subject) for problem in other}
        return Health(tuple(problem for problem in self if (problem.kind, problem.subject) not in known))

    @property
    def ok(self) -> bool:
        """True if no known-bad state was found."""
        return not self.problems

    @property
    def has_learned(self) -> bool:
        """True if no state says that the model only guesses."""
        return UNLEARNED.isdisjoint(problem.kind for problem in self)

    @property
    def sentence(self) -> str:
        """All states in words; empty for a healthy model."""
        return "  ".join(problem.sentence for problem in self)

    @property
    def lines(self) -> "list[Text]":
        """One line for each state, for a terminal."""
        from rich.text import Text

        return [Text(f"! {problem.sentence}", "bold yellow") for problem in self]

    @property
    def banner(self) -> str:
        """The states as HTML, for the top of a page; empty for a healthy model."""
        if self.ok:
            return ""
        style = "border-left:4px solid #c2410c;padding:0.4em 0.8em;margin:0 0 1em;background:rgba(194,65,12,0.12)"
        return f'<div role="alert" class="health" style="{style}"><strong>⚠ {escape(self.sentence)}</strong></div>'

    def warn(self, stacklevel: int = 2) -> None:
        """Warn once, if there are problems."""
        if not self.ok:
            warnings.warn(self.sentence, HealthWarning, stacklevel=stacklevel + 1)

    def of(self, subject: str) -> "Health":
        """The same states of another subject, such as one of several models."""
        return Health(tuple(replace(problem, subject=subject) for problem in self))

    def renamed(self, names: Mapping[Label, Label]) -> "Health":
        """The same states of a model with other class names."""
        problems = (replace(p, label=None if p.label is None else names.get(p.label, p.label)) for p in self)
        return Health(tuple(problems))

    def to_list(self) -> list[dict[str, Any]]:
        """The problems as values for JSON."""
        return [problem.to_dict() for problem in self]

    @classmethod
    def from_list(cls, values: Any) -> "Health":
        """Read the values of `to_list`; a UserError names what is wrong."""
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise UserError("health must be a list of problems")
        return cls(tuple(map(_problem, values)))

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: "GetCoreSchemaHandler") -> "CoreSchema":
        """Read the health of a saved result."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls.from_list(value)
        )


HEALTHY = Health()


def _problem(values: Any) -> HealthProblem:
    from steadygaze.core.settings import build  # pydantic is slow to import

    if not isinstance(values, Mapping):
        raise UserError("health must be a list of problems")
    try:
        problem = build(HealthProblem, {key: value for key, value in values.items() if key != "message"})
        _ = problem.sentence  # a state without its numbers
    except (UserError, KeyError) as error:
        raise UserError(f"health has a problem that cannot be read: {error}") from None
    return problem


def constant_prediction(predicted: Sequence[int], labels: Sequence[int] | None, classes: Sequence[Label]) -> Health:
    """Health of a model that predicts one class for all of these texts, although they have several labels.

    Without labels, there must be UNLABELED texts.

    >>> [len(constant_prediction([1] * n, labels, ["no", "yes"]).problems) for n, labels in (
    ...     (19, None), (20, None), (40, [0] * 4 + [1] * 36), (40, [0] * 5 + [1] * 35))]
    [0, 1, 0, 1]
    """
    if not len(predicted) or any(code != predicted[0] for code in predicted):
        return HEALTHY
    others = None if labels is None else sum(label != predicted[0] for label in labels)
    if len(predicted) < UNLABELED if others is None else others < OTHERS:
        return HEALTHY
    return Health((HealthProblem(ProblemKind.CONSTANT_LABEL, label=classes[predicted[0]], texts="audited"),))


def without_health(result: R) -> R:
    """The result without its health, for an output that has said it already."""
    return replace(result, health=HEALTHY)  # type: ignore[type-var]
