"""The audit of models that select: what needs open seams is missing with a reason, all else is a number."""

from functools import cache, partial

import numpy as np
import pytest
import torch

import commands
import steadygaze as sg
from estimator.test_rationalisers import LABELS, TEXTS, fitted
from steadygaze.audit.case import Plan
from steadygaze.audit.names import NAMES, under
from steadygaze.audit.probe.embeddings import noise, worst_for_attention
from steadygaze.audit.protocol import MATTERS
from steadygaze.batch import collate
from steadygaze.errors import UserError
from steadygaze.maths.chance import Chance
from steadygaze.maths.divergence import jensen_shannon
from steadygaze.maths.masked import shares
from steadygaze.report.report import Report

WORDS = ["good"] * 12 + ["bad"] * 12
EVIDENCE = [[(text.index(word), text.index(word) + len(word))] for text, word in zip(TEXTS, WORDS, strict=True)]
TRAININGS = under("uniform", "above-uniform", "trained-adversary", "default-tokens", "biased", "skewed")
SEAMS = ["prediction-change/permuted", "jensen-shannon/adversarial", *under("gradient")]
OTHERS = [
    *under("seeds", "others", *(f"{n}-synonym{s}{kept}" for n, s in ((1, ""), (3, "s")) for kept in ("", "-kept")))
]
LONG = ["sensitivity", "sensitivity/above-random", "seat-sensitivity", "position-leak", "position-leak/shuffled"]
ORDERS = ["a2r", "rnp tokens", "a2r attention"]


@cache
def audited(order: str) -> Report:
    return sg.audit(fitted(order), TEXTS, LABELS, evidence=EVIDENCE, plan=Plan(sample=4))


@pytest.mark.parametrize("order", ORDERS)
def test_what_needs_seams_a_training_or_more_texts_is_missing_and_nothing_else_is(order):
    found = {name: audited(order).find(name) for name in NAMES if name not in OTHERS}
    missing = {name for name, row in found.items() if row is None or not row.n}
    spoken = {name for name in missing if "/other" not in name}
    assert spoken <= {*TRAININGS, *SEAMS, *LONG, "first-sentence-share", "first-sentence-pick"}, spoken
    assert {*TRAININGS, *SEAMS} <= missing
    assert all(found[name].note.startswith("not applicable, because") for name in spoken)


@pytest.mark.parametrize("order", ORDERS)
def test_the_rationale_is_what_is_audited_and_the_model_is_left_as_it_was(order):
    model = fitted(order).stored_.model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    report = sg.audit(fitted(order), TEXTS[:3], LABELS[:3], plan=Plan(sample=1))
    assert report.facts["explanation"] == "rationale"
    assert all(value.equal(before[name]) for name, value in model.state_dict().items())
    assert not model.training


def test_its_numbers_are_those_of_what_explain_shows():
    """A sentence of n words, of which the reason is one: precision 1/n where it is in it."""
    shown = fitted("a2r").explain(TEXTS)
    right = [e.rationale[0][0] <= marked[0][0] < e.rationale[0][1] for e, marked in zip(shown, EVIDENCE, strict=True)]
    sizes = [sum(map(bool, e.weights)) for e in shown]
    report = audited("a2r")
    precision = sum(hit / n for hit, n in zip(right, sizes, strict=True)) / 24
    assert report.find("token-precision/selected").value == pytest.approx(precision)
    assert report.find("token-recall/selected").value == pytest.approx(sum(right) / 24)
    f1 = sum(2 * hit / (n + 1) for hit, n in zip(right, sizes, strict=True)) / 24
    assert report.find("token-f1/selected").value == pytest.approx(f1)
    assert report.find("first-sentence").value == pytest.approx(sum(e.rationale[0][0] == 0 for e in shown) / 24)
    share = sum(n / len(e) for n, e in zip(sizes, shown, strict=True)) / 24
    assert report.find("selected-share").value == pytest.approx(share)
    assert report.find("selected-spans").value == 1


def test_attention_asked_of_one_that_selects_is_its_selection_too():
    """So that a comparison can hold it against models that attend."""
    report = sg.audit(fitted("a2r"), TEXTS, LABELS, explainers=["attention"], evidence=EVIDENCE, plan=Plan(sample=4))
    for name in ("token-f1/selected", "first-sentence", "comprehensiveness", "jensen-shannon/noise"):
        assert report.find(name, "attention").value == pytest.approx(audited("a2r").find(name, "rationale").value)


def test_the_worst_change_for_a_selection_is_sought_by_the_chances_which_have_a_slope():
    """The selection itself has none: a search by it would stay where it was drawn."""
    clf = fitted("a2r")
    model, batch = clf.stored_.model, collate(clf.stored_.data(TEXTS, None), np.arange(24))
    drawn, worst = noise(model, batch, 0.5, Chance(3)), worst_for_attention(model, batch, 0.5, Chance(3))
    with torch.no_grad():
        clean, less, more = (
            shares(model(batch, embedded).probability.double(), batch.mask)
            for embedded in (None, drawn.embedded, worst.embedded)
        )
    assert (jensen_shannon(clean, more, batch.mask) > 1.5 * jensen_shannon(clean, less, batch.mask)).all()


def test_the_page_lists_sentences_and_is_made_again_from_its_json(tmp_path):
    report = sg.audit(fitted("a2r"), TEXTS, LABELS, plan=Plan(radius=5.0, sample=24))
    assert report.shifts
    assert all(shift.before.rationale and shift.after.rationale for shift in report.shifts)
    page = report.to_html()
    report.to_json(tmp_path / "report.json")
    assert Report.from_json(tmp_path / "report.json").to_html() == page
    start, end, _ = report.shifts[0].before.rationale[0]
    assert f"<b>{report.shifts[0].before.text[start:end]}</b>" in page
    assert MATTERS in page


def test_the_command_audits_one_and_writes_its_card(capsys, tmp_path):
    run, file = partial(commands.run, capsys), tmp_path / "films.csv"
    rows = "".join(f'"{text}",{label},"[""{word}""]"\n' for text, label, word in zip(TEXTS, LABELS, WORDS, strict=True))
    file.write_text("text,label,why\n" + rows, encoding="utf-8")
    fitted("a2r").save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "classifier that shows its rationale" in card
    assert "those it selected" in card
    ended = run("audit", tmp_path / "model", "--data", file, "--evidence", "why", "--sample", 2, "-v")
    assert ended.code == 0, ended.err
    assert "token-f1/selected" in ended.out
    assert "first-sentence" in ended.out
    assert "rationale" in (tmp_path / "model" / "README.md").read_text()


def test_evidence_that_does_not_align_says_which_row_and_why(capsys, tmp_path):
    for marked, why in (
        ([(0, 400)], r"evidence\[1\]: \[0, 400\] does not lie in a text of \d+ characters"),
        ([(2, 3)], r"evidence\[1\]: \[2, 3\] holds white space alone, and no word"),
        ([3], r"evidence\[1\]: \[3\] is not a list of \(start, end\)"),
        (["superb"], r"evidence\[1\]: the phrase 'superb' is not in the text"),
    ):
        with pytest.raises(UserError, match=why):
            sg.audit(fitted("a2r"), ["a film .", "it rained ."], evidence=[None, marked])
    file = tmp_path / "films.jsonl"
    file.write_text('{"text": "a film .", "why": [[0, 1]]}\n{"text": "it rained .", "why": [[3, 40]]}\n')
    fitted("a2r").save(tmp_path / "model")
    ended = commands.run(capsys, "audit", tmp_path / "model", "--data", file, "--evidence", "why")
    assert ended.code == 2
    assert "[3, 40] does not lie in a text of 11 characters" in " ".join(ended.err.split())
    assert "line 2" in ended.err or "row 2" in ended.err


def test_texts_of_one_sentence_are_audited_and_their_first_sentence_says_nothing():
    report = sg.audit(fitted("a2r"), ["the film was good", "a bad plot ."] * 4, ["pos", "neg"] * 4, plan=Plan(sample=2))
    row = report.find("first-sentence")
    assert (row.n, row.note) == (0, "not applicable, because it makes sense of no text")
    assert report.find("selected-share").value == 1
    assert not torch.tensor(report.find("accuracy").value).isnan()
