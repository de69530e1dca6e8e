"""An audit applies the independent reader of a fitted explainer to the audited texts."""

import pytest
import torch

import steadygaze as sg
from opinions import CLASSES, QUICK, lexicon, texts
from steadygaze.adapters.text_explainer import TextExplainer
from steadygaze.properties import row_names
from steadygaze.results.report import Report

NAMES = row_names("independent-reader-accuracy", "leakage-gap")


@pytest.fixture(scope="module")
def fitted() -> TextExplainer:
    return sg.fit_explainer(lexicon, texts(), k=2, classes=CLASSES, settings=QUICK)


def audited(fitted: TextExplainer) -> Report:
    return sg.audit(fitted.black_box, texts(40, seed=3), explainers=[fitted.explainer])


@pytest.mark.slow
def test_a_selection_that_carries_the_label_has_no_gap(fitted: TextExplainer) -> None:
    report = audited(fitted)
    results = {row.measure: row for row in report.rows if row.measure in NAMES}
    assert set(results) == set(NAMES) - {"leakage-gap/raw"}, "only a rationalizer has texts without a gap"
    assert (
        results["independent-reader-accuracy"].value > 0.9 > results["independent-reader-accuracy/random-words"].value
    )
    assert abs(results["leakage-gap"].value) < 0.1
    each = [row for row in report.rows if row.measure == "independent-reader-accuracy/by-class"]
    assert sorted(row.settings["class"] for row in each) == CLASSES
    each = [row for row in report.rows if row.measure == "arbitrary-selection/by-class"]
    assert [row.value for row in each] == [0.0, 0.0]
    assert not any("leakage" in note or "selection" in note for note in map(str, report.notes))


@pytest.mark.slow
def test_a_selection_that_encodes_the_label_is_warned_of(fitted: TextExplainer, monkeypatch) -> None:
    """The first word where the prediction is one class, the second where it is the other; the approximator knows."""

    def scores(views, query=None):
        return torch.arange(views.x.shape[1], 0, -1).float().expand(views.x.shape)

    explainer = fitted.explainer
    monkeypatch.setattr(explainer.nets["selector"], "forward", scores)
    monkeypatch.setattr(explainer.nets["approximator"], "forward", lambda views, mask: views.probs.log())
    report = sg.audit(fitted.black_box, texts(60, seed=3), explainers=[explainer])
    (note,) = (note for note in map(str, report.notes) if "leakage" in note)
    assert note.startswith("Label leakage: from the selected words l2x's own approximator recovers")
    verdict = next(candidate for candidate in report.verdicts if candidate.key == "shortcut-leakage")
    assert verdict.answer == "no"
    assert "more often than an independent reader" in verdict.why


@pytest.mark.slow
def test_without_a_selection_or_an_independent_reader_the_reason_is_reported(fitted: TextExplainer) -> None:
    report = sg.audit(fitted.black_box, texts(12, seed=3), explainers=["leave-one-out"])
    assert all("selects words" in report.find(name).note for name in NAMES)
    nets = fitted.explainer.nets
    reader = nets.pop("reader")
    try:
        assert all("no independent reader" in audited(fitted).find(name).note for name in NAMES)
    finally:
        nets["reader"] = reader
