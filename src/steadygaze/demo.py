"""The whole story on a built-in corpus: two models, the same questions put to both, and a page for each.

The corpus is generated, so that the words which decide each label are known, and so are the words that may replace
them.  One model is trained plainly, the other (`anchored`) starts from it and is taught to keep its attention where it
is when words are exchanged and vectors moved.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from steadygaze import verbs
from steadygaze.atomic import write_text
from steadygaze.audit.audit import Asked, examine
from steadygaze.corpus import Corpus, load_corpus
from steadygaze.corpus.planted.lexicon import SYNONYMS
from steadygaze.errors import UserError
from steadygaze.escape import one_line
from steadygaze.estimator import TextClassifier, load
from steadygaze.inputs import read_split
from steadygaze.outputs import check_file
from steadygaze.report.report import Report
from steadygaze.report.words import number
from steadygaze.subject.ours import ours
from steadygaze.terminal import Console

CORPUS = "planted-reviews:sizes=[5000,500,1000]"
EPOCHS = {"vanilla": 6, "anchored": 2}
PAGES = {"vanilla": "vanilla.html", "anchored": "report.html"}
TABLE = "synonyms.jsonl"
TEXTS = 300
"""Of the test split, which the audit reads."""
WORST = "3-synonyms"
NUMBERS = {
    "macro-f1": "how often the label is right, every class counting alike",
    "evidence-mass": "share of the attention on the words that decide the label",
    "jensen-shannon/3-synonyms": "how far the attention moves when three words are exchanged, in nats",
    "jensen-shannon/worst-label": "… when the vectors are moved as is worst for the label",
    "flipped/3-synonyms": "how often three synonyms turn the label",
    "comprehensiveness/above-random": "what the label loses without the highlighted words, above random ones",
}


def check(out: Path, corpus: Corpus, seed: int, replace: bool) -> None:
    """Refuse, before anything is written, to overwrite what no demonstration of this seed wrote."""
    for page in PAGES.values():
        check_file(out / page, replace=replace)
    table = out / TABLE
    mine = table.is_file() and not table.is_symlink() and table.read_bytes() == _table().encode()
    check_file(table, replace=replace or mine)
    trained_on = read_split(*verbs.columns(corpus.splits["train"])).fingerprint()
    for name in EPOCHS:
        verbs.check_place(out / name)
        if replace or not (out / name / "config.json").exists():
            continue
        found = load(out / name, "cpu").stored_.description
        if (found.technique, found.seed) != (name, seed) or not found.corpus.startswith(trained_on):
            raise UserError(f"{out / name} holds a model of another training: --replace trains a new one in its place")


def tell(out: Path, device: str, seed: int, say: Console, replace: bool = False) -> dict[str, Any]:
    """Everything, ending in out/report.html.  Returns the numbers."""
    corpus = load_corpus(CORPUS)
    check(out, corpus, seed, replace)
    _say(say, f"[bold]1. Data.[/bold]  {escape(verbs.describe(corpus))}")
    models = train(corpus, out, device, seed, say, replace)
    _say(say, f"[bold]3. The audit[/bold] of both, on {TEXTS} texts that neither has seen.")
    reports = {name: look(clf, corpus, name, seed) for name, clf in models.items()}
    for name, report in reports.items():
        _say(say, f"\nWhere three synonyms moved [bold]{name}[/bold] most:")
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
    _say(
        say,
        f"\n[bold]4. The page:[/bold] open [bold]{drawn['anchored']}[/bold] in a browser, {drawn['vanilla']} beside it",
    )
    _say(say, "Your own CSV:  steadygaze train your.csv --text COL --label COL --technique consensus --out model/")
    _say(say, "               steadygaze audit model/ --data your.csv --text COL --label COL --html audit.html")
    rows = {name: [row.to_dict() for row in report.rows] for name, report in reports.items()}
    return {"model": str(out / "anchored"), "report": str(pages["anchored"]), "rows": rows}


def train(
    corpus: Corpus, out: Path, device: str, seed: int, say: Console, replace: bool = False
) -> dict[str, TextClassifier]:
    """A plain model, and one that starts from it; both under `out`, taken up where they were left.

    A model of another training is refused, unless `replace` trains both anew.
    """
    write_text(out / TABLE, _table())
    models: dict[str, TextClassifier] = {}
    for name in EPOCHS:
        _say(say, f"[bold]2. Training[/bold] a bidirectional LSTM with attention: [bold]{name}[/bold].")
        clf = _classifier(name, out, device, seed, not say.quiet)
        ready = list(models.values())
        models[name] = verbs.train(clf, corpus, out / name, not replace, reference=ready, replace=replace)
    return models


def _classifier(name: str, out: Path, device: str, seed: int, verbose: bool) -> TextClassifier:
    settings = {"synonyms": str(out / TABLE)} if name == "anchored" else None
    return TextClassifier(
        "bilstm", name, epochs=EPOCHS[name], seed=seed, device=device, settings=settings, verbose=verbose
    )


def _table() -> str:
    lines = (json.dumps({"word": word, "synonyms": list(others)}) for word, others in SYNONYMS.items())
    return "\n".join(lines) + "\n"


def look(clf: TextClassifier, corpus: Corpus, name: str, seed: int) -> Report:
    known = {"corpus": corpus.name, "split": "test", "data": corpus.fingerprint[:12]}
    asked = Asked(settings=known, synonyms=SYNONYMS)
    return examine(ours(clf, name), corpus.splits["test"][:TEXTS], asked).report()


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
