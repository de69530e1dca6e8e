"""Other weights, and models that have learned nothing, with models built to be faithful and unfaithful."""

import math
from dataclasses import replace

import pytest
import torch

from contract import tiny
from contract.tiny import assert_close, batch, cached_classifier, classifier, split
from properties.protocols.cases import (
    BlackBox,
    ByPlace,
    Highest,
    Shut,
    Signed,
    Target,
    absences,
    case_of,
    findings_by,
    planted_classifier,
    toy,
)
from steadygaze.core.maths.distributions import FEWEST, jensen_shannon, kendall
from steadygaze.core.random_key import RandomKey
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.attention import Attention
from steadygaze.properties.audit_case import ONLY_RANDOM
from steadygaze.properties.probes import counterfactual_attention as search
from steadygaze.properties.probes.counterfactual_attention import permuted_predictions, randomized_copy
from steadygaze.properties.probes.text_perturbations import observe
from steadygaze.properties.protocols.faithfulness import attention_interventions
from steadygaze.results.audit_config import ProbeConfig

PLAN = ProbeConfig(seed=4)
REWEIGHED = ("prediction-change/permuted", "jensen-shannon/adversarial")
RANDOMIZED = ("kendall/randomized", "jensen-shannon/randomized")
VARIED = ["s" + "w" * n + "s" for n in (3, 9, 1, 0, 5, 5, 2, 8, 4, 7, 6, 3)]


@pytest.fixture
def hasty(monkeypatch):
    """Three classes are searched: a few steps will do here."""
    monkeypatch.setattr(search, "STEPS", 4)


@pytest.mark.usefixtures("hasty")
def test_short_texts_are_left_out():
    data = split(VARIED)
    words = batch(data).mask.sum(-1)
    for name, values in findings_by(attention_interventions, case_of(cached_classifier(), data, PLAN)).items():
        assert values.isnan().equal(words < (FEWEST if "kendall" in name else 2)), name


@pytest.mark.usefixtures("hasty")
def test_a_number_is_the_result_of_its_probe_and_its_measure():
    model, data = cached_classifier(), split(VARIED)
    findings, texts = findings_by(attention_interventions, case_of(model, data, PLAN)), batch(data)
    clean, several = observe(model, texts), texts.mask.sum(-1) >= FEWEST
    moved = (permuted_predictions(model, texts, RandomKey(4).child(8)) - clean.probs.unsqueeze(1)).abs().sum(-1) / 2
    ranked = moved.sort(-1).values
    assert_close(findings["prediction-change/permuted"][several], (ranked[:, 49:51].mean(-1))[several])
    copies = [observe(randomized_copy(model, RandomKey(4).child(10, draw)), texts).weights for draw in range(3)]
    orders = torch.stack([kendall(clean.weights, weights, texts.mask) for weights in copies]).mean(0)
    distance = torch.stack([jensen_shannon(clean.weights, weights, texts.mask) for weights in copies]).mean(0)
    assert_close(findings["kendall/randomized"][several], orders[several])
    assert_close(findings["jensen-shannon/randomized"][several], distance[several])


@pytest.mark.usefixtures("hasty")
def test_a_search_is_made_of_the_sample_alone_and_what_is_exact_of_every_text(monkeypatch):
    for classes, many in ((3, 4), (2, 7)):
        monkeypatch.setattr(tiny, "CLASSES", classes)
        case = case_of(classifier(), split(["w" * 4] * 7), replace(PLAN, sample=4))
        (finding,) = [
            candidate
            for candidate in attention_interventions(case)
            if candidate.measure == "jensen-shannon/adversarial"
        ]
        assert finding.values.isfinite().sum() == many
        assert finding.settings == {"within": 0.05, "solver": "exact" if classes == 2 else "search"}


# --- other explanations, other models


@pytest.mark.usefixtures("hasty")
def test_the_copy_explains_the_class_that_the_model_predicts():
    model, explainer = classifier(), Target()
    model.decoder.output.weight.data *= 20
    model.decoder.output.bias.data -= model(batch(split(VARIED))).logits.detach().mean(0)
    case = case_of(model, split(VARIED), PLAN, target=explainer)
    findings_by(attention_interventions, case, "target")
    assert len(case.probs.argmax(-1).unique()) > 1
    clean, *copies = explainer.targets
    assert clean is None
    assert len(copies) == 3
    order = torch.from_numpy(next(iter(case.batches()))[0])
    for target in copies:
        assert target.tolist() == case.probs.argmax(-1)[order].tolist()


@pytest.mark.usefixtures("hasty")
def test_an_explanation_of_many_passes_is_measured_on_the_sample_and_random_is_not_measured():
    case = case_of(cached_classifier(), split(VARIED), replace(PLAN, sample=5), signed=Signed(), random=Signed())
    findings = [finding for finding in attention_interventions(case) if not finding.absent]
    assert {finding.explainer for finding in findings} == {"signed"}  # nor attention, which was not requested
    is_measured = torch.zeros(12, dtype=torch.bool)
    is_measured[torch.from_numpy(case.sample)] = True
    long = batch(case.data).mask.sum(-1) >= FEWEST
    values = {finding.measure: finding.values for finding in findings}
    assert values["kendall/randomized"].isfinite().equal(is_measured & long)
    assert values["kendall/randomized"][is_measured & long].tolist() == [1.0] * int((is_measured & long).sum())


@pytest.mark.usefixtures("hasty")
def test_a_copy_with_opposite_predictions_is_at_the_maximum_distance():
    """With w and −w no word has a positive weight for the class in both: divergence ln 2, and the opposite order."""

    class Opposite(Signed):
        def explain(self, model, *inputs, **more):
            findings = super().explain(model, *inputs, **more)
            return findings if model is original else replace(findings, weights=-findings.weights)

    original = classifier()
    findings = findings_by(
        attention_interventions, case_of(original, split(["wwwww", "w" * 8]), PLAN, opposite=Opposite()), "opposite"
    )
    assert findings["jensen-shannon/randomized"].tolist() == pytest.approx([math.log(2)] * 2, abs=1e-12)
    assert findings["kendall/randomized"].tolist() == [-1.0] * 2


def test_without_extension_points_weights_cannot_be_replaced_but_parameters_can():
    data = split(VARIED)
    case = case_of(Shut(cached_classifier()), data, PLAN)
    assert list(findings_by(attention_interventions, case)) == list(RANDOMIZED)
    why = "the model does not accept other attention weights"
    assert absences(attention_interventions, case) == {(name, None): why for name in REWEIGHED}


def test_weights_of_a_black_box_cannot_be_replaced():
    case = case_of(BlackBox(), split(), PLAN, signed=Signed())
    reasons = absences(attention_interventions, case)
    assert not findings_by(attention_interventions, case, "signed")
    assert set(reasons) == {(name, None) for name in (*REWEIGHED, *RANDOMIZED)}
    assert reasons["kendall/randomized", None] == "the model is a black box: its parameters cannot be randomized"
    assert reasons["prediction-change/permuted", None] == "the model has no attention weights"


def test_random_words_alone_are_no_explanation_to_be_held_against_anything():
    reasons = absences(
        attention_interventions, case_of(cached_classifier(), split(), PLAN, random=EXPLAINERS["random"]())
    )
    assert {reasons[name, None] for name in REWEIGHED} == {"the attention is not among the audited explainers"}
    assert {reasons[name, None] for name in RANDOMIZED} == {str(ONLY_RANDOM)}


# --- models of which everything is known


def test_shuffling_the_weights_of_a_model_that_rests_on_them_changes_its_mind():
    """The reason is one word of ten: nine permutations in ten take it away, and p falls from 1 to ½."""
    findings = findings_by(attention_interventions, case_of(planted_classifier(20.0), toy()[0]))
    assert findings["prediction-change/permuted"].tolist() == pytest.approx([0.5] * 20, abs=1e-3)


def test_how_far_the_attention_of_a_model_that_rests_on_it_can_go_by_hand():
    """All weight on the reason, margin 10·λ with λ on it: p ≥ p₀ − 0.05 requires λ ≥ logit(p₀ − 0.05)/10.

    JSD((1, 0), (λ, 1 − λ)) = ½ ln(2/(1 + λ)) + ½ λ ln(2λ/(1 + λ)) + ½ (1 − λ) ln 2.
    """
    findings = findings_by(attention_interventions, case_of(planted_classifier(60.0), toy()[0]))
    p = 1 / (1 + math.exp(-10)) - 0.05
    least = math.log(p / (1 - p)) / 10
    far = (math.log(2 / (1 + least)) + least * math.log(2 * least / (1 + least)) + (1 - least) * math.log(2)) / 2
    assert findings["jensen-shannon/adversarial"].tolist() == pytest.approx([far] * 20, abs=1e-6)


@pytest.mark.usefixtures("hasty")
def test_a_model_that_ignores_its_attention_is_found_out():
    model = planted_classifier(-20.0)
    model.decoder = Highest(model.decoder.output)
    findings = findings_by(attention_interventions, case_of(model, toy()[0]))
    assert findings["prediction-change/permuted"].max() < 1e-12
    assert findings["jensen-shannon/adversarial"].min() > 0.3


@pytest.mark.usefixtures("hasty")
def test_an_attention_by_place_survives_random_parameters_and_one_that_was_learned_does_not():
    data = split(["s" + "w" * n + "s" for n in range(5, 14)])
    learned, by_place = classifier("bilstm"), classifier("bilstm")
    by_place.attention = ByPlace()
    findings = findings_by(attention_interventions, case_of(by_place, data, PLAN))
    assert findings["kendall/randomized"].tolist() == [1.0] * 9
    assert findings["jensen-shannon/randomized"].max() < 1e-15
    findings = findings_by(attention_interventions, case_of(learned, data, PLAN))
    assert abs(float(findings["kendall/randomized"].mean())) < 0.3
    assert findings["jensen-shannon/randomized"].min() > 0


@pytest.mark.usefixtures("hasty")
def test_even_weights_do_not_notice_a_shuffle_and_have_no_order():
    model = classifier()
    model.scorer.weigh.weight.data.zero_()
    findings = findings_by(
        attention_interventions, case_of(model, split(["www", "wwwww"]), PLAN, attention=Attention())
    )
    assert findings["prediction-change/permuted"].max() < 1e-15
    assert findings["kendall/randomized"].isnan().all()
