"""Plausibility: chosen words and ranks against marks that are written down."""

from dataclasses import replace

import pytest
import sklearn.metrics
import torch
from torch import Tensor

from contract.tiny import ragged
from properties.protocols.constant_models import ConstantExplainer, ConstantModel, Costly, laid, tokens
from steadygaze.data.batches import Data
from steadygaze.properties.audit_case import AuditCase, Finding
from steadygaze.properties.measures import plausibility_measures
from steadygaze.properties.protocols.plausibility import MICRO, NO_RATIONALES, OF_CHOSEN, OF_WEIGHTS, plausibility
from steadygaze.results.audit_config import ProbeConfig, Runtime

EVERY = [*OF_CHOSEN, *OF_WEIGHTS, *MICRO]


def case_of(
    weights: Tensor, rationales: Tensor | None, lengths: list[int], plan: ProbeConfig | None = None, size: int = 256
) -> AuditCase:
    data = Data(ragged(["w" * n for n in lengths]))
    label = torch.zeros(len(lengths), dtype=torch.long)
    explainers, marks = {"written": ConstantExplainer(weights)}, laid(rationales, data)
    return AuditCase(
        ConstantModel(label), data, explainers, plan or ProbeConfig(), marks, runtime=Runtime(batch_size=size)
    )


def findings_in(case: AuditCase) -> dict[str, Finding]:
    findings = list(plausibility(case))
    assert [finding.measure for finding in findings] == EVERY
    return {finding.measure: finding for finding in findings}


def test_three_texts_by_hand():
    """Marked {1, 2} of four words, weights 4 3 2 1: chosen {0, 1}, of which one is marked: P = R = F1 = 1/2.

    Precision at word 1 is 1/2, at word 2 is 2/3: AUPRC 7/12, against 49/72 of a random order.  Mass 5/10.  Runs {0, 1}
    and {1, 2} share a third: 0.  Marked {0} of three, weights 9 1 0: all right.  The third has no annotation.
    Together two of three chosen are right.
    """
    weights = torch.tensor([[4.0, 3, 2, 1], [9.0, 1, 0, 0], [1.0, 2, 3, 4]], dtype=torch.float64)
    findings = findings_in(case_of(weights, tokens(".xx.", "x...", "...."), [4, 3, 4]))
    expected = {
        "token-precision": [1 / 2, 1],
        "token-recall": [1 / 2, 1],
        "token-f1": [1 / 2, 1],
        "iou-f1": [0, 1],
        "average-precision": [7 / 12, 1],
        "auprc": [5 / 12, 1],
        "average-precision/above-random": [7 / 12 - 49 / 72, 1 - 11 / 18],
        "rationale-mass": [1 / 2, 9 / 10],
    }
    for measure, values in expected.items():
        assert findings[measure].values.tolist() == pytest.approx([*values, torch.nan], nan_ok=True), measure
    for measure in MICRO:
        assert findings[measure].value == pytest.approx(2 / 3)
        assert (findings[measure].settings, findings[measure].n) == ({"choose": "as many as marked"}, 2)
        assert findings[measure].chance == pytest.approx((4 / 4 + 1 / 3) / 3)
    for measure in ("token-precision", "token-recall", "token-f1", "rationale-mass"):
        assert findings[measure].chance[:2].tolist() == pytest.approx([2 / 4, 1 / 3]), measure
    assert findings["average-precision"].chance[:2].tolist() == pytest.approx([49 / 72, 11 / 18])
    assert findings["auprc"].chance[:2].tolist() == pytest.approx([(49 / 72 + 1 / 2) / 2, (11 / 18 + 1 / 3) / 2])
    assert findings["iou-f1"].chance is findings["average-precision/above-random"].chance is None


def test_words_against_the_label_are_not_the_reason_for_it():
    """−9 weighs most and is the last that would be chosen."""
    findings = findings_in(case_of(torch.tensor([[-9.0, 2, 1]]), tokens(".x."), [3]))
    assert findings["token-f1"].values.item() == 1
    assert findings["average-precision"].values.item() == 1


def test_many_texts_agree_with_scikit_learn():
    lengths = torch.randint(1, 9, (50,))
    mask = torch.arange(8) < lengths.unsqueeze(-1)
    rationales = (torch.rand(50, 8) < 0.4) & mask
    weights = torch.rand(50, 8, dtype=torch.float64)
    findings = findings_in(case_of(weights, rationales, lengths.tolist()))
    all_marks, all_chosen = [], []
    for i in rationales.any(-1).nonzero().flatten().tolist():
        marks, row = rationales[i, : lengths[i]].numpy(), weights[i, : lengths[i]].numpy()
        chosen = (-row).argsort().argsort() < marks.sum()
        score = sklearn.metrics.f1_score(marks, chosen, zero_division=0.0)
        assert findings["token-f1"].values[i].item() == pytest.approx(score)
        assert findings["average-precision"].values[i].item() == pytest.approx(
            sklearn.metrics.average_precision_score(marks, row)
        )
        all_marks += marks.tolist()
        all_chosen += chosen.tolist()
    assert findings["token-f1-micro"].value == pytest.approx(sklearn.metrics.f1_score(all_marks, all_chosen))
    low, high = findings["token-f1-micro"].interval
    assert low < findings["token-f1-micro"].value < high


def test_a_random_order_is_worth_nothing_above_random():
    """400 texts: the mean is off by about 0.25 / 20."""
    weights, rationales = torch.rand(400, 10, dtype=torch.float64), torch.arange(10).expand(400, 10) < 3
    findings = findings_in(case_of(weights, rationales, [10] * 400))
    assert abs(findings["average-precision/above-random"].values.mean().item()) < 0.04
    assert findings["average-precision"].values.mean().item() > 0.4


def test_neither_the_order_of_the_texts_nor_how_many_are_compared_at_once_matters(monkeypatch):
    lengths = [3, 8, 1, 5, 0, 7, 2]
    weights, rationales = torch.rand(7, 8, dtype=torch.float64), torch.rand(7, 8) < 0.4
    case = case_of(weights, rationales, lengths)
    findings, order = findings_in(case), torch.randperm(7)
    turned = case_of(weights[order], rationales[order], [lengths[i] for i in order], size=2)
    monkeypatch.setitem(plausibility.__globals__, "PAIRS", 100)
    for measure, finding in findings_in(turned).items():
        if finding.values is None:
            assert finding.value == pytest.approx(findings[measure].value)
        else:
            torch.testing.assert_close(finding.values, findings[measure].values[order], equal_nan=True)


@pytest.mark.parametrize("rationales", [None, tokens("....", "....")])
def test_without_annotations_every_measure_has_the_reason(rationales):
    findings = findings_in(case_of(torch.rand(2, 4), rationales, [4, 4]))
    assert {finding.absent for finding in findings.values()} == {NO_RATIONALES}
    assert "--rationales" in NO_RATIONALES.sentence


def test_one_marked_text_has_no_interval():
    findings = findings_in(case_of(torch.rand(2, 4), tokens("x...", "...."), [4, 4]))
    assert all(findings[measure].interval is None for measure in MICRO)


def test_an_explainer_measured_on_a_sample_is_rated_on_the_sample():
    weights, rationales = torch.rand(30, 6, dtype=torch.float64), torch.arange(6).expand(30, 6) < 2
    case = case_of(weights, rationales, [6] * 30, ProbeConfig(sample=10))
    case = replace(case, explainers={"costly": Costly(weights)})
    findings, rows = findings_in(case), torch.from_numpy(case.sample)
    is_measured = torch.zeros(30, dtype=torch.bool).index_fill(0, rows, True)
    for measure in (*OF_CHOSEN, *OF_WEIGHTS):
        assert (~findings[measure].values.isnan()).equal(is_measured), measure
    assert findings["token-f1-micro"].n == 10
    chosen = weights[rows].argsort(descending=True).argsort() < 2
    expected = plausibility_measures.token_f1_micro(chosen, rationales[rows], torch.ones(10, 6, dtype=torch.bool))
    assert findings["token-f1-micro"].value == pytest.approx(expected)


def test_a_sample_without_annotations_is_reported():
    weights, rationales = torch.rand(30, 6), torch.zeros(30, 6, dtype=torch.bool)
    case = case_of(weights, rationales, [6] * 30, ProbeConfig(sample=10))
    case.rationales.view(30, 6)[next(i for i in range(30) if i not in case.sample)] = True
    findings = findings_in(replace(case, explainers={"costly": Costly(weights)}))
    assert all(findings[measure].values.isnan().all() for measure in (*OF_CHOSEN, *OF_WEIGHTS))
    assert all(findings[measure].absent for measure in MICRO)
