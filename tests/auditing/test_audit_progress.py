"""The progress of an audit: it ends at all passes, announces long work, and an interruption keeps finished measures."""

from collections import defaultdict
from dataclasses import replace
from random import Random

import pytest
import torch

import steadygaze as sg
from estimator.tiny import tiny
from properties.test_case import case_of
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.auditing import audit_progress
from steadygaze.auditing.audit import AuditInterrupted, run_audit
from steadygaze.auditing.audit_progress import BACKWARD, AuditProgress, planned_passes
from steadygaze.auditing.audit_report import AuditFindings
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
        "best orders of words": 8 * 3,  # each of three words left out, and alone
        "orders of words": 8 * 5 * (3 + 2 * 3),  # five sizes of three orders; of three, with other words
        "every subset of words": 8 * 2**3,
        "shown words": 8 * 3 * 6 * 2 / 3,  # three draws of six sets of words; a third of them are equal
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
    assert [(done, total) for _, done, total in calls] == [(8, 648), (16, 648), (16, 648), (16, 648)]
    assert calls[-1][0] == "positions of written: 1 of 8 texts"


def test_long_work_is_announced_with_shorter_choices(monkeypatch):
    case, sentences = case_of([3] * 8), []
    now = iter([100.0, 437.5])
    monkeypatch.setattr(audit_progress, "monotonic", lambda: next(now))
    progress = AuditProgress(case, Runtime(announce=sentences.append))
    progress.on_progress("reading", 4, 8)  # the time before does not count: it loads the model
    assert sentences == []
    progress.on_progress("orders of words", 1, 8)  # 45 of 648 passes in 337.5 s: 4,860 s in all
    progress.on_progress("written", 8, 8)
    assert sentences == [
        "this audit of 8 texts takes about 81 minutes; --sample 2 about 30 minutes, --limit 2 about 20 minutes"
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


WORDS = [f"{first}{second}" for first in "bcdfgklmnprst" for second in ("ad", "ell", "ing", "old", "ump", "ark")]
BACKWARD_TASKS = ("gradient", "fgm-label", "pgd-attention", "adversarial attention")
"""Tasks of gradients through other functions than a prediction: their costs are estimates."""


def long_texts(count: int = 6, words: int = 30) -> list[Example]:
    """Texts of many different words, of which few erasures leave the same."""
    random = Random(0)
    return [Example(" ".join(random.choices(WORDS, k=words)), random.choice(["neg", "pos"])) for _ in range(count)]


def passes_of_tasks(
    adapter: ModelAdapter, request: AuditRequest, monkeypatch
) -> tuple[dict[str, float], AuditFindings]:
    """Task -> the passes that the model makes until it reports its progress: tokens, in those of a text."""
    passes, tokens = defaultdict(float), [0.0]
    network = type(adapter.model)
    predict = network.forward

    def forward(self, batch, *arguments, **options):
        cost = 1 + BACKWARD if torch.is_grad_enabled() else 1
        tokens[0] += cost * int(batch.present.sum())
        return predict(self, batch, *arguments, **options)

    def count(activity: str, done: int, total: int) -> None:
        passes[activity.rpartition(": ")[0] or activity] += tokens[0]
        tokens[0] = 0.0

    monkeypatch.setattr(network, "forward", forward)
    audited = run_audit(replace(request, runtime=Runtime(on_progress=count)))
    length = passes["reading"] / len(request.examples)
    return {task: number / length for task, number in passes.items()}, audited


@pytest.mark.parametrize("thorough", [False, True])
def test_planned_passes_are_those_that_are_counted(thorough, monkeypatch):
    """Up to 30 % fewer: texts that several erasures leave are predicted once."""
    training = long_texts(20)
    adapter = as_adapter(tiny().fit([item.text for item in training], [item.label for item in training]))
    table = dict.fromkeys(WORDS[:40], WORDS[-5:])
    wanted = AuditRequest(adapter, long_texts(), ProbeConfig(thorough=thorough), ["attention"], synonyms=table)
    counted, audited = passes_of_tasks(adapter, wanted, monkeypatch)
    planned = planned_passes(audited.prepared.case)
    tasks = {task: number for task, number in planned.items() if number and task not in BACKWARD_TASKS}
    assert len(tasks) > (14 if thorough else 8)
    for task, number in tasks.items():
        assert 0.7 <= counted[task] / number <= 1.15, task
    others = {task: number for task, number in counted.items() if task not in planned}
    assert sum(others.values()) < 0.05 * sum(counted.values()), others
