"""Protocols with a number for each text: in the order of the split, whatever the batch, with the model unchanged."""

import pytest
import torch

from contract.probing import in_use, state, synonyms
from contract.tiny import TEXTS, cached_classifier, split
from properties.protocols.cases import case_of, findings_by, row_of
from steadygaze.properties.faithfulness import FAITHFULNESS
from steadygaze.properties.probes import counterfactual_attention as search
from steadygaze.properties.protocols.faithfulness import (
    attention_interventions,
    erasure,
    faithfulness,
    gradient_agreement,
)
from steadygaze.properties.protocols.stability import stability
from steadygaze.properties.stability import STABILITY
from steadygaze.results.audit_config import ProbeConfig

PLAN = ProbeConfig(seed=4)
SUBSTITUTIONS = {"1-synonym": (synonyms(), 1), "3-synonyms": (synonyms(), 3)}
NAMES = {
    attention_interventions: {
        *("prediction-change/permuted", "jensen-shannon/adversarial"),
        *("kendall/randomized", "jensen-shannon/randomized"),
    },
    faithfulness: {
        name for check in FAITHFULNESS.checks if check.run in (erasure, gradient_agreement) for name in check.rows
    },
    stability: {*STABILITY.checks[0].rows},
}
"""The rows that the protocols report, as their checks declare them."""
PROTOCOL = pytest.mark.parametrize("protocol", NAMES, ids=lambda protocol: protocol.__name__)


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """Three classes are searched: a few steps will do here."""
    monkeypatch.setattr(search, "STEPS", 4)


def findings_of(protocol, model, data, batch_size: int = 256) -> dict[str, torch.Tensor]:
    return findings_by(protocol, case_of(model, data, PLAN, SUBSTITUTIONS, batch_size))


def assert_equal(values: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    torch.testing.assert_close(values, expected, rtol=0, atol=1e-11, equal_nan=True)


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])
@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "transformer"])
@PROTOCOL
def test_one_number_per_text_in_the_order_of_the_split_as_if_measured_text_by_text(protocol, encoder, pair):
    model, data = cached_classifier(encoder, pair), split(pair=pair)
    findings = findings_of(protocol, model, data)
    assert set(findings) == NAMES[protocol]
    assert {(values.shape, values.dtype) for values in findings.values()} == {((len(TEXTS),), torch.float64)}
    for row in range(len(data)):
        alone = findings_of(protocol, model, row_of(data, row))
        assert_equal(alone, {name: values[[row]] for name, values in findings.items()})


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("size", [5, pytest.param(1, marks=pytest.mark.slow)])
@PROTOCOL
def test_the_size_of_a_batch_does_not_matter(protocol, size):
    """12 texts: none is lost where they do not divide evenly."""
    model, data = cached_classifier(), split(["s" + "w" * n + "s" for n in (3, 9, 1, 0, 5, 5, 2, 8, 4, 7, 6, 3)])
    findings = findings_of(protocol, model, data)
    assert_equal(findings_of(protocol, model, data, size), findings)
    assert {len(values) for values in findings.values()} == {12}


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("encoder", ["bilstm", "transformer"])
@PROTOCOL
def test_the_model_is_left_as_it_was(protocol, encoder):
    model = in_use(encoder)
    before = state(model)
    assert list(protocol(case_of(model, split(), PLAN, SUBSTITUTIONS)))
    assert state(model) == before
