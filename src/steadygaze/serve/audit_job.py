"""Audit a model in the background: the report of `sg.audit`, and the texts behind each of its numbers."""

import copy
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from steadygaze.adapters.black_box import BlackBoxModel, TextWords
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.auditing.audit import run_audit
from steadygaze.auditing.audit_report import AuditFindings
from steadygaze.auditing.prepare_case import compose_request
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.properties.audit_case import Finding
from steadygaze.results.audit_config import AuditConfig, Runtime
from steadygaze.results.report import Report, now
from steadygaze.serve.jobs import Job
from steadygaze.serve.served_models import ServedModel

ERRORS = "errors"
"""Order: wrong predictions first, the most confident one first."""
ORDER = "order"
"""Order of the data."""


@dataclass(frozen=True)
class AuditedText:
    text: str
    question: str | None
    label: str | None
    """The label of the data."""
    predicted: str
    probability: float
    values: Mapping[str, float]
    """Measure -> the value of this text."""

    @property
    def is_wrong(self) -> bool:
        return self.label is not None and self.label != self.predicted


@dataclass(frozen=True)
class AuditResult:
    """A report and its texts, in the order of the data."""

    report: Report
    texts: Sequence[AuditedText]
    corpus: str

    @property
    def measures(self) -> list[str]:
        """The measures with a value for single texts."""
        return list(dict.fromkeys(name for text in self.texts for name in text.values))

    def numbers(self) -> list[dict[str, Any]]:
        """The rows of the report, with heading, better direction and whether its texts can be sorted by it."""
        sortable, main = set(self.measures), self.report.facts.get("explanation")
        return [
            {
                **row.to_dict(),
                "section": self.report.sections.get(row.measure, ""),
                "better": self.report.better(row.measure),
                "sortable": row.measure in sortable and row.settings.get("explainer") in (None, main),
            }
            for row in self.report.rows
        ]

    def select(
        self, order: str, label: str | None = None, wrong: bool | None = None, word: str | None = None
    ) -> list[tuple[int, AuditedText]]:
        """Positions and texts that pass the filters; the worst value of the measure `order` first."""
        matches = [
            (position, text)
            for position, text in enumerate(self.texts)
            if (label is None or text.label == label)
            and (wrong is None or text.is_wrong == wrong)
            and (not word or word.lower() in f"{text.text} {text.question or ''}".lower())
        ]
        if order == ORDER:
            return matches
        if order == ERRORS:
            return sorted(matches, key=lambda item: (not item[1].is_wrong, -item[1].probability))
        if order not in self.measures:
            raise UserError(f"texts cannot be sorted by {order!r:.60}: sort by order, errors or a measure of texts")
        sign = 1 if self.report.better(order) == "higher" else -1  # the worst text first
        return sorted(matches, key=lambda item: sign * item[1].values.get(order, sign * math.inf))


def guard(adapter: ModelAdapter) -> None:
    """Let only one thread at a time call the function of a black box: requests and an audit share it."""
    if isinstance(adapter.model, BlackBoxModel) and adapter.hosted is None:  # a hosted model has locks of its own
        adapter.model.predict = _locked(adapter.model.predict)


def _locked(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    lock = threading.Lock()

    def locked(*texts: Any, **more: Any) -> Any:
        with lock:
            return function(*texts, **more)

    if (draw := getattr(function, "draw", None)) is not None:  # further answers to the same texts

        def locked_draw(*texts: Any, **more: Any) -> Any:
            with lock:
                return draw(*texts, **more)

        locked.draw = locked_draw  # type: ignore[attr-defined]
    return locked


def own_copy(adapter: ModelAdapter) -> ModelAdapter:
    """A copy for another thread: an audit changes modes of the network, and requests go on."""
    if isinstance(adapter.model, BlackBoxModel):  # a function may not be copied, and requests change its vocabulary
        words = TextWords()
        box = BlackBoxModel(adapter.model.predict, words, adapter.model.classes, adapter.model.task).eval()
        return replace(adapter, model=box, tokens=words)
    model, tokens, pairs = copy.deepcopy((adapter.model, adapter.tokens, adapter.pairs))
    return replace(adapter, model=model, tokens=tokens, pairs=pairs)


def run_audit_job(job: Job, model: ServedModel, examples: Sequence[Example], config: AuditConfig) -> AuditResult:
    """The report of `sg.audit` with these texts and settings; also written as result.json and result.html."""
    runtime = Runtime(batch_size=model.batch_size or Runtime.batch_size, on_progress=job.on_progress)
    adapter, synonyms = own_copy(model.adapter), model.table or None
    request = compose_request([adapter], examples, config, runtime, explainers=config.explainers, synonyms=synonyms)
    job.texts = len(request.examples)
    findings = run_audit(request)
    job.on_progress("writing the report", job.total, job.total)
    report = replace(findings.report(), date=now())
    result = AuditResult(report, list(_texts(findings)), config.data)
    report.to_html(job.folder / "result.html")
    report.to_json(job.folder / "result.json")
    return result


def _texts(findings: AuditFindings) -> Iterator[AuditedText]:
    prepared, case = findings.prepared, findings.prepared.case
    columns = {f.measure: f.values.tolist() for f in _main(findings) if f.values is not None}
    classes, codes = [str(name) for name in prepared.adapter.classes], case.data.label
    for row, (example, probabilities) in enumerate(zip(prepared.examples, case.probs.tolist(), strict=True)):
        best = max(range(len(probabilities)), key=probabilities.__getitem__)
        values = {name: column[row] for name, column in columns.items() if math.isfinite(column[row])}
        label = None if codes is None else classes[codes[row]]
        yield AuditedText(example.text, example.question, label, classes[best], probabilities[best], values)


def _main(findings: AuditFindings) -> list[Finding]:
    """Findings about the predictions, and about the explainer that the verdicts rate."""
    size = len(findings.prepared.case)
    return [
        finding
        for finding in findings.findings
        if finding.explainer in (None, findings.explainer)
        and finding.values is not None
        and finding.values.shape == (size,)
    ]
