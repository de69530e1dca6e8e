"""Human rationales in an audit: every form gives the same numbers; graded marks weight the rationale mass."""

import numpy as np
import pytest

import steadygaze as sg
from steadygaze.auditing.audit import examples_of
from steadygaze.auditing.prepare_case import fingerprint
from steadygaze.core.errors import UserError

TEXT = "a good film and bad sound"
FORMS = {
    "spans": [(2, 6), (16, 19)],
    "phrases": ["good", "bad"],
    "mask": [0, 1, 0, 0, 1, 0],
    "array": np.array([0, 1, 0, 0, 1, 0]),
    "eraser": [[{"start_token": 1, "end_token": 2}], [{"start_token": 4, "end_token": 5}]],
}
LINEAR = {"good": 2.0, "bad": -1.0, "film": 0.5}


def predict(texts):
    score = np.array([sum(weight * text.split().count(word) for word, weight in LINEAR.items()) for text in texts])
    return np.stack([1 / (1 + np.exp(score)), 1 / (1 + np.exp(-score))], -1)


def audit(rationale):
    options = {"classes": ["bad", "good"], "explainers": ["leave-one-out"], "sample": 5}
    return sg.audit(predict, [TEXT, "a dull film"], ["good", "bad"], rationales=[rationale, None], **options)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_rationale(form):
    (example, other) = examples_of([TEXT, "x"], None, [FORMS[form], None])
    assert example.rationales == ((2, 6), (16, 19))
    assert other.rationales is None


def test_an_invalid_rationale_is_named_by_its_row():
    with pytest.raises(UserError, match=r"rationales\[1\]: found 2 marks; words between .*: 3; .*: 3"):
        sg.audit(predict, [TEXT, "a dull film"], rationales=[None, [0, 1]], classes=["bad", "good"])


@pytest.fixture(scope="module")
def graded():
    return audit([0, 0.5, 0.25, 0, 1, 0])


def test_graded_marks_weight_the_rationale_mass(graded):
    row = graded.find("rationale-mass")
    explanation = graded.explanations[0]
    weights = np.abs(explanation.weights)
    assert row.value == pytest.approx(float((weights * [0, 0.5, 0.25, 0, 1, 0]).sum() / weights.sum()))
    level = "chance level 0.292, for a random choice or order of words"  # 1.75 / 6
    assert (row.n, row.note) == (1, f"each word counts by its graded mark; {level}")


def test_the_other_measures_use_the_words_with_a_mark_from_one_half(graded):
    binary = audit(FORMS["mask"])
    for measure in ("token-f1", "iou-f1", "auprc", "average-precision", "token-f1-micro"):
        assert graded.find(measure).value == binary.find(measure).value
    weights = np.abs(binary.explanations[0].weights)
    assert binary.find("rationale-mass").value == pytest.approx(float(weights[[1, 4]].sum() / weights.sum()))
    assert "graded" not in binary.find("rationale-mass").note


def test_the_fingerprint_of_the_data_depends_on_the_marks():
    graded, other, binary = (examples_of([TEXT], None, [[0, 1, mark, 0, 1, 0]]) for mark in (0.25, 0.125, 0))
    assert len({fingerprint(graded), fingerprint(other), fingerprint(binary)}) == 3


def test_the_page_shows_the_rationale_beside_the_explanation(graded):
    section = graded.to_html().split('<h2 id="rationales">')[1].split("</section>")[0]
    assert section.count("<h4>Human rationale</h4>") == 1
    assert "<span><b>good</b></span> <span><b>bad</b></span>" in section
    assert "2 of 3 top-weighted words are in the rationale" in section
    human, explanation = section.split("<h4>")[1:]
    assert human.count("background-color") == 2  # good, bad
    assert explanation.count("background-color") == 3  # film, too
    assert explanation.count("text-decoration:underline") == 2
    assert 'id="rationales"' not in sg.audit(predict, [TEXT], classes=["bad", "good"]).to_html()
