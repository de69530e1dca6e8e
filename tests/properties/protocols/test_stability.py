"""Stability: a number per text and probe, with models built to be faithful and unfaithful."""

from dataclasses import replace

import pytest
import torch

from contract.probing import after, synonyms
from contract.tiny import TEXTS, assert_close, batch, cached_classifier, classifier, split
from properties.protocols.cases import (
    BlackBox,
    ByPlace,
    Signed,
    absences,
    case_of,
    findings_by,
    opposites,
    planted_classifier,
    toy,
)
from steadygaze.core.maths.collapse import detect_collapse
from steadygaze.core.maths.distributions import FEWEST, jensen_shannon, kendall, top_k_overlap
from steadygaze.core.random_key import RandomKey
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.attention import Attention
from steadygaze.models.inference import split_outputs
from steadygaze.properties.measures import stability_measures
from steadygaze.properties.measures.measure import measures_of
from steadygaze.properties.probes import text_perturbations
from steadygaze.properties.probes.text_perturbations import observe, probes, substitute_synonyms
from steadygaze.properties.protocols.stability import robustness, stability
from steadygaze.report.sentences import PASS_TABLE
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.results.formatting import number

PLAN = ProbeConfig(seed=4)
SUBSTITUTIONS = {"1-synonym": (synonyms(), 1), "3-synonyms": (synonyms(), 3)}
VECTORS = ("noise", "fgm-label", "pgd-attention")
WORDS = {"1-synonym": 1, "3-synonyms": 3}
PROBES = (*VECTORS, *WORDS)
OF_TEXT, OF_WORDS = (tuple(measures_of(kind, stability_measures.MEASURES)) for kind in ("predictions", "shift"))
MOVED = (*OF_TEXT, *OF_WORDS)
PAIR = pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])


def perturbed(case):
    yield from stability(case)
    yield from robustness(case)


def test_a_number_is_the_result_of_its_probe_and_its_measure():
    model, data = cached_classifier(), split([*TEXTS, "w" * 7, "s" + "w" * 9])
    texts, findings = batch(data), findings_by(perturbed, case_of(model, data, PLAN, SUBSTITUTIONS))
    clean = observe(model, texts)
    for name, moved in (
        ("noise", text_perturbations.embedding_noise(model, texts, PLAN.radius, RandomKey(4).child(1))),
        ("fgm-label", text_perturbations.fgm_on_label(model, texts, PLAN.radius)),
        ("pgd-attention", text_perturbations.pgd_on_attention(model, texts, PLAN.radius, RandomKey(4).child(2))),
        ("3-synonyms", substitute_synonyms(texts, synonyms(), 3, RandomKey(4).child(3))),
    ):
        some, seen = (moved.touched >= WORDS.get(name, 1)) & (texts.mask.sum(-1) > 1), after(model, moved)
        assert some.sum() >= 4, name
        both = clean.weights, seen.weights, texts.mask
        assert_close(findings[f"jensen-shannon/{name}"][some], jensen_shannon(*both)[some])
        assert_close(findings[f"top-k-overlap/{name}"][some], top_k_overlap(*both, PLAN.k)[some])
        several = some & (texts.mask.sum(-1) >= FEWEST)
        assert_close(findings[f"kendall/{name}"][several], kendall(*both)[several])
        assert_close(findings[f"prediction-change/{name}"][some], ((clean.probs - seen.probs).abs().sum(-1) / 2)[some])
        flips = clean.probs.argmax(-1) != seen.probs.argmax(-1)
        assert findings[f"label-flip/{name}"][some].equal(flips.double()[some])


def test_only_what_is_drawn_depends_on_the_seed():
    model, data = cached_classifier(), split(["w" * 9] * 3)
    result, other = (
        findings_by(perturbed, case_of(model, data, replace(PLAN, seed=seed), SUBSTITUTIONS)) for seed in (0, 1)
    )
    for name, values in result.items():
        drawn = name.endswith(("/noise", "-synonym", "/pgd-attention", "-synonyms", "-kept"))
        if name.startswith(("jensen-shannon", "prediction-change")):
            assert values.equal(other[name]) != drawn, name
        elif not drawn:
            assert values.equal(other[name]), name


def test_a_table_of_synonyms_cannot_take_the_name_of_another_probe():
    with pytest.raises(ValueError, match="a probe named noise already exists"):
        probes(ProbeConfig(), {"noise": (synonyms(), 1)})


@PAIR
def test_nothing_but_a_text_of_too_few_words_and_a_move_of_too_few_is_undefined(pair):
    """TEXTS has texts of none and of one word, which have all their weight on it whatever is done to them."""
    data = split([*TEXTS, "ww", "www", "w" * 9], pair)
    findings = findings_by(perturbed, case_of(cached_classifier("bilstm", pair), data, PLAN, SUBSTITUTIONS))
    words = batch(data).mask.sum(-1)
    for name, values in findings.items():
        probe = name.rpartition("/")[2].removesuffix("-kept")
        expected = (words < 2) & (not name.startswith("words-substituted"))
        if probe in WORDS and name.startswith(MOVED):
            expected |= findings[f"words-substituted/{probe}"] < WORDS[probe]
        if name.endswith("-kept"):
            expected |= findings[f"label-flip/{probe}"] == 1
        few = expected | (words < FEWEST)
        assert values.isnan().equal(few if name.startswith(("kendall", "weight-correlation")) else expected), name
        assert not values.isinf().any()
    assert findings["jensen-shannon/3-synonyms"].isfinite().any()


def test_what_is_left_out_is_counted_and_the_reason_given():
    """Two texts have no word, one has one; of the first and the third, ids that 3 divides stand for nothing else."""
    data = split(["swws", "s", "www", "ss", "w"])
    data.text.ids[data.text.words] = [4, 3, 3, 6, 9, 12]
    notes = {
        finding.measure: "; ".join(map(str, finding.notes))
        for finding in perturbed(case_of(cached_classifier(), data, PLAN, SUBSTITUTIONS))
    }
    for measure in ("jensen-shannon", "prediction-change", "label-flip", "top-k-overlap"):
        for name, many in (("1-synonym", 4), ("3-synonyms", 5)):
            why = f"which have fewer than two words, or too few with a synonym: {PASS_TABLE}"
            assert notes[f"{measure}/{name}"] == f"left out: {many} of 5 texts, {why}"
        assert notes[f"{measure}/noise"] == "left out: 3 of 5 texts, which have fewer than two words"
    for measure in ("kendall/3-synonyms", "kendall/3-synonyms-kept", "top-k-overlap/3-synonyms-kept"):
        assert notes[measure] == notes["label-flip/3-synonyms"]
    assert notes["kendall/noise"] == "", "two words have no order: more than the probe left out"
    assert notes["words-substituted/1-synonym"] == notes["normalized-entropy"] == ""


def test_a_row_of_a_substitution_names_its_table_and_its_number_of_words():
    table = {"2-synonyms": (replace(synonyms(), origin="vectors"), 2)}
    settings = {
        finding.measure: finding.settings for finding in perturbed(case_of(cached_classifier(), split(), PLAN, table))
    }
    for measure in ("jensen-shannon", "kendall", "label-flip"):
        assert settings[f"{measure}/2-synonyms"] == {"synonyms": "vectors", "words": 2}
        assert settings[f"{measure}/noise"] == {"radius": PLAN.radius}
    assert settings["top-k-overlap/2-synonyms"] == {"synonyms": "vectors", "words": 2, "k": PLAN.k}


def test_a_substitution_of_two_words_counts_only_if_two_words_were_substituted():
    """Ids that 3 divides have no synonym: none, one, two and three words of three can be substituted."""
    data = split(["www"] * 4)
    data.text.ids[:] = [3, 6, 9, 3, 6, 10, 3, 7, 10, 4, 7, 10]
    findings = findings_by(perturbed, case_of(cached_classifier(), data, PLAN, {"2-synonyms": (synonyms(), 2)}))
    assert findings["words-substituted/2-synonyms"].tolist() == [0, 1, 2, 2]
    for measure in MOVED:
        assert findings[f"{measure}/2-synonyms"].isnan().tolist() == [True, True, False, False], measure


# --- other explanations, other models


@pytest.mark.slow
def test_an_explanation_of_many_passes_is_measured_on_the_sample_only():
    """A model that reads words gets no vectors, which is reported, and attention is measured on every text."""
    data = split(["s" + "w" * n + "s" for n in (3, 9, 1, 0, 5, 5, 2, 8, 4, 7, 6, 3)])
    plan = replace(PLAN, sample=5)
    case = case_of(cached_classifier(), data, plan, SUBSTITUTIONS, signed=Signed(), attention=Attention())
    findings, alone = (
        findings_by(perturbed, case, "signed"),
        findings_by(perturbed, case_of(case.model, data, plan, SUBSTITUTIONS)),
    )
    is_measured = torch.zeros(12, dtype=torch.bool)
    is_measured[torch.from_numpy(case.sample)] = True
    for name in ("normalized-entropy", "distance-to-uniform"):
        assert findings[name].isnan().equal(~is_measured | (batch(data).mask.sum(-1) < 2)), name
    for name in ("jensen-shannon/3-synonyms", "top-k-overlap/3-synonyms"):
        assert findings[name].isnan().equal(~is_measured | (findings["words-substituted/3-synonyms"] < 3)), name
        assert findings[name].isfinite().any()
    both = findings_by(perturbed, case, "attention")
    torch.testing.assert_close(both, alone, rtol=0, atol=0, equal_nan=True)
    reasons = absences(perturbed, case)
    for probe in ("noise", "fgm-label"):
        for measure in OF_WORDS:
            assert reasons.pop((f"{measure}/{probe}", "signed")) == "signed reads words, not embeddings"
    assert not reasons


def test_a_black_box_is_measured_under_word_probes_and_the_rest_is_reported_as_absent():
    case = case_of(BlackBox(), split(), PLAN, SUBSTITUTIONS, signed=Signed())
    findings = findings_by(perturbed, case, "signed")
    assert {name for name in findings if "/" in name and "-kept" not in name} == {
        f"{measure}/{probe}" for measure in (*MOVED, "words-substituted") for probe in ("1-synonym", "3-synonyms")
    }
    reasons = absences(perturbed, case)
    assert set(reasons) == {(f"{measure}/{probe}", None) for measure in MOVED for probe in VECTORS}
    assert set(reasons.values()) == {"the model is a black box: its word vectors cannot be perturbed"}


@pytest.mark.slow
def test_a_perturbation_of_attention_is_absent_for_other_explainers_with_the_reason():
    """The prediction may move all the same."""
    case = case_of(cached_classifier(), split(), PLAN, SUBSTITUTIONS, gradient=EXPLAINERS["gradient"]())
    findings = findings_by(perturbed, case, "gradient")
    assert {name for name in findings if name.endswith("pgd-attention")} == {f"{m}/pgd-attention" for m in OF_TEXT}
    reasons = absences(perturbed, case)
    assert reasons == {
        (f"{m}/pgd-attention", None): "the attention is not among the audited explainers" for m in OF_WORDS
    }


# --- models whose attention is stable because it is uninformative


@pytest.mark.parametrize("kind", ["uniform", "constant"])
def test_constant_attention_does_not_shift_and_is_reported_as_collapsed(kind):
    model = classifier("bilstm")
    model.decoder.output.weight.data *= 10
    if kind == "uniform":
        model.scorer.weigh.weight.data.zero_()
    else:
        model.attention = ByPlace()
    data = split(["s" + "w" * n + "s" for n in range(2, 14)])
    findings = findings_by(perturbed, case_of(model, data, PLAN, SUBSTITUTIONS))
    for name in PROBES:
        assert findings[f"jensen-shannon/{name}"].nan_to_num().abs().max() < 1e-15
        assert (
            findings[f"prediction-change/{name}"].nan_to_num().max() > 1e-3
        )  # it is the attention that stands still, not the model
    read = split_outputs(model, data)
    verdict = detect_collapse(read.weights.double(), read.mask, ids=read.ids)
    assert verdict.collapsed
    assert getattr(verdict, kind)
    assert (findings["distance-to-uniform"].max() < 1e-15) == (kind == "uniform")


# --- a toy of which everything is known


def test_an_attention_at_one_word_is_uneven_and_a_little_noise_flips_no_label():
    findings = findings_by(perturbed, case_of(planted_classifier(20.0), toy()[0]))
    assert findings["normalized-entropy"].max() < 0.05
    assert not findings["label-flip/noise"].any()


def test_a_substitution_of_the_decisive_word_flips_the_label_and_leaves_the_attention_unchanged():
    """Both draw the same score."""
    findings = findings_by(perturbed, case_of(planted_classifier(20.0), toy()[0], None, {"turned": (opposites(), 1)}))
    assert findings["label-flip/turned"].tolist() == [1.0] * 20
    assert findings["prediction-change/turned"].min() > 0.99
    assert findings["jensen-shannon/turned"].max() < 1e-12


def test_the_worst_for_attention_moves_it_further_than_noise_and_noise_further_than_nothing():
    model, data = planted_classifier(4.0), toy()[0]
    findings = findings_by(perturbed, case_of(model, data))
    noise, worst = findings["jensen-shannon/noise"], findings["jensen-shannon/pgd-attention"]
    assert (noise > 0).all()
    assert (worst > noise).all()
    still = findings_by(perturbed, case_of(model, data, ProbeConfig(radius=0.0)))
    for name in ("noise", "fgm-label", "pgd-attention"):
        for question in ("jensen-shannon", "prediction-change", "label-flip"):
            assert not still[f"{question}/{name}"].any()
        assert (still[f"top-k-overlap/{name}"] == 1).all()
        assert (still[f"kendall/{name}"] == 1).all()


def test_the_search_for_the_worst_names_the_shift_by_fgm_on_its_own_texts():
    """Its sample is smaller: the mean of FGM over all texts may be larger."""
    results = {
        finding.measure: finding
        for finding in perturbed(case_of(planted_classifier(4.0), toy()[0], ProbeConfig(sample=5)))
        if finding.explainer == "attention" and finding.measure.startswith(("weight-correlation", "jensen-shannon"))
    }
    worst, fgm = results["weight-correlation/pgd-attention"], results["weight-correlation/fgm-label"].values
    sampled = worst.values.isfinite()
    assert sampled.sum() == 5
    assert str(*worst.notes) == f"of 5 sampled texts, where one step of FGM gives {number(float(fgm[sampled].mean()))}"
    worst, fgm = results["jensen-shannon/pgd-attention"].values, results["jensen-shannon/fgm-label"].values
    assert (worst[sampled] >= fgm[sampled] - 1e-9).all()
    every = perturbed(case_of(planted_classifier(4.0), toy()[0]))
    assert not any(finding.notes for finding in every)


def test_stability_after_yin_is_of_texts_that_keep_their_label():
    model, data = cached_classifier(), split(["s" + "w" * n + "s" for n in range(3, 15)])
    findings = findings_by(perturbed, case_of(model, data, PLAN, SUBSTITUTIONS))
    turned = findings["label-flip/3-synonyms"] == 1
    for measure in ("kendall", "top-k-overlap"):
        every, kept = findings[f"{measure}/3-synonyms"], findings[f"{measure}/3-synonyms-kept"]
        assert kept.isnan().equal(turned | every.isnan())
        assert kept[~kept.isnan()].equal(every[~kept.isnan()])
