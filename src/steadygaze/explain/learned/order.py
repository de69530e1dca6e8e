"""What a user asks for when an explainer is to be fitted, checked before anything is read."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from steadygaze.config import build, changed, field_names
from steadygaze.errors import UserError, unknown
from steadygaze.explain.learned import METHODS
from steadygaze.explain.learned.cxplain import CXPlain
from steadygaze.explain.learned.images import USUAL, Canvas, image_settings
from steadygaze.explain.learned.selecting import Selecting, Technique

Method = Selecting | CXPlain
OF_TEXTS = ("dimension", "removal", "shown", "variant", "length")
"""Settings that mean nothing where there are no words."""
OF_TECHNIQUES = {"pretraining_epochs": ("random-pretraining", "random-query"), "clip": ("mask-neutral",)}
"""Settings that mean nothing without one of these."""
MITIGATION: Technique = "random-pretraining"
"""Of selectors that are conditioned on the prediction, unless the user names a technique."""
OF_LOOKS = ("shown", "sure")
"""Settings that no number depends on."""


def ordered(
    explainer: str, k: int | None, technique: str | None, query: bool | None, settings: Mapping[str, Any] | None
) -> Method:
    """For texts; what is None is as the method has it."""
    kind, values = _asked(explainer, {"k": k, "technique": technique, "query": query}, settings)
    return _possible(build(kind, values), values)


def ordered_for_images(
    explainer: str, k: int | None, technique: str | None, query: bool | None, settings: Mapping[str, Any] | None
) -> tuple[Method, Canvas]:
    """For images; what is None is as the papers have it for them."""
    kind, values = _asked(explainer, {"k": k, "technique": technique, "query": query}, settings)
    if wrong := sorted(values.keys() & set(OF_TEXTS)):
        raise UserError(f"setting {wrong[0]!r} is for texts; of images it changes nothing")
    own = [name for name in field_names(kind) if name not in OF_TEXTS]
    for key in values.keys() - {*own, *field_names(Canvas)}:
        raise unknown("setting", key, [*own, *field_names(Canvas)])
    canvas = build(Canvas, {key: values.pop(key) for key in field_names(Canvas) if key in values})
    return _possible(_built(kind, values), values), canvas


def name_of(how: Method) -> str:
    """As METHODS has it."""
    return next(name for name, kind in METHODS.items() if type(how) is kind)


def said_of(how: Method, facts: Mapping[str, Any]) -> dict[str, str | int]:
    """What a number depends on, of all that was asked for and is known of the fit (its `facts`)."""
    own: dict[str, str | int] = {"explainer": name_of(how), "k": how.k, "epochs": how.epochs}
    if not isinstance(how, CXPlain):
        own |= {"query": int(how.query), "technique": how.technique, "approximator": how.approximator}
    idle = [*OF_LOOKS, *(key for key, users in OF_TECHNIQUES.items() if own.get("technique") not in users)]
    more = {key: value for key, value in changed(type(how), asdict(how)).items() if key not in {*own, *idle}}
    own |= {"settings": ",".join(f"{key}={more[key]}" for key in sorted(more))} if more else {}
    return {**own, **{key: facts[key] for key in ("seed", "fitted-to") if key in facts}}


def _asked(
    explainer: str, own: Mapping[str, Any], settings: Mapping[str, Any] | None
) -> tuple[type[Selecting] | type[CXPlain], dict[str, Any]]:
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
    if not issubclass(kind, Selecting) and (wrong := sorted(given.keys() - {"k"})):
        raise UserError(f"{explainer} selects nothing while it learns: it takes no {wrong[0]}")
    return kind, _mitigated(kind, {**given, **more})


def _mitigated(kind: type[Selecting] | type[CXPlain], values: dict[str, Any]) -> dict[str, Any]:
    """A selector conditioned on the prediction can leak it: random-pretraining unless another technique is named."""
    if issubclass(kind, Selecting) and "technique" not in values and values.get("query", kind().query) is True:
        return {**values, "technique": MITIGATION} if MITIGATION in kind.techniques else values
    return values


def _built(kind: type[Selecting] | type[CXPlain], values: dict[str, Any]) -> Method:
    if issubclass(kind, Selecting):
        return image_settings(kind, values)
    return build(kind, {"k": USUAL["k"], **values})


def _possible(how: Method, given: Mapping[str, Any]) -> Method:
    """Refused where the method has no such technique, or the technique no such setting."""
    if not isinstance(how, Selecting):
        return how
    if how.technique not in how.techniques:
        raise UserError(f"{name_of(how)} takes no technique {how.technique!r}; it has {', '.join(how.techniques)}")
    if how.technique == "random-query" and not how.query:
        raise UserError("random-query is for selectors that are told what the black box says: query=True (--query)")
    if "length" in given and how.variant != "released":
        raise UserError("setting 'length' is for variant=released; of variant=paper it changes nothing")
    for key, users in OF_TECHNIQUES.items():
        if key in given and how.technique not in users:
            raise UserError(f"setting {key!r} is for {' and '.join(users)}; of {how.technique} it changes nothing")
    return how
