"""Settings of a fitted explainer, checked before any data is read."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import build, non_default
from steadygaze.explainers.learned import METHODS
from steadygaze.explainers.learned.cxplain import CXPlain
from steadygaze.explainers.learned.l2x import MitigationName, SelectorConfig

Method = SelectorConfig | CXPlain
OF_TEXTS = ("dimension", "removal", "top_words", "variant", "length")
"""Settings that apply to texts only."""
MITIGATION_SETTINGS = {"pretraining_epochs": ("random-pretraining", "random-query"), "clip": ("mask-neutral",)}
"""Settings that apply to these mitigations only."""
MITIGATION: MitigationName = "random-pretraining"
"""Default mitigation of selectors that are conditioned on the prediction."""
DISPLAY_SETTINGS = ("top_words", "interval_level")
"""Settings that change no measured value."""
COSTS = {"ail": "takes about ten times as long as l2x: it trains three larger networks for 20 epochs instead of 5"}
"""Cost of a fit with default settings, by method; methods with a cost like that of l2x are left out."""


def fit_config(
    explainer: str, k: int | None, mitigation: str | None, conditioned: bool | None, settings: Mapping[str, Any] | None
) -> Method:
    """The method for texts; None keeps the method's default."""
    kind, values = requested_method(explainer, {"k": k, "mitigation": mitigation, "conditioned": conditioned}, settings)
    return check_method(build(kind, values), values)


def method_name(config: Method) -> str:
    """Its name in METHODS."""
    return next(name for name, kind in METHODS.items() if type(config) is kind)


def row_settings(config: Method, facts: Mapping[str, Any]) -> dict[str, str | int]:
    """Settings and facts of the fit that determine a measured value."""
    values = asdict(config)
    settings: dict[str, str | int] = {"explainer": method_name(config), "k": config.k, "epochs": config.epochs}
    settings |= {
        key: int(value) if isinstance(value := values[key], bool) else value for key in config.signature_settings
    }
    idle = [
        *DISPLAY_SETTINGS,
        *(key for key, users in MITIGATION_SETTINGS.items() if settings.get("mitigation") not in users),
    ]
    changed = non_default(type(config), values)
    if others := sorted(changed.keys() - {*settings, *idle}):
        settings["settings"] = ",".join(f"{key}={changed[key]}" for key in others)
    return {**settings, **{key: facts[key] for key in ("seed", "fitted-to") if key in facts}}


def requested_method(
    explainer: str, options: Mapping[str, Any], settings: Mapping[str, Any] | None
) -> tuple[type[SelectorConfig] | type[CXPlain], dict[str, Any]]:
    """A method and all values set for it."""
    if not isinstance(explainer, str):
        raise UserError(
            f"explainer must be a name, {', '.join(METHODS)}; found {explainer!r:.80}.  No labels are needed"
        )
    if explainer not in METHODS:
        raise unknown("explainer", explainer, METHODS)
    if not isinstance(settings, Mapping | None):
        raise UserError(f"settings must be a mapping of names to values, found {settings!r:.80}")
    kind, named_settings = METHODS[explainer], dict(settings or {})
    arguments = {key: value for key, value in options.items() if value is not None}
    if duplicates := sorted(arguments.keys() & named_settings.keys()):
        raise UserError(f"{duplicates[0]} is set twice: as an argument and in settings; remove one of them")
    if not issubclass(kind, SelectorConfig) and (inapplicable := sorted(arguments.keys() - {"k"})):
        raise UserError(f"{explainer} does not select units in training: remove {inapplicable[0]}")
    values = {**arguments, **named_settings}
    if issubclass(kind, SelectorConfig) and MITIGATION in kind.mitigations:
        conditioned = values.get("conditioned", kind().conditioned) is True
        values = {"mitigation": MITIGATION, **values} if conditioned else values
    return kind, values


def check_method(config: Method, values: Mapping[str, Any]) -> Method:
    """Raise an error if the method lacks the mitigation, or the mitigation the setting."""
    if not isinstance(config, SelectorConfig):
        return config
    if config.mitigation not in config.mitigations:
        raise UserError(
            f"{method_name(config)} does not support mitigation {config.mitigation!r}; "
            f"choose from {', '.join(config.mitigations)}"
        )
    if config.mitigation == "random-query" and not config.conditioned:
        raise UserError(
            "random-query needs a selector that is conditioned on the prediction: set conditioned=True (--conditioned)"
        )
    if "length" in values and config.variant != "released":
        raise UserError("setting 'length' is for variant=released; it has no effect for variant=paper")
    for key, users in MITIGATION_SETTINGS.items():
        if key in values and config.mitigation not in users:
            raise UserError(f"setting {key!r} is for {' and '.join(users)}; it has no effect for {config.mitigation}")
    return config
