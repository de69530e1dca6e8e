"""The demonstration: train three models on a built-in corpus, and audit two of them on the same texts.

The corpus is generated: the words that decide each label and their synonyms are known.  Two models are vanilla; the
third is a `consensus` student of both.  The audited models are the first vanilla model and the student.

CORPUS and EPOCHS were chosen from eleven configurations by the table that the demonstration prints.  The table is
therefore an illustration, not evidence.  Ten of the eleven tables were recorded.  In all ten, consensus had a smaller
shift under three synonyms and a higher macro-F1.  Its rationale mass was lower in five, its comprehensiveness in six.
"""

import json
from collections.abc import Mapping
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Column, Table

from steadygaze.adapters.as_adapter import from_classifier
from steadygaze.auditing.audit import run_audit
from steadygaze.auditing.prepare_case import AuditRequest
from steadygaze.core.atomic_files import write_text
from steadygaze.core.errors import Console, UserError, one_line
from steadygaze.core.output_paths import check_file
from steadygaze.data.corpora import load_corpus
from steadygaze.data.corpus import Corpus
from steadygaze.data.planted.lexicon import SYNONYMS
from steadygaze.estimator import resumable_training
from steadygaze.estimator.inputs import read_split
from steadygaze.estimator.text_classifier import TextClassifier, load_classifier
from steadygaze.estimator.train_config import consecutive_seeds
from steadygaze.models.inference import check_device
from steadygaze.results.formatting import number
from steadygaze.results.policy import Policy, Requirement, VerdictRequirement
from steadygaze.results.report import Report, now

CORPUS = "planted-reviews:sizes=[2000,300,500]"
MODELS = {"vanilla": ("vanilla", 0), "teacher": ("vanilla", 1), "consensus": ("consensus", 0)}
"""Folder -> technique, and what is added to the seed.  The student comes after its teachers."""
ROLES = {"vanilla": "ordinary training", "teacher": "the same with another seed", "consensus": "a student of both"}
EPOCHS = {"vanilla": 7, "consensus": 3}
"""Technique -> epochs."""
SETTINGS = {"hidden": 64, "dimension": 50, "learning_rate": 3e-3, "small_data": False}
PAGES = {"vanilla": "vanilla.html", "consensus": "report.html"}
"""Audited model -> file of its report."""
SYNONYM_FILE = "synonyms.jsonl"
TEXTS = 150
"""Texts of the test split that are audited."""
PROBE = "3-synonyms"
"""Perturbation of the example with the largest shift."""
MEANINGS = {
    "macro-f1": "F1, averaged over classes",
    "comprehensiveness/relative": "effect of removing the highlighted words, of that of the best known ones",
    "weight-correlation/reworded-top": "agreement of the weights when the highlighted words are reworded",
    "label-flip/reworded": "share of labels that flip when random words are reworded",
    "weight-correlation/fgm-label": "agreement under one gradient step of the word vectors (FGM)",
    "rationale-mass": "share of the weight on the words that decide the label",
}
POLICY = Policy(
    (Requirement("accuracy", ">=", 0.8),),
    (
        VerdictRequirement("stability", ("yes",)),
        VerdictRequirement("faithfulness", ("yes",)),
        VerdictRequirement("plausibility", ("yes",)),
    ),
)
"""Requirements that both audits are checked against; verdicts are those of the first explainer."""
EXPLAINERS = ["input-x-gradient", "attention"]


def check(out: Path, corpus: Corpus, seed: int, replace: bool) -> None:
    """Refuse to overwrite files that a demonstration with this seed did not write."""
    for page in PAGES.values():
        check_file(out / page, replace=replace)
    file = out / SYNONYM_FILE
    own = file.is_file() and not file.is_symlink() and file.read_bytes() == _synonym_table().encode()
    check_file(file, replace=replace or own)
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
    check_device(device)
    consecutive_seeds(seed, 1 + max(offset for _, offset in MODELS.values()))
    corpus = load_corpus(CORPUS)
    check(out, corpus, seed, replace)
    _print(console, f"[bold]1. Data.[/bold]  {escape(resumable_training.describe(corpus))}")
    _print(console, "[bold]2. Training[/bold] of three bidirectional LSTMs with attention.")
    models = train(corpus, out, device, seed, console, replace)
    _print(console, f"[bold]3. Audit[/bold] of vanilla and consensus on {TEXTS} held-out texts.")
    command = ("steadygaze", "demo", "--out", out.name if out.is_absolute() else str(out), "--seed", str(seed))
    reports = {name: replace_fields(audit_model(models[name], corpus, name), command=command) for name in PAGES}
    _print_results(reports, console)
    pages = {name: out / page for name, page in PAGES.items()}
    for name, page in pages.items():
        reports[name].to_html(page, replace=replace)
    _print_next(pages, console)
    rows = {name: [row.to_dict() for row in report.rows] for name, report in reports.items()}
    passed = {name: report.gate is not None and not report.gate.failures for name, report in reports.items()}
    return {"model": str(out / "consensus"), "report": str(pages["consensus"]), "passed": passed, "rows": rows}


def _print_results(reports: Mapping[str, Report], console: Console) -> None:
    """Print the largest shift of each model, the verdicts, the measures and the requirements."""
    for name, report in reports.items():
        _print(console, f"\nThe text whose explanation shifts most under three synonyms, [bold]{name}[/bold]:")
        for shift in [shift for shift in report.shifts if shift.probe == PROBE][:1]:
            console.print(shift.before, "", shift.after, sep="\n")
    for table in (_verdicts(reports), _measures(reports)):
        _print(console, "")
        console.print(table)
    gates = {name: report.gate for name, report in reports.items() if report.gate is not None}
    _print(console, f"\n[bold]4. Requirements[/bold] ({'; '.join(gates['consensus'].requirements)}):")
    for name, gate in gates.items():
        _print(console, f"   {name}: {gate.summary}")


def _print_next(pages: Mapping[str, Path], console: Console) -> None:
    links = {name: escape(one_line(page)) for name, page in pages.items()}
    _print(
        console,
        f"\n[bold]5. Reports.[/bold] Open [bold]{links['consensus']}[/bold] (consensus) and {links['vanilla']} in a "
        "browser.",
    )
    _print(console, "Train on your own files and synonym table, then audit:")
    for command in (
        "train train.csv --technique word-at --synonym-groups synonyms.jsonl --out model/",
        "audit model/ --data test.csv --synonyms synonyms.jsonl --html audit.html",
    ):
        console.print(f"  steadygaze {command}", soft_wrap=True)  # it can be copied


def train(
    corpus: Corpus, out: Path, device: str, seed: int, console: Console, replace: bool = False
) -> dict[str, TextClassifier]:
    """Train two vanilla models and their student under `out`; resume an interrupted run.

    `replace` trains all of them again.
    """
    write_text(out / SYNONYM_FILE, _synonym_table())
    models: dict[str, TextClassifier] = {}
    for name in MODELS:
        _print(console, f"   [bold]{name}[/bold]: {ROLES[name]}")
        clf = _classifier(name, out, device, seed, not console.quiet)
        teachers = list(models.values()) if clf.technique == "consensus" else []
        models[name] = resumable_training.train(
            clf, corpus, out / name, not replace, reference=teachers, replace=replace
        )
    return models


def _classifier(name: str, out: Path, device: str, seed: int, verbose: bool) -> TextClassifier:
    technique, offset = MODELS[name]
    of_student = {"synonyms": str(out / SYNONYM_FILE), "teachers": 2} if technique == "consensus" else {}
    return TextClassifier(
        "bilstm",
        technique,
        epochs=EPOCHS[technique],
        seed=seed + offset,
        device=device,
        settings={**SETTINGS, **of_student},
        verbose=verbose,
    )


def _synonym_table() -> str:
    lines = (json.dumps({"word": word, "synonyms": list(others)}) for word, others in SYNONYMS.items())
    return "\n".join(lines) + "\n"


def audit_model(clf: TextClassifier, corpus: Corpus, name: str) -> Report:
    facts = {"corpus": corpus.name, "split": "test", "data": corpus.fingerprint[:12]}
    texts = corpus.splits["test"][:TEXTS]
    adapter = from_classifier(clf, name)
    request = AuditRequest(adapter, texts, explainers=EXPLAINERS, synonyms=SYNONYMS, facts=facts)
    report = run_audit(request).report()
    return replace_fields(report, date=now()).with_gate(POLICY)


def _verdicts(reports: Mapping[str, Report]) -> Table:
    """The answers about each explainer of each model."""
    columns = {
        f"{name}:\n{explainer}": answers
        for name, report in reports.items()
        for explainer, answers in report.verdicts_by.items()
    }
    table = Table("verdict", *columns, box=None, pad_edge=False, header_style="bold")
    for verdicts in zip(*columns.values(), strict=True):
        table.add_row(verdicts[0].title, *(verdict.answer for verdict in verdicts))
    return table


def _measures(reports: Mapping[str, Report]) -> Table:
    numbers = [Column(name, no_wrap=True) for name in ("measure", *reports)]
    table = Table(*numbers, "meaning", box=None, pad_edge=False, header_style="bold")
    for measure, meaning in MEANINGS.items():
        rows = [report.find(measure) for report in reports.values()]
        table.add_row(measure, *("" if row is None else number(row.value) for row in rows), meaning)
    return table


def _print(console: Console, line: str) -> None:
    console.print(line, markup=True)
