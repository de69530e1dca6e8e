"""The whole story on a built-in corpus: train, show the reasons, hold them against the planted truth, write a page."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.metrics import f1_score

from steadygaze import __version__, verbs
from steadygaze.corpus import Corpus, load_corpus
from steadygaze.estimator import TextClassifier
from steadygaze.explanation import Explanation
from steadygaze.record import Row
from steadygaze.report import bootstrap_rows, mean_row, render, write
from steadygaze.tokens.align import mark
from steadygaze.types import Example

CORPUS = "planted-reviews"
EPOCHS = 4
IN_TERMINAL, ON_PAGE, WRONG_ON_PAGE = 3, 9, 3

MEANING = {
    "accuracy": "How often the predicted label is right, on texts never seen in training.",
    "macro-f1": "The same, every class counting alike.",
    "evidence mass": "Share of the attention that lies on the words which decide the label.  1 would be perfect.",
    "evidence share": "Share of all words that decide the label: what attention spread evenly would reach.",
}
LEAD = (
    "Made-up beer reviews that speak of appearance, aroma and palate, each with its own verdict.  The label is the "
    "verdict on the aroma alone, so the words that decide it are known, and the reasons can be held against them."
)
NOTE = (
    "Whether these highlights may be believed is another question: they can move under a synonym, a seed or a little "
    "noise.  This page shows one model and measures agreement with the truth, not stability."
)


def tell(out: Path, device: str, seed: int, say: Console) -> dict[str, Any]:
    """Everything, ending in out/model and out/report.html.  Returns the numbers."""
    corpus = load_corpus(CORPUS)
    say.print(f"[bold]1. Data.[/bold]  {verbs.describe(corpus)}", highlight=False)
    say.print("[bold]2. Training[/bold] a bidirectional LSTM with attention.", highlight=False)
    clf = TextClassifier("bilstm", "vanilla", epochs=EPOCHS, seed=seed, device=device, verbose=not say.quiet)
    model = out / "model"
    clf = verbs.train(clf, corpus, model, resume=verbs.unfinished(model).exists())

    test = corpus.splits["test"]
    explained = [replace(e, evidence=x.evidence) for e, x in zip(clf.explain(verbs.texts(test)), test, strict=True)]
    rows = measure(explained, test, signature(clf, corpus, model))
    say.print(
        "[bold]3. Highlights.[/bold]  The darker a word, the more of the attention lies on it.\n", highlight=False
    )
    for one in explained[:IN_TERMINAL]:
        say.print(one, end="\n\n")
    say.print("[bold]4. Numbers[/bold] on the test texts, with 95 % intervals.", highlight=False)
    say.print(_table(rows))

    page = out / "report.html"
    shown = _shown(explained, test)
    write(page, _page(clf, corpus, rows, [explained[i] for i in shown], [test[i] for i in shown]))
    say.print(
        f"\n[bold]5. The page:[/bold] open [bold]{page}[/bold] in a browser; the model is in {model}", highlight=False
    )
    say.print("Your own CSV:  steadygaze train your.csv --text COL --label COL --out model/", highlight=False)
    return {"model": str(model), "report": str(page), "rows": [row.to_dict() for row in rows]}


def signature(clf: TextClassifier, corpus: Corpus, model: Path) -> dict[str, str | int | float]:
    """What the numbers depend on."""
    known = clf.stored_.description
    weights = hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
    return {
        "corpus": corpus.name,
        "data": corpus.fingerprint[:12],
        "split": "test",
        "encoder": known.encoder,
        "technique": known.technique,
        "seed": known.seed,
        "model": weights[:12],
        "v": __version__,
    }


def measure(
    explained: Sequence[Explanation], test: Sequence[Example], settings: dict[str, str | int | float]
) -> list[Row]:
    """Is the label right, and do the highlights lie where the truth was planted?"""
    right = [float(e.label == x.label) for e, x in zip(explained, test, strict=True)]
    marked = [mark(e.spans, e.evidence or ()) for e in explained]
    mass = [float(np.asarray(e.weights)[where].sum()) for e, where in zip(explained, marked, strict=True)]
    codes = {label: i for i, label in enumerate(explained[0].probabilities)}
    gold = np.array([codes[x.label] for x in test if x.label is not None])
    predicted = np.array([codes[e.label] for e in explained])

    def macro(rows: NDArray[np.int64]) -> float:
        return float(f1_score(gold[rows], predicted[rows], average="macro"))

    everything = np.arange(len(test))
    return [
        mean_row("accuracy", right, settings),
        Row("macro-f1", macro(everything), len(test), bootstrap_rows(macro, len(test)), settings),
        mean_row("evidence mass", mass, {**settings, "explain": "attention"}),
        mean_row("evidence share", [float(where.mean()) for where in marked], settings),
    ]


def _shown(explained: Sequence[Explanation], test: Sequence[Example]) -> list[int]:
    """The first texts, and after them the first that were labelled wrongly: a page must show failures too."""
    wrong = [i for i, (e, x) in enumerate(zip(explained, test, strict=True)) if e.label != x.label and i >= ON_PAGE]
    return [*range(min(ON_PAGE, len(test))), *wrong[:WRONG_ON_PAGE]]


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("measure", "value", "interval", "what it means"):
        table.add_column(name)
    for row in rows:
        interval = "" if row.interval is None else f"{row.interval[0]:.3f} to {row.interval[1]:.3f}"
        table.add_row(row.measure, f"{row.value:.3f}", interval, MEANING[row.measure])
    return table


def _page(
    clf: TextClassifier, corpus: Corpus, rows: Sequence[Row], shown: Sequence[Explanation], test: Sequence[Example]
) -> str:
    curve = [
        {"epoch": r["epoch"], "training loss": r["terms"]["task"], "validation macro-F1": r["macro-f1"]}
        for r in clf.history_
    ]
    facts = {
        "data": verbs.describe(corpus),
        "encoder": clf.encoder,
        "technique": str(clf.technique),
        "seed": str(clf.seed),
        "data fingerprint": corpus.fingerprint,
        "steadygaze": __version__,
    }
    return render(
        "A classifier and its reasons",
        lead=LEAD,
        rows=rows,
        meaning=MEANING,
        curve=curve,
        chosen=clf.stored_.description.kept["epoch"],
        explanations=shown,
        truth=[example.label for example in test],
        notes=[NOTE],
        facts=facts,
    )
