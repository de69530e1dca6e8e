"""sg.explain, TextClassifier.explain and ModelAdapter.explain take the same arguments and give the same result."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import steadygaze as sg
from estimator.tiny import TEXTS, fitted
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.auditing.audit import audit
from steadygaze.results.audit_config import ProbeConfig

LOADING = ("model", "classes", "device")
"""Arguments of sg.explain that belong to `sg.load`."""
EXPLAIN: dict[str, Callable[..., Any]] = {
    "sg.explain": lambda *args, **options: sg.explain(fitted(), *args, **options),
    "TextClassifier": lambda *args, **options: fitted().explain(*args, **options),
    "ModelAdapter": lambda *args, **options: as_model(fitted()).explain(*args, **options),
}
every_explain = pytest.mark.parametrize("explain", EXPLAIN.values(), ids=EXPLAIN)


def as_model(model: Any) -> ModelAdapter:
    from steadygaze.adapters.as_adapter import as_adapter

    return as_adapter(model)


def options_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """All options but the texts and what `sg.load` takes."""
    parameters = inspect.signature(function).parameters
    return {name: value for name, value in parameters.items() if name not in (*LOADING, "self", "X", "texts")}


def test_every_explain_has_the_same_options_with_the_same_defaults_and_types() -> None:
    first, *others = (options_of(method) for method in (sg.explain, sg.TextClassifier.explain, ModelAdapter.explain))
    for other in others:
        assert list(other) == list(first)
        for name, option in first.items():
            assert (other[name].kind, other[name].default) == (option.kind, option.default), name
            if name != "output":  # one of them is imported for type checkers only
                assert other[name].annotation == option.annotation, name


@pytest.mark.parametrize(
    "options",
    [
        {"explainer": "lime", "settings": {"samples": 64}, "seed": 3, "target": "pos", "batch_size": 2},
        {"explainer": "integrated-gradients", "settings": {"steps": 4}, "output": "logit", "granularity": "piece"},
    ],
)
def test_every_explain_gives_the_same_explanations(options: dict[str, Any]) -> None:
    one, *others = ([e.to_dict() for e in explain(TEXTS[:3], **options)] for explain in EXPLAIN.values())
    assert all(other == one for other in others)
    plain = {name: value for name, value in options.items() if name not in ("settings", "seed")}
    assert not np.allclose(EXPLAIN["TextClassifier"](TEXTS[0], **plain).weights, one[0]["weights"], atol=1e-9)


@every_explain
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"settings": {"sample": 40}, "explainer": "lime"}, "did you mean 'samples'"),
        ({"settings": 40}, "settings must be a dict, found 40"),
        ({"seed": -1}, "seed must be a whole number from 0 up"),
        ({"batch_size": 0}, "batch_size must be a whole number from 1 up"),
        ({"granularity": "wrod"}, "did you mean 'word'"),
        ({"output": "logits"}, "did you mean 'logit'"),
        ({"setings": {}}, "unknown argument 'setings': did you mean 'settings'"),
    ],
)
def test_every_explain_refuses_the_same_mistakes(
    explain: Callable[..., Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(sg.UserError, match=message):
        explain(TEXTS[0], **options)


def test_the_signature_of_an_audit_names_every_setting_so_that_type_checkers_find_typos() -> None:
    parameters = inspect.signature(inspect.unwrap(audit)).parameters
    assert not [name for name, value in parameters.items() if value.kind is value.VAR_KEYWORD]
    for field in fields(ProbeConfig):
        assert parameters[field.name].default == field.default, field.name
        assert parameters[field.name].kind is inspect.Parameter.KEYWORD_ONLY


def test_a_misspelled_setting_of_an_audit_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(sg.UserError, match="unknown argument 'raduis': did you mean 'radius'"):
        sg.audit(fitted(), TEXTS, raduis=0.1)
    with pytest.raises(sg.UserError, match="setting 'k': found 'seven'"):
        sg.audit(fitted(), TEXTS, k="seven")
    with pytest.raises(sg.UserError, match="unknown argument 'explaner': did you mean 'explainer'"):
        sg.explain_images(None, [], explaner="lime")
