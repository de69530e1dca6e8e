"""Seed consistency: three models with known explanations."""

import math
from dataclasses import replace

import pytest
import torch

from contract.tiny import cached_classifier, split
from properties.protocols.cases import absences, case_of, findings_by, planted_classifier, toy
from properties.protocols.constant_models import ConstantExplainer
from steadygaze.data.batches import Data
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.properties.protocols.stability import SEED_PREDICTIONS, SEED_SHIFT, not_comparable, seed_consistency
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.results.note import text_note

MEASURES = tuple(f"{name}/seeds" for name in (*SEED_PREDICTIONS, *SEED_SHIFT))
OTHERWISE = text_note("it was trained otherwise")


def _three(data, k=1):
    """w = (2, −1, 0, …) twice, then −w: of three pairs one agrees and two are opposites."""
    w = torch.zeros(len(data), int(data.text.lengths.max()), dtype=torch.float64)
    w[:, :2] = torch.tensor([2.0, -1.0])
    first, *others = (
        case_of(planted_classifier(20.0), data, ProbeConfig(k=k), written=ConstantExplainer(weights))
        for weights in (w, w, -w)
    )
    return replace(first, others=tuple(others))


def test_opposite_explanations_are_at_the_maximum_distance_and_share_no_top_word():
    """Jensen-Shannon (0 + ln 2 + ln 2) / 3.  The top word is the first, the first and the second: (1 + 0 + 0) / 3.

    By absolute value the three would be equal.
    """
    findings = findings_by(seed_consistency, _three(toy()[0]), "written")
    assert tuple(findings) == MEASURES
    assert findings["jensen-shannon/seeds"].tolist() == pytest.approx([math.log(2) * 2 / 3] * 20, abs=1e-12)
    assert findings["top-k-overlap/seeds"].tolist() == pytest.approx([1 / 3] * 20, abs=1e-12)
    assert not findings["prediction-change/seeds"].any()
    assert not findings["label-flip/seeds"].any()


def test_models_that_predict_the_opposite_are_apart_whatever_they_point_at():
    """p = 1/(1 + e^−10) and its opposite, between two models that look at the same word."""
    data, _ = toy()
    model, other = planted_classifier(20.0), planted_classifier(20.0)
    other.decoder.output.weight.data = other.decoder.output.weight.data.flip(0)
    findings = findings_by(seed_consistency, replace(case_of(model, data), others=(case_of(other, data),)))
    assert findings["label-flip/seeds"].tolist() == [1.0] * 20
    assert findings["prediction-change/seeds"].tolist() == pytest.approx([math.tanh(5)] * 20, abs=1e-3)
    assert findings["jensen-shannon/seeds"].max() < 1e-12
    assert (findings["top-k-overlap/seeds"] == 1).all()


def test_a_text_of_fewer_than_two_words_has_no_other_saliency():
    data = split(["s", "sw", "ww", "www"])
    data.text.ids[:] = 4  # the toy knows six words
    findings = findings_by(seed_consistency, _three(data), "written")
    for measure in MEASURES[2:]:
        few = 3 if measure.startswith("weight-correlation") else 2  # words
        assert findings[measure].isnan().tolist() == [n < few for n in range(4)], measure
    assert findings["label-flip/seeds"].isfinite().all()


class Reason(Explainer):
    """All weight is on the word whose place is the number of the class in question."""

    def explain(self, model, batch, target=None, embedded=None):
        logits = model(batch, embedded).logits
        places = torch.arange(batch.ids.shape[1])
        return Saliency((places == (logits.argmax(-1) if target is None else target).unsqueeze(-1)).double(), logits)


def test_an_explanation_of_a_class_is_computed_for_the_class_that_the_first_model_predicts():
    """Three models, of which one predicts the opposite everywhere; the place of the weight is the class in question.

    If each explained its own class, two pairs of three would have divergence ln 2: explanations of different classes.
    """
    data, _ = toy()
    models = [planted_classifier(20.0) for _ in range(3)]
    models[2].decoder.output.weight.data = models[2].decoder.output.weight.data.flip(0)
    first, *others = (case_of(model, data, reason=Reason()) for model in models)
    findings = findings_by(seed_consistency, replace(first, others=tuple(others)), "reason")
    assert findings["label-flip/seeds"].tolist() == pytest.approx([2 / 3] * 20)
    assert findings["jensen-shannon/seeds"].abs().max() < 1e-12
    assert (findings["top-k-overlap/seeds"] == 1).all()


def test_how_many_texts_are_read_at_once_and_their_order_change_nothing():
    data = split(["s" + "w" * n for n in (3, 1, 5, 2, 8)])
    models = [cached_classifier("average"), cached_classifier("average", score="dot")]

    def measure_pair(data, size):
        cases = [case_of(model, data, batch_size=size, gradient=EXPLAINERS["gradient"]()) for model in models]
        return findings_by(seed_consistency, replace(cases[0], others=(cases[1],)), "gradient")

    whole, order = measure_pair(data, 256), [4, 2, 0, 1, 3]
    turned = measure_pair(Data(data.text.select(order), None, data.label[order]), 1)
    for measure, values in whole.items():
        torch.testing.assert_close(turned[measure], values[order], rtol=0, atol=1e-12, equal_nan=True)


def test_models_not_trained_alike_have_numbers_under_another_name_and_the_question_has_none():
    inputs = list(seed_consistency(_three(toy()[0])))
    result = list(not_comparable(inputs, OTHERWISE))
    assert [finding.measure for finding in result] == [name.replace("seeds", "others") for name in MEASURES] + list(
        MEASURES
    )
    for finding, other in zip(inputs, result[: len(MEASURES)], strict=True):
        assert finding.values.equal(other.values)
        assert other == replace(finding, measure=other.measure, values=other.values, notes=(OTHERWISE,))
    assert {finding.absent for finding in result[len(MEASURES) :]} == {OTHERWISE}


def test_one_model_alone_is_reported_as_alone():
    reasons = absences(seed_consistency, case_of(planted_classifier(20.0), toy()[0]))
    assert set(reasons) == {(name, None) for name in MEASURES}
    assert set(reasons.values()) == {
        "only one model was passed: pass models trained with other seeds as other_seeds= (--other-seed MODEL)"
    }


def test_the_contribution_of_each_model_has_the_mean_of_all_pairs():
    """Two models agree and the third disagrees with both: the third contributes most."""
    (finding,) = (f for f in seed_consistency(_three(toy()[0])) if f.measure == "jensen-shannon/seeds")
    assert finding.of_models.mean(0).tolist() == pytest.approx(finding.values.tolist())
    first, second, third = finding.of_models[:, 0].tolist()
    assert first == pytest.approx(second)
    assert third == pytest.approx(math.log(2) * 2)


def test_two_models_have_no_contributions():
    data, _ = toy()
    case = replace(_three(data), others=_three(data).others[1:])
    assert all(finding.of_models is None for finding in seed_consistency(case))
