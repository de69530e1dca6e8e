"""Settings of a fitted explainer, checked before any data is read."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import build, non_default
from steadygaze.explainers.learned import METHODS
from steadygaze.explainers.learned.cxplain import CXPlain
from steadygaze.explainers.learned.selector import MitigationName, SelectorConfig

Method = SelectorConfig | CXPlain
OF_TEXTS = ("dimension", "removal", "top_words", "variant", "length")
"""Settings that apply to texts only."""
OF_MITIGATIONS = {"pretraining_epochs": ("random-pretraining", "random-query"), "clip": ("mask-neutral",)}
"""Settings that apply to these mitigations only."""
MITIGATION: MitigationName = "random-pretraining"
"""Default mitigation of selectors that are conditioned on the prediction."""
OF_LOOKS = ("top_words", "interval_level")
"""Settings that change no measured value."""


def fit_config(
    explainer: str, k: int | None, mitigation: str | None, conditioned: bool | None, settings: Mapping[str, Any] | None
) -> Method:
    """The method for texts; None keeps the method's default."""
    kind, values = requested_method(explainer, {"k": k, "mitigation": mitigation, "conditioned": conditioned}, settings)
    return check_method(build(kind, values), values)


def method_name(how: Method) -> str:
    """Its name in METHODS."""
    return next(name for name, kind in METHODS.items() if type(how) is kind)


def row_settings(how: Method, facts: Mapping[str, Any]) -> dict[str, str | int]:
    """Settings and facts of the fit that determine a measured value."""
    own: dict[str, str | int] = {"explainer": method_name(how), "k": how.k, "epochs": how.epochs}
    if not isinstance(how, CXPlain):
        own |= {"conditioned": int(how.conditioned), "mitigation": how.mitigation, "approximator": how.approximator}
    idle = [*OF_LOOKS, *(key for key, users in OF_MITIGATIONS.items() if own.get("mitigation") not in users)]
    more = {key: value for key, value in non_default(type(how), asdict(how)).items() if key not in {*own, *idle}}
    own |= {"settings": ",".join(f"{key}={more[key]}" for key in sorted(more))} if more else {}
    return {**own, **{key: facts[key] for key in ("seed", "fitted-to") if key in facts}}


def requested_method(
    explainer: str, own: Mapping[str, Any], settings: Mapping[str, Any] | None
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
    kind, more = METHODS[explainer], dict(settings or {})
    arguments = {key: value for key, value in own.items() if value is not None}
    if duplicates := sorted(arguments.keys() & more.keys()):
        raise UserError(f"{duplicates[0]} is set twice: as an argument and in settings; remove one of them")
    if not issubclass(kind, SelectorConfig) and (wrong := sorted(arguments.keys() - {"k"})):
        raise UserError(f"{explainer} does not select units in training: remove {wrong[0]}")
    return kind, _mitigated(kind, {**arguments, **more})


def _mitigated(kind: type[SelectorConfig] | type[CXPlain], values: dict[str, Any]) -> dict[str, Any]:
    """A selector conditioned on the prediction can leak it: random-pretraining unless another mitigation is named."""
    if (
        issubclass(kind, SelectorConfig)
        and "mitigation" not in values
        and values.get("conditioned", kind().conditioned) is True
    ):
        return {**values, "mitigation": MITIGATION} if MITIGATION in kind.mitigations else values
    return values


def check_method(how: Method, given: Mapping[str, Any]) -> Method:
    """Raise an error if the method lacks the mitigation, or the mitigation the setting."""
    if not isinstance(how, SelectorConfig):
        return how
    if how.mitigation not in how.mitigations:
        raise UserError(
            f"{method_name(how)} does not support mitigation {how.mitigation!r}; "
            f"choose from {', '.join(how.mitigations)}"
        )
    if how.mitigation == "random-query" and not how.conditioned:
        raise UserError(
            "random-query needs a selector that is conditioned on the prediction: set conditioned=True (--conditioned)"
        )
    if "length" in given and how.variant != "released":
        raise UserError("setting 'length' is for variant=released; it has no effect for variant=paper")
    for key, users in OF_MITIGATIONS.items():
        if key in given and how.mitigation not in users:
            raise UserError(f"setting {key!r} is for {' and '.join(users)}; it has no effect for {how.mitigation}")
    return how
