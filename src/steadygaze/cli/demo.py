"""A demonstration on a built-in corpus: a vanilla model and the recommended one, audited on the same texts.

The corpus is generated: the words that decide each label and their synonyms are known.  The recommended model is a
`consensus` student of two vanilla teachers, the first of which is the vanilla model itself.
"""

import json
from collections.abc import Mapping
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from steadygaze.adapters.as_adapter import from_classifier
from steadygaze.audit.audit import run_protocols
from steadygaze.audit.audit_report import AuditRequest
from steadygaze.core.atomic_files import write_text
from steadygaze.core.console import Console
from steadygaze.core.errors import UserError, one_line
from steadygaze.core.output_paths import check_file
from steadygaze.data.corpora import load_corpus
from steadygaze.data.corpus import Corpus
from steadygaze.data.planted.lexicon import SYNONYMS
from steadygaze.estimator import resumable_training
from steadygaze.estimator.inputs import read_split
from steadygaze.estimator.loading import load_classifier
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.results.formatting import number
from steadygaze.results.policy import Policy, Requirement, VerdictRequirement
from steadygaze.results.report import Report, now

CORPUS = "planted-reviews:sizes=[3000,300,500]"
MODELS = {"vanilla": ("vanilla", 0), "teacher": ("vanilla", 1), "consensus": ("consensus", 0)}
"""Folder -> technique, and what is added to the seed."""
EPOCHS = {"vanilla": 5, "consensus": 2}
SETTINGS = {"hidden": 64, "dimension": 50, "learning_rate": 3e-3}
PAGES = {"vanilla": "vanilla.html", "consensus": "report.html"}
TABLE = "synonyms.jsonl"
TEXTS = 200
"""Texts of the test split that are audited."""
WORST = "3-synonyms"
NUMBERS = {
    "macro-f1": "F1, averaged over classes",
    "rationale-mass": "share of attention on the words that decide the label",
    "jensen-shannon/3-synonyms": "shift of attention under three synonyms, in nats",
    "jensen-shannon/fgm-label": "shift under a small step of the word vectors against the label",
    "kendall/3-synonyms": "rank correlation of attention under three synonyms",
    "label-flip/3-synonyms": "share of labels that three synonyms flip",
    "comprehensiveness/above-random": "probability lost without the top-weighted words, minus random words",
}
POLICY = Policy(
    (Requirement("accuracy", ">=", 0.8),),
    (
        VerdictRequirement("stability", ("yes", "partly")),
        VerdictRequirement("faithfulness", ("yes",)),
        VerdictRequirement("plausibility", ("yes",)),
    ),
)
"""What the recommended model must pass."""


def check(out: Path, corpus: Corpus, seed: int, replace: bool) -> None:
    """Refuse, before anything is written, to overwrite what no demonstration of this seed wrote."""
    for page in PAGES.values():
        check_file(out / page, replace=replace)
    table = out / TABLE
    mine = table.is_file() and not table.is_symlink() and table.read_bytes() == _table().encode()
    check_file(table, replace=replace or mine)
    trained_on = read_split(*resumable_training.columns(corpus.splits["train"])).fingerprint()
    for name, (technique, more) in MODELS.items():
        resumable_training.check_place(out / name)
        if replace or not (out / name / "config.json").exists():
            continue
        found = load_classifier(out / name, "cpu").stored_.description
        if (found.technique, found.seed) != (technique, seed + more) or not found.corpus.startswith(trained_on):
            raise UserError(f"{out / name} holds a model of another training: --replace trains a new one in its place")


def run_demo(out: Path, device: str, seed: int, say: Console, replace: bool = False) -> dict[str, Any]:
    """Everything, ending in out/report.html.  Returns the numbers."""
    corpus = load_corpus(CORPUS)
    check(out, corpus, seed, replace)
    _say(say, f"[bold]1. Data.[/bold]  {escape(resumable_training.describe(corpus))}")
    models = train(corpus, out, device, seed, say, replace)
    _say(say, f"[bold]3. Audit[/bold] of vanilla and consensus on {TEXTS} held-out texts.")
    reports = {name: look(models[name], corpus, name, seed) for name in PAGES}
    for name, report in reports.items():
        _say(say, f"\nThe text whose attention shifts most under three synonyms, [bold]{name}[/bold]:")
        for shift in [one for one in report.shifts if one.probe == WORST][:1]:
            say.print(shift.before, "", shift.after, sep="\n")
    _say(say, "")
    say.print(_verdicts(reports))
    _say(say, "")
    say.print(_numbers(reports))
    pages = {name: out / page for name, page in PAGES.items()}
    for name, page in pages.items():
        reports[name].to_html(page, replace=replace)
    drawn = {name: escape(one_line(page)) for name, page in pages.items()}
    _say(say, f"\n[bold]4. Gate[/bold] ({'; '.join(_required(reports['consensus']))}):")
    for name, report in reports.items():
        _say(say, f"   {name}: {report.gate.summary if report.gate else ''}")
    _say(say, f"\n[bold]5. Pages.[/bold] Open [bold]{drawn['consensus']}[/bold] and {drawn['vanilla']} in a browser.")
    _say(say, "Train on your own CSV, with a table of synonyms, then audit:")
    _say(say, "  steadygaze train your.csv --technique consensus --set synonyms=synonyms.jsonl --out model/")
    _say(say, "  steadygaze audit model/ --data test.csv --synonyms synonyms.jsonl --html audit.html")
    rows = {name: [row.to_dict() for row in report.rows] for name, report in reports.items()}
    gates = {name: report.gate is not None and not report.gate.failures for name, report in reports.items()}
    return {"model": str(out / "consensus"), "report": str(pages["consensus"]), "passed": gates, "rows": rows}


def _required(report: Report) -> tuple[str, ...]:
    return () if report.gate is None else report.gate.requirements


def train(
    corpus: Corpus, out: Path, device: str, seed: int, say: Console, replace: bool = False
) -> dict[str, TextClassifier]:
    """Two vanilla models and their student, under `out`; an interrupted run is resumed.

    A model of another training is refused, unless `replace` trains all of them again.
    """
    write_text(out / TABLE, _table())
    models: dict[str, TextClassifier] = {}
    for name in MODELS:
        _say(say, f"[bold]2. Training[/bold] a bidirectional LSTM with attention: [bold]{name}[/bold].")
        clf = _classifier(name, out, device, seed, not say.quiet)
        ready = list(models.values()) if clf.technique == "consensus" else []
        models[name] = resumable_training.train(clf, corpus, out / name, not replace, reference=ready, replace=replace)
    return models


def _classifier(name: str, out: Path, device: str, seed: int, verbose: bool) -> TextClassifier:
    technique, more = MODELS[name]
    settings = {**SETTINGS, **({"synonyms": str(out / TABLE), "teachers": 2} if technique == "consensus" else {})}
    return TextClassifier(
        "bilstm",
        technique,
        epochs=EPOCHS[technique],
        seed=seed + more,
        device=device,
        settings=settings,
        verbose=verbose,
    )


def _table() -> str:
    lines = (json.dumps({"word": word, "synonyms": list(others)}) for word, others in SYNONYMS.items())
    return "\n".join(lines) + "\n"


def look(clf: TextClassifier, corpus: Corpus, name: str, seed: int) -> Report:
    known = {"corpus": corpus.name, "split": "test", "data": corpus.fingerprint[:12]}
    asked = AuditRequest(settings=known, synonyms=SYNONYMS)
    report = run_protocols(from_classifier(clf, name), corpus.splits["test"][:TEXTS], asked).report()
    return replace_fields(report, date=now()).with_gate(POLICY)


def _verdicts(reports: Mapping[str, Report]) -> Table:
    table = Table(*("question", *reports), box=None, pad_edge=False, header_style="bold")
    answers = [{verdict.question: verdict.answer for verdict in report.verdicts} for report in reports.values()]
    for question in answers[0]:
        table.add_row(question, *(found[question] for found in answers))
    return table


def _numbers(reports: Mapping[str, Report]) -> Table:
    table = Table(*("measure", *reports, "what it means"), box=None, pad_edge=False, header_style="bold")
    for measure, meaning in NUMBERS.items():
        rows = [report.find(measure) for report in reports.values()]
        table.add_row(measure, *("" if row is None else number(row.value) for row in rows), meaning)
    return table


def _say(say: Console, line: str) -> None:
    say.print(line, markup=True)
