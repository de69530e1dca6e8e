"""What a user asks for when an explainer is to be fitted, checked before anything is read."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import build, non_default
from steadygaze.explainers.learned import METHODS
from steadygaze.explainers.learned.cxplain import CXPlain
from steadygaze.explainers.learned.selector import SelectorConfig, Technique

Method = SelectorConfig | CXPlain
OF_TEXTS = ("dimension", "removal", "top_words", "variant", "length")
"""Settings that mean nothing where there are no words."""
OF_TECHNIQUES = {"pretraining_epochs": ("random-pretraining", "random-query"), "clip": ("mask-neutral",)}
"""Settings that mean nothing without one of these."""
MITIGATION: Technique = "random-pretraining"
"""Of selectors that are conditioned on the prediction, unless the user names a technique."""
OF_LOOKS = ("top_words", "interval_level")
"""Settings that no number depends on."""


def fit_config(
    explainer: str, k: int | None, technique: str | None, query: bool | None, settings: Mapping[str, Any] | None
) -> Method:
    """For texts; what is None is as the method has it."""
    kind, values = requested_method(explainer, {"k": k, "technique": technique, "query": query}, settings)
    return check_method(build(kind, values), values)


def method_name(how: Method) -> str:
    """As METHODS has it."""
    return next(name for name, kind in METHODS.items() if type(how) is kind)


def row_settings(how: Method, facts: Mapping[str, Any]) -> dict[str, str | int]:
    """What a number depends on, of all that was asked for and is known of the fit (its `facts`)."""
    own: dict[str, str | int] = {"explainer": method_name(how), "k": how.k, "epochs": how.epochs}
    if not isinstance(how, CXPlain):
        own |= {"query": int(how.query), "technique": how.technique, "approximator": how.approximator}
    idle = [*OF_LOOKS, *(key for key, users in OF_TECHNIQUES.items() if own.get("technique") not in users)]
    more = {key: value for key, value in non_default(type(how), asdict(how)).items() if key not in {*own, *idle}}
    own |= {"settings": ",".join(f"{key}={more[key]}" for key in sorted(more))} if more else {}
    return {**own, **{key: facts[key] for key in ("seed", "fitted-to") if key in facts}}


def requested_method(
    explainer: str, own: Mapping[str, Any], settings: Mapping[str, Any] | None
) -> tuple[type[SelectorConfig] | type[CXPlain], dict[str, Any]]:
    """A method, and all values that were given for it."""
    if not isinstance(explainer, str):
        raise UserError(
            f"explainer must be a name, {', '.join(METHODS)}; found {explainer!r:.80}.  No labels are needed"
        )
    if explainer not in METHODS:
        raise unknown("explainer", explainer, METHODS)
    if not isinstance(settings, Mapping | None):
        raise UserError(f"settings must be a mapping of names to values, found {settings!r:.80}")
    kind, more = METHODS[explainer], dict(settings or {})
    given = {key: value for key, value in own.items() if value is not None}
    if twice := sorted(given.keys() & more.keys()):
        raise UserError(f"{twice[0]} is given twice: once by itself, once in settings")
    if not issubclass(kind, SelectorConfig) and (wrong := sorted(given.keys() - {"k"})):
        raise UserError(f"{explainer} selects nothing while it learns: it takes no {wrong[0]}")
    return kind, _mitigated(kind, {**given, **more})


def _mitigated(kind: type[SelectorConfig] | type[CXPlain], values: dict[str, Any]) -> dict[str, Any]:
    """A selector conditioned on the prediction can leak it: random-pretraining unless another technique is named."""
    if issubclass(kind, SelectorConfig) and "technique" not in values and values.get("query", kind().query) is True:
        return {**values, "technique": MITIGATION} if MITIGATION in kind.techniques else values
    return values


def check_method(how: Method, given: Mapping[str, Any]) -> Method:
    """Refused where the method has no such technique, or the technique no such setting."""
    if not isinstance(how, SelectorConfig):
        return how
    if how.technique not in how.techniques:
        raise UserError(f"{method_name(how)} takes no technique {how.technique!r}; it has {', '.join(how.techniques)}")
    if how.technique == "random-query" and not how.query:
        raise UserError("random-query is for selectors that are told what the black box says: query=True (--query)")
    if "length" in given and how.variant != "released":
        raise UserError("setting 'length' is for variant=released; of variant=paper it changes nothing")
    for key, users in OF_TECHNIQUES.items():
        if key in given and how.technique not in users:
            raise UserError(f"setting {key!r} is for {' and '.join(users)}; of {how.technique} it changes nothing")
    return how
