"""What a user may ask for as an explainer: a name, an Explainer, what was fitted, or a method of Captum."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, cast

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import build, field_names
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.attention import Attention
from steadygaze.explainers.captum import Captum, is_captum
from steadygaze.explainers.explainer import Explainer
from steadygaze.models.model_protocol import MISSING_CAPABILITY
from steadygaze.models.model_protocol import Model as Reader

Model = Reader | type[Reader]
"""One, or the kind of it."""
SELECTS = "the model selects what it reads, and shows a rationale, not attention"


def resolve_explainer(given: Any, model: Reader | None = None) -> tuple[str, Explainer]:
    """It, and what explanations call it.  What `fit_explainer` gave has one, of the model it was fitted to alone."""
    if isinstance(fitted := getattr(given, "explainer", None), Explainer):
        if model is not None and given.adapter.model is not model:
            raise UserError(f"{given.name} was fitted to another model; `explain` of its own explains that one")
        given = fitted
    if is_captum(given):
        given = Captum(given)
    if isinstance(given, Explainer):
        own = next((name for name, kind in EXPLAINERS.items() if type(given) is kind), type(given).__name__)
        return getattr(given, "name", own), given
    if not isinstance(given, str) or given not in EXPLAINERS:
        raise unknown("explainer", given, EXPLAINERS)
    return given, EXPLAINERS[given]()


def configure_explainer(name: str, settings: Mapping[str, Any], seed: int = 0) -> Explainer:
    """The explainer of this name with settings of its own; `seed` is for those that draw samples."""
    if name not in EXPLAINERS:
        raise unknown("explainer", name, EXPLAINERS)
    kind = EXPLAINERS[name]
    known = _settings(kind)
    if settings and not known:
        able = ", ".join(one for one, other in EXPLAINERS.items() if _settings(other))
        raise UserError(f"{name} has no settings, found {next(iter(settings))!r:.80}; these have: {able}")
    return build(kind, {**({"seed": seed} if "seed" in known else {}), **settings})


def _settings(kind: Any) -> tuple[str, ...]:
    return field_names(cast(type[Any], kind)) if is_dataclass(kind) else ()


def default_explainer(model: Model) -> str:
    """What a model shows of itself: its rationale where it selects what it reads, else its attention."""
    return "rationale" if "selection" in model.capabilities else "attention"


def missing_capability(explainer: Explainer, model: Model) -> str:
    """Why it cannot explain such a model; '': it can."""
    if isinstance(explainer, Attention) and "selection" in model.capabilities:
        return SELECTS
    lacking = explainer.requires - model.capabilities
    return MISSING_CAPABILITY[max(lacking)] if lacking else ""


def require_capabilities(name: str, explainer: Explainer, model: Reader, called: str) -> None:
    """Refused where the model has not what the explainer needs."""
    if why := missing_capability(explainer, model):
        raise UserError(f"{name} cannot explain {called}: {why}; ask for another explainer")
