"""Macro-F1 on 200, 500 and 1,000 training texts: the default classifier beside TF-IDF and logistic regression.

    python bench/small_data.py --out DIR                       the first tables of docs/results/small-data.md
    python bench/small_data.py --out DIR --split held-out      without the test split, for choosing settings
    python bench/small_data.py --table bench/records/small_data.jsonl    the tables of finished fits; or DIR/records

Rows:

    tfidf-lr            scikit-learn's TfidfVectorizer() and LogisticRegression(), fitted to all texts
    tfidf-lr-balanced   the same with class_weight="balanced"
    tfidf-lr-10         with C=10, as in the label vectors; tfidf-lr-10-balanced: both
    default             TextClassifier() without the extra `glove`
    standard            TextClassifier(settings={"small_data": False}): the defaults of large datasets
    glove               TextClassifier() with the extra `glove`: GloVe vectors of 50 dimensions
    minilm              TextClassifier("transformer:minilm")
    hidden-128          `default` with 128 units and batches of 32; hidden-64: 64 units and batches of 8

A seed draws the training texts and seeds the model.  All rows of a cell have the same texts.  The intervals are 95 %
intervals of the mean over the seeds (Student's t); those of differences are paired.  `held-out` is the official
validation split, or 1,000 training texts where there is none.  Normalized entropy is that of the attention on 200
texts, where 1 is uniform.
"""

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import job_cells
from studies.data_folder import data_folder
from tables import markdown, mean_and_interval, minus_signs, read_records

CORPORA = {"sst2": "SST-2", "rotten_tomatoes": "Rotten Tomatoes", "yelp_polarity": "Yelp polarity"}
OTHER_CORPORA = {"tweet_emotion": "TweetEval emotion", "ag_news": "AG News", "newsgroups_sport": "newsgroups"}
"""Corpora of the second table, with two to four classes."""
SIZES = (200, 500, 1000)
BASELINES: dict[str, dict[str, Any]] = {
    "tfidf-lr": {},
    "tfidf-lr-balanced": {"class_weight": "balanced"},
    "tfidf-lr-10": {"C": 10},
    "tfidf-lr-10-balanced": {"C": 10, "class_weight": "balanced"},
}
OURS: dict[str, dict[str, Any]] = {
    "default": {"settings": {"small_data": True}},
    "standard": {"settings": {"small_data": False}},
    "glove": {"vectors": "glove-50d"},
    "minilm": {"encoder": "transformer:minilm"},
    "hidden-128": {"settings": {"small_data": True, "hidden": 128, "batch_size": 32}},
    "hidden-64": {"settings": {"small_data": True, "hidden": 64, "batch_size": 8}},
}
NAMES = {
    "tfidf-lr": "TF-IDF",
    "tfidf-lr-balanced": "TF-IDF, balanced",
    "tfidf-lr-10": "C = 10",
    "tfidf-lr-10-balanced": "C = 10, balanced",
    "standard": "usual defaults",
    "default": "default, no extra",
    "glove": "default, extra `glove`",
    "minilm": "MiniLM",
    "hidden-128": "128 and 32",
    "hidden-64": "64 and 8",
}
"""Columns of the page."""
DEFAULT_ROWS = ("tfidf-lr", "tfidf-lr-balanced", "tfidf-lr-10", "tfidf-lr-10-balanced", "standard", "default", "glove")
"""Rows that are fitted without --rows: those of the tables of test scores."""
DIFFERENCES = {"tfidf-lr": "TF-IDF", "tfidf-lr-10-balanced": "C = 10, balanced"}
HELD_OUT = 1000
EXPLAINED = 200


@dataclass(frozen=True)
class Fit:
    row: str
    corpus: str
    size: int
    seed: int
    split: str

    @property
    def id(self) -> str:
        return f"{self.row}.{self.corpus}.{self.size}.{self.split}.s{self.seed}"


def read(corpus: str, split: str) -> tuple[list[str], list[int]]:
    file = data_folder(corpus) / corpus / f"{split}.parquet"
    table = pq.read_table(file, columns=["text", "label"]).to_pydict()
    kept = [(text, label) for text, label in zip(table["text"], table["label"], strict=True) if text.strip()]
    return [text for text, _ in kept], [int(label) for _, label in kept]


def cell(corpus: str, size: int, seed: int, split: str) -> tuple[list[str], list[int], list[str], list[int]]:
    """Training texts and labels, test texts and labels."""
    texts, labels = read(corpus, "train")
    order = np.random.default_rng(1234).permutation(len(texts))
    folder = data_folder(corpus) / corpus
    if split == "test":
        test = read(corpus, "test")
    elif (folder / "validation.parquet").exists():
        test = read(corpus, "validation")
    else:
        test, order = ([texts[i] for i in order[:HELD_OUT]], [labels[i] for i in order[:HELD_OUT]]), order[HELD_OUT:]
    rows = order[np.random.default_rng((77, seed)).permutation(len(order))[:size]]
    return [texts[i] for i in rows], [labels[i] for i in rows], *test


def measure(fit: Fit, device: str) -> dict[str, Any]:
    """One fit and its scores."""
    import torch
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.pipeline import make_pipeline

    from steadygaze.core import __version__
    from steadygaze.estimator.text_classifier import TextClassifier

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    texts, labels, test_texts, test_labels = cell(fit.corpus, fit.size, fit.seed, fit.split)
    record: dict[str, Any] = {}
    if fit.row in BASELINES:
        model: Any = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000, **BASELINES[fit.row]))
        model.fit(texts, labels)
    else:
        start = time.process_time()
        model = TextClassifier(seed=fit.seed, device=device, verbose=False, **OURS[fit.row]).fit(texts, labels)
        record["cpu_seconds"] = round(time.process_time() - start, 1)
        record["entropy"] = float(np.mean([entropy(e.weights) for e in model.explain(test_texts[:EXPLAINED])]))
        description = model.stored_.description
        record["validation"] = description.best_epoch["macro-f1"]
        record |= {"hidden": description.architecture.hidden, "batch_size": description.training["batch_size"]}
        record |= {"vectors": description.vectors, "steadygaze": __version__, "torch": torch.__version__}
        record["device"] = device
    record["macro-f1"] = float(f1_score(test_labels, model.predict(test_texts), average="macro"))
    return record


def entropy(weights: Sequence[float]) -> float:
    """Normalized entropy of the attention, from 0 to 1; 1 for a single word."""
    values = np.asarray(weights, np.float64)
    positive = values[values > 0]
    return float(-(positive * np.log(positive)).sum() / np.log(len(values))) if len(values) > 1 else 1.0


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: mean macro-F1 of every row and cell, and the paired differences of our models from two regressions."""
    scores: dict[tuple[str, int], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        scores[record["corpus"], record["size"]][record["row"]][record["seed"]] = record["macro-f1"]
    rows = [row for row in NAMES if any(row in values for values in scores.values())]
    pairs = [(row, base) for base in DIFFERENCES for row in ("default", "glove") if row in rows]
    means, differences = [], []
    names = CORPORA | OTHER_CORPORA
    for corpus, size in sorted(scores, key=lambda key: ([*names].index(key[0]), *key)):
        values, cell = scores[corpus, size], [names[corpus], f"{size:,}"]
        means.append(cell + [mean_and_interval([*values[row].values()]) for row in rows])
        differences.append([paired(values, *pair) for pair in pairs])
    tables = [markdown([["corpus", "texts", *(NAMES[row] for row in rows)], *means])]
    if pairs:
        heading = [f"{NAMES[row]} − {DIFFERENCES[base]}" for row, base in pairs]
        lines = [[*line[:2], *cells] for line, cells in zip(means, starred(differences), strict=True)]
        tables.append(minus_signs(markdown([["corpus", "texts", *heading], *lines])))
    return "\n\n".join(tables)


def starred(differences: Sequence[Sequence[Sequence[float]]]) -> list[list[str]]:
    """Means with 95 % t intervals; a star: p < 0.05 after Holm's correction for all differences of the table."""
    from scipy.stats import ttest_1samp

    from steadygaze.study.seed_statistics import holm

    p = iter(holm([float(ttest_1samp(numbers, 0).pvalue) for row in differences for numbers in row]))
    return [[mean_and_interval(numbers, "+") + "*" * (next(p) < 0.05) for numbers in row] for row in differences]


def sizes_table(records: Iterable[dict[str, Any]]) -> str:
    """Markdown: mean macro-F1 and CPU time of both sizes of network and batch."""
    cells: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        cells[record["corpus"], record["size"]][record["row"]].append(record)
    lines = [["corpus", "texts", "seeds", NAMES["hidden-128"], "CPU time", NAMES["hidden-64"], "CPU time"]]
    for corpus, size in sorted(cells, key=lambda key: (key[1], [*CORPORA].index(key[0]))):
        runs = [cells[corpus, size][row] for row in ("hidden-128", "hidden-64")]
        means = [[f"{np.mean([run['macro-f1'] for run in row]):.3f}", _cpu_time(row)] for row in runs]
        lines.append([CORPORA[corpus], f"{size:,}", str(len(runs[0])), *means[0], *means[1]])
    return markdown(lines)


def _cpu_time(runs: Sequence[Mapping[str, Any]]) -> str:
    return f"{np.mean([run['cpu_seconds'] for run in runs]):.0f} s"


def paired(values: Mapping[str, Mapping[int, float]], row: str, base: str) -> list[float]:
    """By seed, what this row is above the other."""
    return [values[row][seed] - values[base][seed] for seed in values[row] if seed in values[base]]


def entropies(records: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Mean normalized entropy of the attention of each row."""
    by_row: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if "entropy" in record:
            by_row[record["row"]].append(record["entropy"])
    return {row: float(np.mean(values)) for row, values in by_row.items()}


def report(records: list[dict[str, Any]]) -> str:
    """The tables, and the entropies below them."""
    if {record["row"] for record in records} == {"hidden-128", "hidden-64"}:
        return sizes_table(records)
    lines = [f"normalized entropy of the attention, {NAMES[row]}: {v:.2f}" for row, v in entropies(records).items()]
    return "\n".join([table(records), "", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    job_cells.options(parser)
    parser.add_argument("--rows", nargs="+", choices=NAMES, default=list(DEFAULT_ROWS))
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--split", choices=["test", "held-out"], default="test")
    parser.add_argument("--table", type=Path, nargs="+", help="records: print their tables, fit nothing")
    options = parser.parse_args()
    if options.table:
        print(report(read_records(options.table)))
    else:
        job_cells.run(options, partial(plan, options), partial(measure, device=options.device))


def plan(options: argparse.Namespace) -> list[Fit]:
    return [
        Fit(row, corpus, size, seed, options.split)
        for seed in range(options.seeds)
        for corpus in options.corpora
        for size in options.sizes
        for row in options.rows
    ]


if __name__ == "__main__":
    import small_data  # workers import the jobs from this module, not from the script

    small_data.main()
