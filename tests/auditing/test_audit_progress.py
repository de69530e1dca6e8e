"""The progress of an audit: it ends at all passes, announces long work, and an interruption keeps finished measures."""

from dataclasses import replace

import pytest

import steadygaze as sg
from properties.test_case import case_of
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.auditing import audit_progress
from steadygaze.auditing.audit import AuditInterrupted, run_audit
from steadygaze.auditing.audit_progress import AuditProgress, planned_passes
from steadygaze.auditing.prepare_case import AuditRequest
from steadygaze.core.types import Example
from steadygaze.explainers.leave_one_out import LeaveOneOut
from steadygaze.results.audit_config import ProbeConfig, Runtime

EXAMPLES = [Example(f"{word} film number {number}", word) for number in range(4) for word in ("good", "bad")]


def predict(texts: list[str]) -> list[list[float]]:
    return [[0.9, 0.1] if "bad" in text else [0.2, 0.8] for text in texts]


def request(**runtime) -> AuditRequest:
    adapter = as_adapter(predict, classes=["bad", "good"])
    return AuditRequest(adapter, EXAMPLES, ProbeConfig(), ["leave-one-out"], runtime=Runtime(**runtime))


def test_the_bar_ends_at_the_number_of_planned_passes():
    calls = []
    run_audit(request(on_progress=lambda *call: calls.append(call)))
    planned = [(done, total) for activity, done, total in calls if "texts" in activity]
    totals = {total for _, total in planned}
    assert len(totals) == 1
    assert planned[-1][0] == totals.pop()
    assert [done for done, _ in planned] == sorted(done for done, _ in planned)


def test_planned_passes_by_hand():
    """Eight texts, an explainer of one pass, a model without embeddings and parameters."""
    case = case_of([3] * 8)
    assert case.explainers["written"].forward_passes == 1
    assert planned_passes(case) == {
        "reading": 8,
        "written": 8,
        "written of shuffled texts": 8,
        "words erased by random": 40,
        "words erased by written": 40,
        "orders of words": 8 * (5 * (4 + 2 * 3) + 3),  # five sizes of four and three orders, three words alone
    }


def test_an_audit_of_chosen_measures_plans_only_their_passes():
    """Without erasures, shuffled texts and randomized models."""
    calls, wanted = [], replace(request(on_progress=lambda *call: calls.append(call)), measures=frozenset({"accuracy"}))
    run_audit(wanted)
    passes = 8 * (1 + LeaveOneOut().passes(4))  # eight texts of four words on average, read and explained
    assert {total for _, _, total in calls} == {passes}
    assert calls[-1][1] == passes


def test_the_bar_never_falls_and_other_tasks_leave_it_where_it_is():
    calls = []
    progress = AuditProgress(case_of([3] * 8), Runtime(on_progress=lambda *call: calls.append(call)))
    for task, done in (("reading", 8), ("written", 8), ("written", 2), ("positions of written", 1)):
        progress.on_progress(task, done, 8)
    assert [(done, total) for _, done, total in calls] == [(8, 528), (16, 528), (16, 528), (16, 528)]
    assert calls[-1][0] == "positions of written: 1 of 8 texts"


def test_long_work_is_announced_with_shorter_choices(monkeypatch):
    case, sentences = case_of([3] * 8), []
    now = iter([100.0, 497.5])
    monkeypatch.setattr(audit_progress, "monotonic", lambda: next(now))
    progress = AuditProgress(case, Runtime(announce=sentences.append))
    progress.on_progress("reading", 4, 8)  # the time before does not count: it loads the model
    assert sentences == []
    progress.on_progress("orders of words", 1, 8)  # 53 of 528 passes in 397.5 s: 3,960 s in all
    progress.on_progress("written", 8, 8)
    assert sentences == [
        "this audit of 8 texts takes about 66 minutes; --sample 2 about 26 minutes, --limit 2 about 16 minutes"
    ]


def test_short_work_is_not_announced():
    sentences = []
    run_audit(request(announce=sentences.append))
    assert sentences == []


def test_an_interruption_keeps_finished_measures_and_gives_no_verdict():
    def stop(activity: str, done: int, total: int) -> None:
        if activity.startswith("words erased"):
            raise KeyboardInterrupt

    complete = sg.audit(predict, [item.text for item in EXAMPLES], [item.label for item in EXAMPLES],
                        classes=["bad", "good"], explainers=["leave-one-out"])  # fmt: skip
    with pytest.raises(AuditInterrupted) as interruption:
        run_audit(request(on_progress=stop))
    report = interruption.value.findings.report()
    assert report.title == "Explanation audit (incomplete)"
    assert "interrupted" in report.notes[0].sentence
    assert {verdict.answer for verdict in report.verdicts} == {"not measured"}
    assert report.find("accuracy").value == complete.find("accuracy").value == 1
    assert report.find("comprehensiveness") is None
    assert "incomplete" in replace(report, date="").to_dict()["title"]
