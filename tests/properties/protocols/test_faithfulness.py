"""Faithfulness: the effect of erasing the highlighted words, with models built to be faithful and unfaithful."""

from dataclasses import replace

import pytest
import torch

from contract.tiny import TEXTS, assert_close, batch, cached_classifier, classifier, split
from properties.protocols.cases import (
    BlackBox,
    ByPlace,
    Highest,
    Shut,
    Signed,
    absences,
    case_of,
    findings_by,
    planted_classifier,
    toy,
)
from properties.protocols.constant_models import ConstantExplainer
from steadygaze.core.maths.distributions import FEWEST, kendall, pearson
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.attention import Attention
from steadygaze.explainers.leave_one_out import LeaveOneOut
from steadygaze.properties.measures import faithfulness_measures
from steadygaze.properties.probes.erasure import Erasure, erase_words
from steadygaze.properties.probes.text_perturbations import gradient, observe
from steadygaze.properties.protocols.faithfulness import ERASURE_ROWS, faithfulness
from steadygaze.results.audit_config import ProbeConfig

PLAN = ProbeConfig(seed=4)
ERASED = ("comprehensiveness", "sufficiency", "comprehensiveness/above-random")
SIZES = tuple(f"{measure}/{size}%" for measure in ERASED[:2] for size in (1, 5, 10, 20, 50))
BOTH = sorted((name for name in ERASURE_ROWS if name != ERASED[2]), key=lambda name: name.endswith("%"))
ALL = (*BOTH, ERASED[2])
GRADIENTS = tuple(f"{m}/{way}" for way in ("gradient", "gradient-through-attention") for m in ("pearson", "kendall"))


@pytest.mark.parametrize("removal", ["delete", "pad", "zero"])
def test_a_number_is_the_result_of_its_probe_and_its_measure(removal):
    model, data = cached_classifier(), split()
    texts, clean = batch(data), observe(model, batch(data))
    findings = findings_by(faithfulness, case_of(model, data, replace(PLAN, removal=removal)))
    gone, kept = erase_words(model, texts, clean.probs, clean.weights, Erasure(removal=removal))
    some = texts.mask.any(-1)
    assert some.sum() == 5
    assert_close(findings["comprehensiveness"][some], faithfulness_measures.comprehensiveness(clean.probs, gone)[some])
    assert_close(findings["sufficiency"][some], faithfulness_measures.sufficiency(clean.probs, kept)[some])
    assert_close(findings["post-hoc-accuracy"][some], faithfulness_measures.post_hoc_accuracy(clean.probs, kept)[some])
    several = texts.mask.sum(-1) >= FEWEST
    for way, fixed in (("gradient", True), ("gradient-through-attention", False)):  # the first as Jain & Wallace
        slope = gradient(model, texts, detach_attention=fixed)
        for name, measure in (("pearson", pearson), ("kendall", kendall)):
            agree = measure(clean.weights, slope, texts.mask)
            assert_close(findings[f"{name}/{way}"][several], agree[several])


def test_nothing_but_a_text_of_too_few_words_is_undefined():
    """TEXTS has texts of none, which have nothing to lose, and of one word, which is random's choice too."""
    data = split([*TEXTS, "ww", "www"])
    findings = findings_by(faithfulness, case_of(cached_classifier(), data, PLAN))
    words = batch(data).mask.sum(-1)
    for name, values in findings.items():
        fewest = FEWEST if name in GRADIENTS else 2 if name == ERASED[2] else 1
        assert values.isnan().equal(words < fewest), name
        assert not values.isinf().any()


@pytest.mark.parametrize("kind", ["uniform", "constant"])
def test_even_weights_agree_with_nothing_and_weights_by_place_with_something(kind):
    model = classifier("bilstm")
    if kind == "uniform":
        model.scorer.weigh.weight.data.zero_()
    else:
        model.attention = ByPlace()
    findings = findings_by(faithfulness, case_of(model, split(["s" + "w" * n + "s" for n in range(3, 14)]), PLAN))
    assert findings["pearson/gradient"].isnan().all() == (kind == "uniform")


# --- the random yardstick


def test_the_yardstick_is_random_and_the_same_for_every_explanation():
    data = split(["s" + "w" * n + "s" for n in range(2, 14)])
    case = case_of(cached_classifier(), data, PLAN, attention=Attention(), signed=Signed())
    random_findings = findings_by(faithfulness, case, "random")
    for name in case.explainers:
        findings = findings_by(faithfulness, case, name)
        above = findings["comprehensiveness"] - findings["comprehensiveness/above-random"]
        torch.testing.assert_close(above, random_findings["comprehensiveness"], rtol=0, atol=1e-15)
    other = findings_by(faithfulness, replace(case, config=replace(PLAN, seed=5)), "random")
    assert not torch.allclose(random_findings["comprehensiveness"], other["comprehensiveness"])


def test_an_audit_of_random_uses_random_as_its_baseline():
    """It is not compared with itself."""
    case = case_of(cached_classifier(), split(), PLAN, random=Signed(), attention=Attention())
    findings, random_findings = findings_by(faithfulness, case), findings_by(faithfulness, case, "random")
    assert list(random_findings) == BOTH
    as_signed = findings_by(faithfulness, case_of(case.model, case.data, PLAN, signed=Signed()), "signed")
    own = {name: as_signed[name] for name in BOTH} | {
        "largest-drop": random_findings["largest-drop"]
    }  # the larger of two
    torch.testing.assert_close(random_findings, own, rtol=0, atol=1e-12, equal_nan=True)
    several = batch(case.data).mask.sum(-1) > 1
    assert several.any()
    above = findings["comprehensiveness"] - random_findings["comprehensiveness"]
    assert_close(findings["comprehensiveness/above-random"][several], above[several])


def test_the_largest_drop_is_that_of_the_best_erasure_of_the_explanation_or_of_random_words():
    case = case_of(cached_classifier(), split(["s" + "w" * n + "s" for n in range(2, 14)]), PLAN)
    result, random_findings = (findings_by(faithfulness, case, name) for name in ("attention", "random"))
    drops = torch.stack([findings[name] for findings in (result, random_findings) for name in SIZES])
    assert_close(result["largest-drop"], drops.amax(0).clamp_min(0.0))
    assert (result["largest-drop"] > random_findings["largest-drop"]).any()


def test_who_deletes_single_words_is_not_credited_for_sizes_of_one_word():
    """Ten words: 1, 1, 1, 2 and 5 go.  Attention and leave-one-out point at the reason first, and lose ½ at every
    size; what stands for random has it second, and loses 0, 0, 0, ½ and ½.

    Attention is (½ + ½ + ½ + 0 + 0) / 5 = 0.3 above it.  Leave-one-out found the reason by deleting it, so the first
    three sizes are not measured: (0 + 0) / 2 = 0.
    """
    data, place = toy()
    drawn = torch.zeros(20, 10, dtype=torch.float64)
    drawn[torch.arange(20), place] = 1
    drawn[torch.arange(20), (place + 1) % 10] = 2
    case = case_of(
        planted_classifier(20.0), data, random=ConstantExplainer(drawn), attention=Attention(), out=LeaveOneOut()
    )
    for name, above in (("attention", 0.3), ("out", 0.0)):
        findings = findings_by(faithfulness, case, name)
        assert findings["comprehensiveness"].tolist() == pytest.approx([0.5] * 20, abs=1e-3)  # itself as ever
        assert findings["comprehensiveness/above-random"].tolist() == pytest.approx([above] * 20, abs=1e-3), name


def test_an_explainer_that_deletes_single_words_is_not_measured_on_texts_that_lose_one_word_at_every_size():
    """Half of two words is one; half of three is two."""
    data = split(["s", "w", "ww", "www", "wwww"])
    findings = findings_by(faithfulness, case_of(cached_classifier(), data, PLAN, out=LeaveOneOut()), "out")
    random_findings = findings_by(faithfulness, case_of(cached_classifier(), data, PLAN), "random")
    above = findings["comprehensiveness/above-random"]
    assert above.isnan().tolist() == [True, True, True, False, False]
    half = findings["comprehensiveness/50%"] - random_findings["comprehensiveness/50%"]
    assert_close(above[3:], half[3:])
    assert all(EXPLAINERS[name].deletes_words for name in ("leave-one-out", "lime", "kernel-shap"))
    assert not any(EXPLAINERS[name].deletes_words for name in ("attention", "gradient", "random"))


@pytest.mark.slow
def test_random_words_lose_the_rationale_as_often_as_expected_at_random():
    """One of ten words is the reason, ½ is lost with it: of 1, 1, 1, 2 and 5 words it is one by 1/10 … 5/10.

    Expected: ½ · (0.1 + 0.1 + 0.1 + 0.2 + 0.5) / 5 = 0.1; over 20 seeds of 20 texts its error is below 0.02.
    """
    data, _ = toy()
    drawn = [
        findings_by(faithfulness, case_of(planted_classifier(20.0), data, ProbeConfig(seed=s)), "random")
        for s in range(20)
    ]
    assert float(torch.stack([findings["comprehensiveness"] for findings in drawn]).mean()) == pytest.approx(
        0.1, abs=0.02
    )


# --- what counts as heavy


def test_top_words_of_a_signed_saliency_are_the_words_for_the_label():
    """Signed by minus the attention: its words most for the label are those attention leaves lightest."""

    class Against(Attention):
        def explain(self, *inputs, **more):
            findings = super().explain(*inputs, **more)
            return replace(findings, weights=-findings.weights)

    data, _ = toy()
    findings = findings_by(faithfulness, case_of(planted_classifier(20.0), data, against=Against()), "against")
    assert findings["comprehensiveness"].abs().max() < 1e-3  # by size it would lose ½, as attention does
    assert findings["sufficiency"].tolist() == pytest.approx([0.5] * 20, abs=1e-3)


# --- other models


def test_an_explanation_of_many_passes_is_measured_on_the_sample_only():
    case = case_of(cached_classifier(), split(), replace(PLAN, sample=3), signed=Signed(), attention=Attention())
    findings = findings_by(faithfulness, case, "signed")
    words = batch(case.data).mask.sum(-1)
    is_measured = torch.zeros(len(case), dtype=torch.bool)
    is_measured[torch.from_numpy(case.sample)] = True
    for name in ALL:
        assert findings[name].isfinite().equal(is_measured & (words >= (2 if name == ERASED[2] else 1))), name
    assert findings[ERASED[2]].isfinite().any()
    assert findings_by(faithfulness, case)["comprehensiveness"].isfinite().equal(words > 0)


def test_without_extension_points_the_gradient_flows_through_attention_or_not_at_all():
    data = split()
    case = case_of(Shut(classifier()), data, PLAN)
    findings, ours = findings_by(faithfulness, case), findings_by(faithfulness, case_of(classifier(), data, PLAN))
    assert list(findings) == [*ALL, *GRADIENTS[2:]]
    for name, values in findings.items():
        torch.testing.assert_close(values, ours[name], rtol=0, atol=1e-12, equal_nan=True)
    why = "the model does not accept other attention weights"
    assert absences(faithfulness, case) == {(name, None): why for name in GRADIENTS[:2]}


def test_a_black_box_loses_words_but_has_no_vectors_to_be_zeroed():
    case = case_of(BlackBox(), split(), PLAN, signed=Signed())
    assert list(findings_by(faithfulness, case, "signed")) == list(ALL)
    unseen = {(name, None): "the model has no attention weights" for name in GRADIENTS}
    assert absences(faithfulness, case) == unseen
    reasons = absences(faithfulness, replace(case, config=replace(PLAN, removal="zero")))
    assert set(reasons) == {(name, None) for name in ALL} | unseen.keys()


# --- a toy of which everything is known


def test_a_model_that_attends_to_its_only_reason_is_comprehensive_and_sufficient():
    """p = 1/(1 + e^−10) with the word, ½ without: ½ is lost at every share, nothing when all else goes."""
    data, place = toy()
    model = planted_classifier(20.0)
    assert observe(model, batch(data)).weights.argmax(-1).equal(place)
    findings = findings_by(faithfulness, case_of(model, data))
    assert findings["comprehensiveness"].tolist() == pytest.approx([0.5] * 20, abs=1e-3)
    assert findings["sufficiency"].abs().max() < 1e-3
    assert findings["pearson/gradient"].min() > 0.999


def test_a_model_that_ignores_its_attention_is_found_out():
    """Its attention is on chatter, its decoder reads good and bad: erasing the top words changes nothing,
    keeping them changes all: up to 50 %, the reason has the smallest weight and is not among the top five."""
    data, _ = toy()
    model = planted_classifier(-20.0)
    model.decoder = Highest(model.decoder.output)
    findings = findings_by(faithfulness, case_of(model, data))
    assert findings["comprehensiveness"].abs().max() < 1e-12
    assert findings["sufficiency"].tolist() == pytest.approx([0.5] * 20, abs=1e-3)
    assert findings["pearson/gradient"].max() < 0


def test_a_curve_is_its_sizes_and_its_mean_the_number():
    model, data = cached_classifier(), split()
    findings = findings_by(faithfulness, case_of(model, data, PLAN))
    for measure in ERASED[:2]:
        sizes = torch.stack([findings[name] for name in SIZES if name.startswith(measure)])
        some = findings[measure].isfinite()
        assert some.sum() == 5
        assert_close(sizes.mean(0)[some], findings[measure][some])
        assert sizes[:, ~some].isnan().all()
