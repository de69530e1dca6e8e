"""Which explanations of a model are audited, and which cannot be."""

from collections.abc import Sequence
from typing import Any

from steadygaze.errors import UserError
from steadygaze.explain import EXPLAINERS
from steadygaze.explain.chosen import chosen as named
from steadygaze.explain.chosen import unable as lacking
from steadygaze.explain.explainer import Explainer
from steadygaze.subject import Subject
from steadygaze.text_explainer import TextExplainer

ORDER = ("rationale", "attention", "gradient", "leave-one-out")
"""What is audited where nobody says: the first of these that the model has."""


def choose(subject: Subject, asked: Sequence[Any]) -> tuple[dict[str, Explainer], dict[str, str]]:
    """Those that the model can be asked for; and of the others, why it cannot."""
    pairs = [named(one.of(subject) if isinstance(one, TextExplainer) else one) for one in asked]
    chosen = dict(pairs) or _default(subject)
    if len(pairs) > len(chosen):
        raise UserError(
            f"two explainers are called alike, among {', '.join(name for name, _ in pairs)}: audit one at a time"
        )
    unable = {name: why for name, explainer in chosen.items() if (why := lacking(explainer, subject.model))}
    able = {name: explainer for name, explainer in chosen.items() if name not in unable}
    if not able:
        name, why = next(iter(unable.items()))
        raise UserError(f"{name} of {subject.name} cannot be audited: {why}; ask for another explainer")
    return able, unable


def _default(subject: Subject) -> dict[str, Explainer]:
    name = next(name for name in ORDER if not lacking(EXPLAINERS[name](), subject.model))
    return {name: EXPLAINERS[name]()}
