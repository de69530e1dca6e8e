"""The audit of models that select: measures that need extension points are missing with a reason, all others exist."""

import copy
import re
from functools import cache, partial

import numpy as np
import pytest
import torch
from torch import Tensor

import commands
import steadygaze as sg
from estimator.test_rationalizers import LABELS, TEXTS, fitted
from report.browser import plain_text
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.auditing.audit import FAITHFULNESS
from steadygaze.auditing.prepare_case import prepare
from steadygaze.core.errors import UserError
from steadygaze.core.maths.distributions import jensen_shannon, normalize, top_k
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch, Example
from steadygaze.data.batches import collate
from steadygaze.explainers.explainer import SELECTS
from steadygaze.explainers.rationale import RationaleExplainer
from steadygaze.models.inference import MISSING_CAPABILITY
from steadygaze.models.rationalizer import GeneratorOutput, Rationalizer
from steadygaze.properties import PROPERTIES, row_names, rows_under
from steadygaze.properties.audit_case import AuditCase, Finding
from steadygaze.properties.probes.text_perturbations import embedding_noise, fgm_on_label, gradient, pgd_on_attention
from steadygaze.properties.protocols.faithfulness import UNREAD
from steadygaze.properties.protocols.flip_radius import flip_radius
from steadygaze.properties.protocols.interlocking import (
    INTERLOCKING_MEASURES,
    interlocking_note,
)
from steadygaze.properties.protocols.interlocking import SELECTS as NO_ATTENTION
from steadygaze.properties.protocols.plausibility import NO_RATIONALES
from steadygaze.properties.protocols.stability import NO_GRADIENT as SLOPE
from steadygaze.properties.protocols.stability import robustness
from steadygaze.results.audit_config import ProbeConfig, Runtime
from steadygaze.results.report import Report

WORDS = ["good"] * 12 + ["bad"] * 12
RATIONALES = [[(text.index(word), text.index(word) + len(word))] for text, word in zip(TEXTS, WORDS, strict=True)]
TRAININGS = rows_under("uniform", "above-uniform", "trained-adversary", "default-tokens", "biased", "skewed")
EXTENSION_POINTS = ["prediction-change/permuted", "jensen-shannon/adversarial"]
GRADIENTS = rows_under("gradient", "gradient-through-attention")
SLOPELESS = [f"{measure}/fgm-label" for measure in ("weight-correlation", "jensen-shannon", "top-k-overlap", "kendall")]
OTHERS = [
    *rows_under("reworded", "reworded-top"),
    *rows_under(
        "seeds", "others", *(f"{n}-synonym{s}{kept}" for n, s in ((1, ""), (3, "s")) for kept in ("", "-kept"))
    ),
]
READ = row_names("independent-reader-accuracy", "leakage-gap", "arbitrary-selection")
THOROUGH = [check.rows for item in PROPERTIES.values() for check in item.checks if check.thorough and check.rows]
LONG = [*(row for rows in THOROUGH for row in rows), "seat-sensitivity"]
ONE_CLASS = [*row_names("position-leak"), "content-leak", "value-leak", "encode-meter", "stripe-x"]
"""The model predicts one class for all texts: nothing can be read from its explanations."""
TECHNIQUES = ["a2r", "rnp tokens", "a2r attention"]


@cache
def audited(order: str) -> Report:
    return sg.audit(fitted(order), TEXTS, LABELS, rationales=RATIONALES, sample=4)


@pytest.mark.slow
@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("order", TECHNIQUES)
def test_only_measures_that_need_extension_points_training_more_texts_or_gradients_are_missing(order):
    """A generator that reads what the predictor reads, as `a2r attention` has it, moves with the label's slope."""
    slopeless = SLOPELESS if fitted(order).stored_.model.selection_config.separate_encoders else []
    assert bool(slopeless) == (order != "a2r attention")
    results = {
        name: audited(order).find(name) for name in row_names() if name not in OTHERS and "/repeated" not in name
    }
    missing = {name for name, row in results.items() if row is None or not row.n}
    page_words = {name for name in missing if "/other" not in name}
    known = {*TRAININGS, *EXTENSION_POINTS, *GRADIENTS, *slopeless, *LONG, *ONE_CLASS, *READ, "shapley-agreement"}
    assert page_words <= known, page_words - known
    assert {*TRAININGS, *EXTENSION_POINTS, *GRADIENTS, *slopeless, *ONE_CLASS} <= missing
    assert all(results[name].absent for name in page_words)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("order", TECHNIQUES)
def test_the_rationale_is_what_is_audited_and_the_model_is_left_as_it_was(order):
    model = fitted(order).stored_.model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    report = sg.audit(fitted(order), TEXTS[:3], LABELS[:3], sample=1)
    assert report.facts["explanation"] == "rationale"
    assert all(value.equal(before[name]) for name, value in model.state_dict().items())
    assert not model.training


def test_its_numbers_are_those_of_what_explain_shows():
    """A sentence of n words, of which the reason is one: precision 1/n where it is in it."""
    shown = fitted("a2r").explain(TEXTS)
    right = [e.rationale[0][0] <= marked[0][0] < e.rationale[0][1] for e, marked in zip(shown, RATIONALES, strict=True)]
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


@pytest.mark.usefixtures("fewer_protocols")
def test_one_that_selects_has_no_attention_to_audit():
    with pytest.raises(UserError, match=r"attention of .* cannot be audited: the model selects words and"):
        sg.audit(fitted("a2r"), TEXTS, LABELS, explainers=["attention"])
    report = sg.audit(fitted("a2r"), TEXTS, LABELS, explainers=["attention", "rationale"], sample=1)
    assert report.facts["explanation"] == "rationale"
    assert f"The explainer attention was not audited: {SELECTS}." in map(str, report.notes)


@pytest.mark.sweep(keep=1)
@pytest.mark.usefixtures("fewer_protocols")
@pytest.mark.parametrize(("taken", "right", "sign"), [(0, 1, "✓"), (0, 0, "~"), (1, 1, "✗")])
def test_interlocking_is_reported_with_the_icon_of_the_answer(monkeypatch, taken, right, sign):
    """All first sentences or none are taken, where none should be; a model that is never right has learned nothing."""
    first, every = torch.full((24,), float(taken)), torch.ones(24, dtype=torch.bool)
    remarks = {
        name: interlocking_note(name, first, torch.full((24,), float(right)), 0.5, (every, "rationale"))
        for name in INTERLOCKING_MEASURES
    }
    monkeypatch.setattr(
        "steadygaze.auditing.audit.interlocking",
        lambda *_: [Finding(name, first, "rationale", {}, (remark,)) for name, remark in remarks.items()],
    )
    report = sg.audit(fitted("a2r"), TEXTS, LABELS, train=(TEXTS, LABELS), sample=1)
    assert list(map(str, report.notes[-2:])) == [f"{sign} T{str(remark)[1:]}." for remark in remarks.values()]
    assert all(str(note) in str(report).splitlines() for note in report.notes[-2:])


def test_the_worst_change_of_a_selection_is_searched_with_the_probabilities_which_have_a_gradient():
    """The selection itself has none: a search by it would stay where it was drawn."""
    clf = fitted("a2r")
    model, batch = clf.stored_.model, collate(clf.stored_.data(TEXTS, None), np.arange(24))
    drawn, worst = embedding_noise(model, batch, 0.5, RandomKey(3)), pgd_on_attention(model, batch, 0.5, RandomKey(3))
    with torch.no_grad():
        clean, less, more = (
            normalize(model(batch, embedded).probability.double(), batch.mask)
            for embedded in (None, drawn.embedded, worst.embedded)
        )
    assert (jensen_shannon(clean, more, batch.mask) > 1.5 * jensen_shannon(clean, less, batch.mask)).all()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("order", TECHNIQUES)
def test_a_step_against_the_label_leaves_the_vectors_of_a_generator_of_its_own_where_they_are(order):
    """At any distance: that a selection is stable under it shows nothing.  It is reported, and does not count."""
    clf = fitted(order)
    model, batch = clf.stored_.model, collate(clf.stored_.data(TEXTS, None), np.arange(24))
    with torch.no_grad():
        step = fgm_on_label(model, batch, 1.0).embedded - model.embed(batch)
    assert bool(model._parts(step)[0].any()) is not model.selection_config.separate_encoders
    assert model._parts(step)[1].any()
    report = audited(order)
    rows = [report.find(name, "rationale") for name in SLOPELESS]
    assert {row.absent == SLOPE for row in rows} == {model.selection_config.separate_encoders}
    robust = next(verdict for verdict in report.verdicts if verdict.key == "robustness")
    assert (rows[0].signature in robust.rows) is not model.selection_config.separate_encoders
    assert all(report.find(name).n == 24 for name in ("prediction-change/fgm-label", "label-flip/fgm-label"))


@pytest.mark.slow
def test_another_explanation_of_one_that_selects_is_moved_by_a_step_against_the_label():
    report = sg.audit(fitted("a2r"), TEXTS, LABELS, explainers=["rationale", "gradient"], sample=4)
    assert all(report.find(name, "gradient").n for name in SLOPELESS)
    assert not any(report.find(name, "rationale").n for name in SLOPELESS)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("order", TECHNIQUES)
def test_the_gradient_is_zero_on_words_that_were_not_selected_and_need_not_agree(order):
    clf = fitted(order)
    model, batch = clf.stored_.model, collate(clf.stored_.data(TEXTS, None), np.arange(24))
    with torch.no_grad():
        selected = model(batch).selected
    slope = gradient(model, batch, detach_attention=False)
    assert not slope[~selected].any()
    assert slope[selected].any()
    assert all(audited(order).find(name).absent == UNREAD for name in GRADIENTS)


@pytest.mark.parametrize("order", ["a2r", "rnp tokens"])
def test_the_first_sentence_is_the_models_own_where_nobody_marked_it(order):
    """Of a sentence the whole weight lies in the first, or none; of words, that part of it.

    All words marked stand in the second: due to the first is what its length makes.
    """
    shown = fitted(order).explain(TEXTS)
    ends = [min(text.index(mark) for mark in ".!?" if mark in text) + 1 for text in TEXTS]
    shares = [
        sum(weight for weight, (start, _) in zip(e.weights, e.spans, strict=True) if start < end)
        for e, end in zip(shown, ends, strict=True)
    ]
    picks = [e.spans[int(np.argmax(e.weights))][0] < end for e, end in zip(shown, ends, strict=True)]
    report = audited(order)
    assert report.find("first-sentence-share", "rationale").value == pytest.approx(np.mean(shares), abs=1e-6)
    assert report.find("first-sentence-pick", "rationale").value == pytest.approx(np.mean(picks))
    assert report.find("first-sentence-share", "rationale").n == 24
    due = [np.mean([start < end for start, _ in e.spans]) for e, end in zip(shown, ends, strict=True)]
    above = report.find("first-sentence-share/above-rationale", "rationale").value
    assert above == pytest.approx(np.mean(shares) - np.mean(due), abs=1e-6)


class Opening(Rationalizer):
    """Two words of the first sentence, whichever they are."""

    def select(self, batch: Batch, looked: GeneratorOutput) -> Tensor:
        return top_k(looked.scores.detach(), self.sentences(batch) == 0, 2)


@pytest.mark.slow
def test_words_of_a_first_sentence_that_is_no_reason_are_no_more_than_a_place():
    clf = copy.deepcopy(fitted("rnp tokens"))
    clf.stored_.model.__class__ = Opening
    marked, unmarked = (sg.audit(clf, TEXTS, rationales=rationales, sample=2) for rationales in (RATIONALES, None))
    assert marked.find("collapsed").value == 0
    verdict = next(candidate for candidate in marked.verdicts if candidate.key == "shortcut-leakage")
    assert verdict.answer == "no"
    assert verdict.why.startswith("The first sentence gets 0.7")
    first = sg.audit(clf, TEXTS, rationales=[[(0, 2)]] * 24, sample=2).find("first-sentence-share/above-rationale")
    assert (first.value, first.n) == (0, 24), "what people marked is there as well"
    assert unmarked.find("first-sentence-share/above-rationale").absent == NO_RATIONALES


@pytest.mark.slow
def test_the_page_lists_sentences_and_is_made_again_from_its_json(tmp_path):
    report = sg.audit(fitted("a2r"), TEXTS, LABELS, radius=5.0, sample=24)
    assert report.shifts
    assert all(shift.before.rationale and shift.after.rationale for shift in report.shifts)
    page = report.to_html()
    report.to_json(tmp_path / "report.json")
    assert Report.from_json(tmp_path / "report.json").to_html() == page
    start, end, _ = report.shifts[0].before.rationale[0]
    assert f"<b>{report.shifts[0].before.text[start:end]}</b>" in page
    assert FAITHFULNESS in page


@pytest.mark.slow
def test_its_page_names_the_selection_and_mentions_attention_only_as_absent():
    page = plain_text(sg.audit(fitted("a2r"), TEXTS, LABELS, radius=5.0, sample=24).to_html())
    assert "The shift of the selection is a Jensen-Shannon divergence" in page
    assert "Shift of the selection under small perturbations" in page
    assert "Agreement of the selection with the gradient" not in page, "it is 0 where nothing is read"
    for known in (MISSING_CAPABILITY["extension_points"], str(NO_ATTENTION)):
        assert known in page
        page = page.replace(known, "")
    assert "attention" not in re.sub(r"\b[\w/-]+-attention\b", "", page), "beside names of numbers"


@pytest.mark.slow
def test_the_command_audits_one_and_writes_its_card(capsys, tmp_path):
    run, file = partial(commands.run, capsys), tmp_path / "films.csv"
    rows = "".join(f'"{text}",{label},"[""{word}""]"\n' for text, label, word in zip(TEXTS, LABELS, WORDS, strict=True))
    file.write_text("text,label,why\n" + rows, encoding="utf-8")
    fitted("a2r").save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "classifier with rationale" in card
    assert "are the selected rationale" in card
    ended = run("audit", tmp_path / "model", "--data", file, "--rationales", "why", "--sample", 2, "-v")
    assert ended.code == 0, ended.err
    assert "token-f1/selected" in ended.out
    assert "first-sentence" in ended.out
    assert "rationale" in (tmp_path / "model" / "README.md").read_text()


def test_rationales_that_do_not_align_are_an_error_with_row_and_reason(capsys, tmp_path):
    for marked, why in (
        ([(0, 400)], r"rationales\[1\]: \[0, 400\] is outside of a text of \d+ characters"),
        ([(2, 3)], r"rationales\[1\]: \[2, 3\] contains only white space"),
        ([3], r"rationales\[1\]: found 1 marks; words between white space in the text: 3"),
        (["superb"], r"rationales\[1\]: the phrase 'superb' is not in the text"),
    ):
        with pytest.raises(UserError, match=why):
            sg.audit(fitted("a2r"), ["a film .", "it rained ."], rationales=[None, marked])
    file = tmp_path / "films.jsonl"
    file.write_text('{"text": "a film .", "why": [[0, 1]]}\n{"text": "it rained .", "why": [[3, 40]]}\n')
    fitted("a2r").save(tmp_path / "model")
    ended = commands.run(capsys, "audit", tmp_path / "model", "--data", file, "--rationales", "why")
    assert ended.code == 2
    assert "[3, 40] is outside of a text of 11 characters" in " ".join(ended.err.split())
    assert "line 2" in ended.err or "row 2" in ended.err


def test_texts_of_one_sentence_are_audited_and_their_first_sentence_has_no_value():
    report = sg.audit(fitted("a2r"), ["the film was good", "a bad plot ."] * 4, ["pos", "neg"] * 4, sample=2)
    row = report.find("first-sentence")
    assert (row.n, row.note) == (0, "not applicable, because the measure is not defined for any text")
    assert report.find("selected-share").value == 1
    assert not torch.tensor(report.find("accuracy").value).isnan()


@pytest.mark.slow
def test_the_vectors_of_a_whole_vocabulary_are_looked_at_once_and_not_with_every_batch(monkeypatch):
    """Those of a rationalizer are two tables side by side: concatenated in every call."""
    for name in ("ROUNDS", "SEAT_STEPS"):
        monkeypatch.setitem(flip_radius.__globals__, name, 1)
    calls, whole = [], Rationalizer.vectors.fget
    monkeypatch.setattr(Rationalizer, "vectors", property(lambda model: calls.append(1) or whole(model)))
    results = {}
    for size in (4, 2):
        calls.clear()
        case = prepared(ProbeConfig(sample=4, thorough=True), Runtime(batch_size=size))
        assert [
            finding
            for protocol in (robustness, flip_radius)
            for finding in protocol(case)
            if finding.values is not None
        ]
        results[size] = len(calls)
    assert results == {4: 2, 2: 2}, "the spread of their entries, and their mean length"


def prepared(config: ProbeConfig, runtime: Runtime) -> AuditCase:
    """Two texts of either label."""
    examples = [Example(TEXTS[row], LABELS[row]) for row in (0, 1, 12, 13)]
    return prepare(as_adapter(fitted("a2r")), examples, {"rationale": RationaleExplainer()}, config, {}, runtime).case
