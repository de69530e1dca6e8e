"""The request of an audit: drawn texts, and one output of a model with several outputs."""

from typing import Any

import pytest

import steadygaze as sg
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.auditing.prepare_case import compose_request
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.results.audit_config import AuditConfig, Runtime

TEXTS = [f"a {word} film" for word in ("good", "bad", "fine", "dull", "rude", "long", "warm", "cold")]
SETS: list[Any] = [{"rude"}, set(), {"long"}, {"rude", "long"}, {"rude"}, {"long"}, set(), {"rude"}]


class Tags:
    """A multi-label model in the form of scikit-learn."""

    classes_ = ("rude", "long")
    multilabel_ = True

    def predict_proba(self, texts: list[str]) -> list[list[float]]:
        return [[0.9 if "rude" in text else 0.2, 0.8 if "long" in text else 0.3] for text in texts]


def request(labels: list[Any], limit: int | None, target: str | None = "rude") -> Any:
    adapter = as_adapter(Tags())
    assert adapter.task == "multi-label"
    examples = [Example(text, label) for text, label in zip(TEXTS, labels, strict=True)]
    config = AuditConfig(model="tags", data="texts", limit=limit, target=target)
    return compose_request([adapter], examples, config, Runtime())


def test_labels_of_the_drawn_texts_are_those_of_the_output():
    composed = request(SETS, 3)
    expected = {text: "rude" if "rude" in names else "not rude" for text, names in zip(TEXTS, SETS, strict=True)}
    assert len(composed.examples) == composed.draw.size == 3
    assert {example.text: example.label for example in composed.examples}.items() <= expected.items()
    assert composed.adapter.classes == ("not rude", "rude")


def test_an_error_names_the_row_of_the_data_not_of_the_draw():
    for row in range(len(TEXTS)):
        with pytest.raises(UserError, match=rf"labels\[{row}\] has the label 'kind'"):
            request([*SETS[:row], {"kind"}, *SETS[row + 1 :]], 3)


def test_texts_without_labels_stay_without():
    assert [example.label for example in request([None] * len(TEXTS), None).examples] == [None] * len(TEXTS)


def test_the_function_composes_the_same_request(monkeypatch):
    """`sg.audit` passes its texts, labels and settings on as they are."""
    calls: list[Any] = []

    def stop(composed: Any) -> None:
        calls.append(composed)
        raise InterruptedError

    monkeypatch.setattr("steadygaze.auditing.audit.run_audit", stop)
    with pytest.raises(InterruptedError):
        sg.audit(Tags(), TEXTS, SETS, target="rude", limit=3, k=5)
    (composed,) = calls
    assert composed.examples == request(SETS, 3).examples
    assert (composed.config.k, composed.config.limit, composed.draw) == (5, 3, request(SETS, 3).draw)
