"""Resolve an explainer from a name, an Explainer, a fitted explainer, or a method of Captum."""

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from typing import Any, cast

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import build, field_names
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.captum import Captum, is_captum
from steadygaze.explainers.class_probability import Output
from steadygaze.explainers.explainer import Explainer
from steadygaze.models.inference import Model


def resolve_explainer(
    explainer: Any,
    model: Model | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    *,
    pair: bool = False,
) -> tuple[str, Explainer]:
    """The name and the explainer.  A fitted explainer explains only the model it was fitted to.

    `explainer`: None is the default of the model, for pairs if `pair`.  `settings` and `seed` are for an explainer that
    is given by name, or for the default.
    """
    if explainer is None and model is not None:
        explainer = default_explainer(model, pair)
        settings = {**DEFAULT_SETTINGS.get(explainer, {}), **(settings or {})}
    if isinstance(fitted := getattr(explainer, "explainer", None), Explainer):
        if model is not None and explainer.black_box.model is not model:
            raise UserError(f"{explainer.name} was fitted to another model; call its own `explain` method")
        explainer = fitted
    if is_captum(explainer):
        explainer = Captum(explainer)
    if isinstance(explainer, Explainer):
        default_name = next(
            (name for name, kind in EXPLAINERS.items() if type(explainer) is kind), type(explainer).__name__
        )
        name = getattr(explainer, "name", default_name)
        if settings:
            raise UserError(f"the settings of {name} are those of the given object: leave out settings= (--set)")
        return name, explainer
    return explainer, configure_explainer(explainer, settings or {}, seed)


def unknown_explainer(name: Any) -> UserError:
    """Return an error that names the way to an explainer of the user."""
    own = "first import the module that registers it; a command does so with --import MODULE"
    if not isinstance(name, str):
        own = "pass an instance of a class that extends steadygaze.explainers.explainer.Explainer"
    return UserError(f"{unknown('explainer', name, EXPLAINERS)}  To use your own, {own}")


def configure_explainer(name: Any, settings: Mapping[str, Any], seed: int = 0) -> Explainer:
    """The explainer of this name with these settings; `seed` is for explainers with random draws."""
    if not isinstance(name, str) or name not in EXPLAINERS:
        raise unknown_explainer(name)
    kind = EXPLAINERS[name]
    fields = _settings(kind)
    if settings and not fields:
        configurable = ", ".join(
            explainer_name for explainer_name, explainer_class in EXPLAINERS.items() if _settings(explainer_class)
        )
        raise UserError(f"{name} has no settings, found {next(iter(settings))!r:.80}; others have: {configurable}")
    return build(kind, {**({"seed": seed} if "seed" in fields else {}), **settings})


def _settings(kind: Any) -> tuple[str, ...]:
    return field_names(cast(type[Any], kind)) if is_dataclass(kind) else ()


def with_output(explainer: Explainer, name: str, output: Output | None) -> Explainer:
    """The explainer of this output of the model; None leaves it as it is."""
    if output is None:
        return explainer
    if "output" not in _settings(type(explainer)):
        if output == "probability":
            return explainer
        raise UserError(f"{name} does not explain an output of the model: leave out output={output!r}")
    changed: Explainer = replace(cast(Any, explainer), output=output)
    return changed


DEFAULT_SETTINGS: Mapping[str, Mapping[str, Any]] = {"integrated-gradients": {"steps": 20, "output": "logit"}}
"""Settings of default explainers that differ from those of the same explainer by name."""


def default_explainer(model: Model | type[Model], pair: bool = False) -> str:
    """The default explainer, as measured by studies/default_explainer.

    rationale              a rationalizer
    attention              a TextClassifier of single texts: its technique trains the attention
    leave-one-out          a TextClassifier of pairs, since attention covers only the text; a black box
    integrated-gradients   another network with embeddings: signed, and for both texts of a pair
    """
    if "selection" in model.capabilities:
        return "rationale"
    if "extension_points" in model.capabilities:
        return "leave-one-out" if pair else "attention"
    return "integrated-gradients" if "embeddings" in model.capabilities else "leave-one-out"
