"""What a user may ask for as an explainer: a name, an Explainer, or a method of Captum."""

from typing import Any

from steadygaze.errors import unknown
from steadygaze.explain import EXPLAINERS
from steadygaze.explain.captum import Captum, is_captum
from steadygaze.explain.explainer import Explainer


def chosen(given: Any) -> tuple[str, Explainer]:
    """It, and what explanations call it."""
    if is_captum(given):
        given = Captum(given)
    if isinstance(given, Explainer):
        own = next((name for name, kind in EXPLAINERS.items() if type(given) is kind), type(given).__name__)
        return getattr(given, "name", own), given
    if not isinstance(given, str) or given not in EXPLAINERS:
        raise unknown("explainer", given, EXPLAINERS)
    return given, EXPLAINERS[given]()
