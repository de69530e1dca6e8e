"""The catalog knows every number that an audit reports, and what an audit reports keeps to it."""

import pytest
import torch

from contract.probing import synonyms
from contract.tiny import cached_classifier, split
from steadygaze.cli.registry_listing import list_registry
from steadygaze.core.errors import UserError
from steadygaze.explainers.attention import Attention
from steadygaze.properties import PROPERTIES, all_measures, check_name, conditions, measure_of, row_names
from steadygaze.properties.audit_case import AuditCase
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.results.row import MeasureKey


@pytest.fixture(scope="module")
def case() -> AuditCase:
    data = split(["s" + "w" * n + "s" for n in (3, 5, 2, 8, 4, 6, 0, 1, 7, 5, 3, 4, 6, 2, 5, 9)])
    torch.manual_seed(0)
    some = torch.rand(len(data.text.ids)) < 0.4
    config, substitutions = ProbeConfig(sample=5), {"1-synonym": (synonyms(), 1)}
    other = AuditCase(cached_classifier("average", score="dot"), data, {"attention": Attention()}, config)
    model = cached_classifier("average")
    return AuditCase(
        model, data, {"attention": Attention()}, config, some, ~some, some, (other,), substitutions=substitutions
    )


@pytest.mark.sweep(keep=("correctness", "stability", "plausibility", "shortcut-leakage"))
@pytest.mark.parametrize("name", PROPERTIES)
def test_everything_a_protocol_finds_is_in_the_catalog_and_within_its_bounds(name, case):
    findings = [finding for check in PROPERTIES[name].checks for finding in check.run(case)]
    assert findings
    for finding in findings:
        low, high = measure_of(finding.measure).bounds
        if finding.values is not None:
            numbers = finding.values[~finding.values.isnan()]
            assert finding.values.shape == (16,), finding.measure
            assert numbers.numel() == 0 or low - 1e-9 <= numbers.mean() <= high + 1e-9, finding.measure
        assert finding.value is None or low <= finding.value <= high, finding.measure


def test_every_number_that_decides_a_question_is_in_the_catalog_and_points_the_same_way():
    for item in PROPERTIES.values():
        for name, bound in item.rule.thresholds.items() if item.rule else ():
            assert name in row_names()
            better = measure_of(name).direction
            assert better in ("neither", "higher" if bound.good > bound.bad else "lower"), name


def test_every_name_of_a_number_is_described_and_every_measure_but_one_has_a_name():
    """Total variation of predictions is called prediction-change; of attentions nothing reports it."""
    names = row_names()
    assert all(measure_of(name).sentence for name in names)
    assert {name for name, measure in all_measures().items() if not measure.keys} == {"total-variation"}
    assert {MeasureKey.parse(name).probe for name in names} == {"", *conditions()}
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ["accuracy", "jensen-shannon/noise", "comprehensiveness", "sufficiency/5%"])
def test_a_name_that_an_audit_has_is_let_through(name):
    check_name(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "jensen-shannon",
            "jensen-shannon is not .* the rows of jensen-shannon are jensen-shannon/noise, .*/randomized",
        ),
        ("pearson/noise", "the rows of pearson are pearson/gradient, pearson/gradient-through-attention"),
        ("accuracy/noise", "the rows of accuracy are accuracy, accuracy/uniform, accuracy/above-uniform"),
        ("acuracy", "unknown measure 'acuracy': did you mean 'accuracy'"),
        ("total-variation", "unknown measure 'total-variation'"),
        ("", "unknown measure ''"),
    ],
)
def test_a_name_that_no_audit_has_is_refused_with_those_that_would_be_right(name, message):
    with pytest.raises(UserError, match=message):
        check_name(name)


def test_every_name_is_listed_with_what_it_is():
    rows = {row["name"]: row["about"] for row in list_registry("measures")}
    assert list(rows) == row_names()
    assert rows["jensen-shannon/noise"] == (
        "Shift of the explanation: Jensen–Shannon divergence in nats.  Uniform noise on the embedding of every word."
    )
    assert rows["kendall/randomized"] == all_measures()["kendall/randomized"].sentence
    assert rows["accuracy"] == all_measures()["accuracy"].sentence


def test_a_number_with_its_own_facts_is_not_described_by_its_probe():
    assert measure_of("average-precision/above-random").bounds == (-1, 1)
    assert measure_of("average-precision").bounds == (0, 1)
    assert measure_of("jensen-shannon/noise") == all_measures()["jensen-shannon"]
    with pytest.raises(KeyError):
        measure_of("nonsense/noise")
