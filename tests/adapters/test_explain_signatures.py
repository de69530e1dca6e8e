"""Every `explain` takes the options of ExplainRequest, describes them the same, and gives the same result.

Type checkers find the misspelled options of public functions.
"""

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import commands
import steadygaze as sg
from estimator.tiny import TEXTS, fitted
from printed_pages import ROOT
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.auditing.audit import audit
from steadygaze.core.errors import UserError
from steadygaze.estimator.explain_request import ENTRY, ExplainRequest
from steadygaze.results.audit_config import ProbeConfig

LOADING = ("model", "classes", "device")
"""Arguments of sg.explain that belong to `sg.load`."""
PUBLIC = {"sg.explain": sg.explain, "TextClassifier": sg.TextClassifier.explain, "ModelAdapter": ModelAdapter.explain}
every_public = pytest.mark.parametrize("function", PUBLIC.values(), ids=PUBLIC)
OPTIONS: dict[str, Any] = {
    "explainer": "lime",
    "target": "pos",
    "granularity": "piece",
    "output": "logit",
    "settings": {"samples": 64},
    "seed": 3,
    "batch_size": 2,
}
"""A value of each option that is not its default."""
EXPLAIN: dict[str, Callable[..., Any]] = {
    "sg.explain": lambda *args, **options: sg.explain(fitted(), *args, **options),
    "TextClassifier": lambda *args, **options: fitted().explain(*args, **options),
    "ModelAdapter": lambda *args, **options: as_model(fitted()).explain(*args, **options),
}
every_explain = pytest.mark.parametrize("explain", EXPLAIN.values(), ids=EXPLAIN)


def as_model(model: Any) -> ModelAdapter:
    from steadygaze.adapters.as_adapter import as_adapter

    return as_adapter(model)


def signature_of(function: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """Name, kind, default and type of each argument, without those of `sg.load`; `X` is `texts`."""
    hints, own = get_type_hints(inspect.unwrap(function)), inspect.signature(function).parameters
    return [
        ("texts", value.kind, hints[name]) if name in ("X", "texts") else (name, value.kind, hints[name], value.default)
        for name, value in own.items()
        if name not in (*LOADING, "self")
    ]


@every_public
def test_every_explain_has_the_options_of_the_request_with_their_defaults_and_types(
    function: Callable[..., Any],
) -> None:
    hints = get_type_hints(ExplainRequest)
    signature = inspect.signature(ExplainRequest).parameters
    assert list(signature) == [field.name for field in fields(ExplainRequest)] == ["texts", *OPTIONS]
    expected = [(name, value.kind, hints[name], value.default) for name, value in signature.items()]
    assert signature_of(function) == [expected[0][:3], *expected[1:]]


@every_public
def test_every_explain_describes_the_options_as_the_request_does(function: Callable[..., Any]) -> None:
    described = {match[1]: match[0] for match in ENTRY.finditer(inspect.getdoc(ExplainRequest) or "")}
    assert list(described) == ["texts", *OPTIONS]
    own = {match[1]: match[0] for match in ENTRY.finditer(inspect.getdoc(function) or "")}
    assert {name: own[name] for name in OPTIONS} == {name: described[name] for name in OPTIONS}
    assert list(own) == [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.fixture
def request_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], dict[str, Any]]:
    """The first request that a call builds; the call ends there."""
    seen: list[ExplainRequest] = []

    def stop(request: ExplainRequest) -> None:
        seen.append(request)
        raise UserError("the request is built")

    def first(call: Callable[[], object]) -> dict[str, Any]:
        with suppress(UserError):  # a command ends with it
            call()
        return asdict(seen[0])

    monkeypatch.setattr(ExplainRequest, "__post_init__", stop)
    return first


@every_explain
def test_every_explain_passes_every_option_on(explain: Callable[..., Any], request_of: Callable[..., Any]) -> None:
    fitted()
    assert request_of(lambda: explain("a good film", **OPTIONS)) == {"texts": "a good film", **OPTIONS}


@pytest.mark.parametrize("out", [[], ["--out", "out.csv"]])
def test_the_command_passes_every_option_on(
    out: list[str], request_of: Callable[..., Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text("text\na good film\n")
    words = ["--explainer", "lime", "--target", "pos", "--granularity", "piece", "--output", "logit"]
    words += ["--set", "samples=64", "--seed", "3", "--batch-size", "2", "--file", str(tmp_path / "in.csv")]
    words += [str(tmp_path / word) if word == "out.csv" else word for word in out]
    request = request_of(lambda: commands.run(capsys, "explain", str(tmp_path / "model"), *words))
    assert request == {"texts": None, **OPTIONS}


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


@every_public
def test_a_warning_of_an_explain_is_about_the_line_of_the_caller(function: Callable[..., Any]) -> None:
    model = as_model(fitted()) if function is ModelAdapter.explain else fitted()
    with pytest.warns(UserWarning, match="no prediction for 1 empty text") as warned:
        function(model, ["a good film", ""])
    assert [warning.filename for warning in warned] == [__file__]


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


def test_a_misspelled_argument_of_a_public_function_is_refused_with_the_nearest_name() -> None:
    for function in (sg.audit, sg.certify):
        with pytest.raises(sg.UserError, match="unknown argument 'raduis': did you mean 'radius'"):
            function(fitted(), TEXTS, raduis=0.1)
    with pytest.raises(sg.UserError, match="unknown argument 'clases': did you mean 'classes'"):
        sg.evaluate(fitted(), TEXTS, ["pos"], clases=["neg", "pos"])
    with pytest.raises(sg.UserError, match="setting 'k': found 'seven'"):
        sg.audit(fitted(), TEXTS, k="seven")
    with pytest.raises(sg.UserError, match="unknown argument 'explaner': did you mean 'explainer'"):
        sg.explain_images(None, [], explaner="lime")


TYPOS = """import steadygaze as sg

clf = sg.TextClassifier()
sg.audit(clf, ["a"], raduis=0.1)  # call-arg
sg.audit(clf, ["a"], k="seven")  # arg-type
sg.explain(clf, "a", explaner="lime")  # call-arg
sg.explain(clf, "a", granularity="wrod")  # arg-type
sg.certify(clf, ["a"], raduis=0.1)  # call-arg
sg.certify(clf, ["a"], norm="l1")  # arg-type
sg.evaluate(clf, ["a"], ["b"], clases=["b", "c"])  # call-arg
sg.evaluate(clf, ["a"], ["b"], batch_size="8")  # arg-type
clf.explain("a", setings={"samples": 500})  # call-arg
clf.explain("a", output="logits")  # arg-type
"""
RIGHT = """
sg.audit(clf, ["a"], radius=0.1, k=7)
sg.explain(clf, "a", explainer="lime", granularity="word", settings={"samples": 500}, device="cpu")
sg.certify(clf, ["a"], radius=0.1, norm="l2")
sg.evaluate(clf, ["a"], ["b"], classes=["b", "c"], batch_size=8)
clf.explain("a", settings={"samples": 500}, output="logit")
"""


@pytest.mark.slow
def test_mypy_finds_every_typo_in_a_call_of_a_public_function_and_no_other_error(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "calls.py").write_text(TYPOS + RIGHT)
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(tmp_path / "calls.py")]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    errors = re.findall(r"calls\.py:(\d+): error: .*\[(.+)\]$", ended.stdout, re.MULTILINE)
    lines = enumerate(TYPOS.splitlines(), 1)
    expected = [(str(number), line.partition("  # ")[2]) for number, line in lines if "  # " in line]
    assert len(expected) == 10
    assert errors == expected, ended.stdout
