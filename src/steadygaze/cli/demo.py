"""A demonstration on a built-in corpus: a vanilla model and the recommended one, audited on the same texts.

The corpus is generated: the words that decide each label and their synonyms are known.  The recommended model is a
`consensus` student of two vanilla teachers, the first of which is the vanilla model itself.

CORPUS and EPOCHS were chosen from eleven configurations by the table that the demonstration prints, so that table is an
illustration and no evidence.  In ten with a recorded table, consensus had a smaller shift under three synonyms and a
higher macro-F1 in all ten, but a lower rationale mass in five and a lower comprehensiveness in six.
"""

import json
from collections.abc import Mapping
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from steadygaze.adapters.as_adapter import from_classifier
from steadygaze.audit.audit import run_audit
from steadygaze.audit.prepare_case import AuditRequest
from steadygaze.core.atomic_files import write_text
from steadygaze.core.errors import Console, UserError, one_line
from steadygaze.core.output_paths import check_file
from steadygaze.data.corpora import load_corpus
from steadygaze.data.corpus import Corpus
from steadygaze.data.planted.lexicon import SYNONYMS
from steadygaze.estimator import resumable_training
from steadygaze.estimator.inputs import read_split
from steadygaze.estimator.text_classifier import TextClassifier, load_classifier
from steadygaze.results.formatting import number
from steadygaze.results.policy import Policy, Requirement, VerdictRequirement
from steadygaze.results.report import Report, now

CORPUS = "planted-reviews:sizes=[2000,300,500]"
MODELS = {"vanilla": ("vanilla", 0), "teacher": ("vanilla", 1), "consensus": ("consensus", 0)}
"""Folder -> technique and offset of the seed."""
EPOCHS = {"vanilla": 7, "consensus": 3}
SETTINGS = {"hidden": 64, "dimension": 50, "learning_rate": 3e-3, "small_data": False}
PAGES = {"vanilla": "vanilla.html", "consensus": "report.html"}
TABLE = "synonyms.jsonl"
TEXTS = 150
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
        VerdictRequirement("stability", ("yes", "undecided")),
        VerdictRequirement("faithfulness", ("yes",)),
        VerdictRequirement("plausibility", ("yes",)),
    ),
)
"""Requirements for the recommended model."""


def check(out: Path, corpus: Corpus, seed: int, replace: bool) -> None:
    """Refuse to overwrite files that a demonstration with this seed did not write."""
    for page in PAGES.values():
        check_file(out / page, replace=replace)
    table = out / TABLE
    own = table.is_file() and not table.is_symlink() and table.read_bytes() == _table().encode()
    check_file(table, replace=replace or own)
    trained_on = read_split(*resumable_training.columns(corpus.splits["train"])).fingerprint()
    for name, (technique, offset) in MODELS.items():
        resumable_training.check_place(out / name)
        if replace or not (out / name / "config.json").exists():
            continue
        saved = load_classifier(out / name, "cpu").stored_.description
        if (saved.technique, saved.seed) != (technique, seed + offset) or not saved.corpus.startswith(trained_on):
            raise UserError(f"{out / name} contains a model of another training: --replace trains a new one")


def run_demo(out: Path, device: str, seed: int, console: Console, replace: bool = False) -> dict[str, Any]:
    """Train, audit and write the reports under `out`; return the scores."""
    corpus = load_corpus(CORPUS)
    check(out, corpus, seed, replace)
    _print(console, f"[bold]1. Data.[/bold]  {escape(resumable_training.describe(corpus))}")
    models = train(corpus, out, device, seed, console, replace)
    _print(console, f"[bold]3. Audit[/bold] of vanilla and consensus on {TEXTS} held-out texts.")
    reports = {name: audit_model(models[name], corpus, name) for name in PAGES}
    for name, report in reports.items():
        _print(console, f"\nThe text whose attention shifts most under three synonyms, [bold]{name}[/bold]:")
        for shift in [shift for shift in report.shifts if shift.probe == WORST][:1]:
            console.print(shift.before, "", shift.after, sep="\n")
    _print(console, "")
    console.print(_verdicts(reports))
    _print(console, "")
    console.print(_numbers(reports))
    pages = {name: out / page for name, page in PAGES.items()}
    for name, page in pages.items():
        reports[name].to_html(page, replace=replace)
    links = {name: escape(one_line(page)) for name, page in pages.items()}
    _print(console, f"\n[bold]4. Gate[/bold] ({'; '.join(_required(reports['consensus']))}):")
    for name, report in reports.items():
        _print(console, f"   {name}: {report.gate.summary if report.gate else ''}")
    _print(
        console, f"\n[bold]5. Pages.[/bold] Open [bold]{links['consensus']}[/bold] and {links['vanilla']} in a browser."
    )
    _print(console, "Train on your own CSV, with a table of synonyms, then audit:")
    _print(console, "  steadygaze train your.csv --technique word-at --synonym-groups synonyms.jsonl --out model/")
    _print(console, "  steadygaze audit model/ --data test.csv --synonyms synonyms.jsonl --html audit.html")
    rows = {name: [row.to_dict() for row in report.rows] for name, report in reports.items()}
    gates = {name: report.gate is not None and not report.gate.failures for name, report in reports.items()}
    return {"model": str(out / "consensus"), "report": str(pages["consensus"]), "passed": gates, "rows": rows}


def _required(report: Report) -> tuple[str, ...]:
    return () if report.gate is None else report.gate.requirements


def train(
    corpus: Corpus, out: Path, device: str, seed: int, console: Console, replace: bool = False
) -> dict[str, TextClassifier]:
    """Train two vanilla models and their student under `out`; resume an interrupted run.

    `replace` trains all of them again.
    """
    write_text(out / TABLE, _table())
    models: dict[str, TextClassifier] = {}
    for name in MODELS:
        _print(console, f"[bold]2. Training[/bold] a bidirectional LSTM with attention: [bold]{name}[/bold].")
        clf = _classifier(name, out, device, seed, not console.quiet)
        ready = list(models.values()) if clf.technique == "consensus" else []
        models[name] = resumable_training.train(clf, corpus, out / name, not replace, reference=ready, replace=replace)
    return models


def _classifier(name: str, out: Path, device: str, seed: int, verbose: bool) -> TextClassifier:
    technique, offset = MODELS[name]
    settings = {**SETTINGS, **({"synonyms": str(out / TABLE), "teachers": 2} if technique == "consensus" else {})}
    return TextClassifier(
        "bilstm",
        technique,
        epochs=EPOCHS[technique],
        seed=seed + offset,
        device=device,
        settings=settings,
        verbose=verbose,
    )


def _table() -> str:
    lines = (json.dumps({"word": word, "synonyms": list(others)}) for word, others in SYNONYMS.items())
    return "\n".join(lines) + "\n"


def audit_model(clf: TextClassifier, corpus: Corpus, name: str) -> Report:
    facts = {"corpus": corpus.name, "split": "test", "data": corpus.fingerprint[:12]}
    texts = corpus.splits["test"][:TEXTS]
    report = run_audit(AuditRequest(from_classifier(clf, name), texts, synonyms=SYNONYMS, facts=facts)).report()
    return replace_fields(report, date=now()).with_gate(POLICY)


def _verdicts(reports: Mapping[str, Report]) -> Table:
    table = Table(*("verdict", *reports), box=None, pad_edge=False, header_style="bold")
    answers = [{verdict.title: verdict.answer for verdict in report.verdicts} for report in reports.values()]
    for title in answers[0]:
        table.add_row(title, *(answer[title] for answer in answers))
    return table


def _numbers(reports: Mapping[str, Report]) -> Table:
    table = Table(*("measure", *reports, "what it means"), box=None, pad_edge=False, header_style="bold")
    for measure, meaning in NUMBERS.items():
        rows = [report.find(measure) for report in reports.values()]
        table.add_row(measure, *("" if row is None else number(row.value) for row in rows), meaning)
    return table


def _print(console: Console, line: str) -> None:
    console.print(line, markup=True)
