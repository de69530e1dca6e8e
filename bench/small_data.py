"""Macro-F1 on 200, 500 and 1,000 training texts: the default classifier beside TF-IDF and logistic regression.

    python bench/small_data.py                     the table of docs/results/small-data.md
    python bench/small_data.py --split held-out    without the test split, for choosing settings
    python bench/small_data.py --table bench/records/small_data.jsonl    the table of finished fits

Rows:

    tfidf-lr            scikit-learn's TfidfVectorizer() and LogisticRegression(), fitted to all texts
    tfidf-lr-balanced   the same with class_weight="balanced"
    tfidf-lr-10         with C=10, as in the label vectors; tfidf-lr-10-balanced: both
    default             TextClassifier() without the extra `glove`
    standard            TextClassifier(settings={"small_data": False}): the defaults of large datasets
    glove               TextClassifier() with the extra `glove`: GloVe vectors of 50 dimensions
    minilm              TextClassifier("transformer:minilm")

A seed draws the training texts and seeds the model.  All rows of a cell have the same texts.  The intervals are 95 %
intervals of the mean over the seeds (Student's t); those of differences are paired.  `held-out` is the official
validation split, or 1,000 training texts where there is none.  Normalized entropy is that of the attention on 200
texts, where 1 is uniform.
"""

import argparse
import json
import os
import warnings
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from scipy.stats import t as student

CORPORA = ("sst2", "rotten_tomatoes", "yelp_polarity")
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
}
HELD_OUT = 1000
EXPLAINED = 200


def read(corpus: str, split: str) -> tuple[list[str], list[int]]:
    file = Path(os.environ["STEADYGAZE_DATA"]) / corpus / f"{split}.parquet"
    table = pq.read_table(file, columns=["text", "label"]).to_pydict()
    kept = [(text, label) for text, label in zip(table["text"], table["label"], strict=True) if text.strip()]
    return [text for text, _ in kept], [int(label) for _, label in kept]


def cell(corpus: str, size: int, seed: int, split: str) -> tuple[list[str], list[int], list[str], list[int]]:
    """Training texts and labels, test texts and labels."""
    texts, labels = read(corpus, "train")
    order = np.random.default_rng(1234).permutation(len(texts))
    folder = Path(os.environ["STEADYGAZE_DATA"]) / corpus
    if split == "test":
        test = read(corpus, "test")
    elif (folder / "validation.parquet").exists():
        test = read(corpus, "validation")
    else:
        test, order = ([texts[i] for i in order[:HELD_OUT]], [labels[i] for i in order[:HELD_OUT]]), order[HELD_OUT:]
    rows = order[np.random.default_rng((77, seed)).permutation(len(order))[:size]]
    return [texts[i] for i in rows], [labels[i] for i in rows], *test


def run(row: str, corpus: str, size: int, seed: int, split: str, device: str) -> dict[str, Any]:
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
    texts, labels, test_texts, test_labels = cell(corpus, size, seed, split)
    record: dict[str, Any] = {"row": row, "corpus": corpus, "size": size, "seed": seed, "split": split}
    if row in BASELINES:
        model: Any = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000, **BASELINES[row]))
        model.fit(texts, labels)
    else:
        model = TextClassifier(seed=seed, device=device, verbose=False, **OURS[row]).fit(texts, labels)
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


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half the width of its 95 % interval."""
    n = len(values)
    half = student.ppf(0.975, n - 1) * np.std(values, ddof=1) / n**0.5 if n > 1 else np.nan
    return float(np.mean(values)), float(half)


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: mean macro-F1 of every row and cell, and the paired difference to TF-IDF."""
    scores: dict[tuple[str, int], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    entropies: dict[str, list[float]] = defaultdict(list)
    for record in records:
        scores[record["corpus"], record["size"]][record["row"]][record["seed"]] = record["macro-f1"]
        if "entropy" in record:
            entropies[record["row"]].append(record["entropy"])
    rows = [row for row in (*BASELINES, *OURS) if any(row in values for values in scores.values())]
    lines = ["| corpus | texts | " + " | ".join(rows) + " | default − tfidf-lr |", "|---" * (len(rows) + 3) + "|"]
    for corpus, size in sorted(scores, key=lambda key: ([*CORPORA, key[0]].index(key[0]), *key)):
        values = scores[corpus, size]
        numbers = [
            "{:.3f} ± {:.3f}".format(*interval(list(values[row].values()))) if values[row] else "–" for row in rows
        ]
        base, ours = values["tfidf-lr"], values["default"]
        gains = [ours[seed] - base[seed] for seed in ours if seed in base]
        gain = "{:+.3f} ± {:.3f}".format(*interval(gains)) if gains else "–"
        lines.append(f"| {corpus} | {size:,} | " + " | ".join(numbers) + f" | {gain} |")
    lines += [f"normalized entropy of the attention, {row}: {np.mean(v):.2f}" for row, v in entropies.items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=["tfidf-lr", "tfidf-lr-balanced", "default", "standard", "glove"])
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--split", choices=["test", "held-out"], default="test")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="JSON lines, one fit each.")
    parser.add_argument("--table", type=Path, nargs="+", help="Files of --out: print their table, fit nothing.")
    options = parser.parse_args()
    if options.table:
        print(table([json.loads(line) for file in options.table for line in file.read_text().splitlines()]))
        return
    jobs = [
        (row, corpus, size, seed, options.split, options.device)
        for seed in range(options.seeds)
        for corpus in options.corpora
        for size in options.sizes
        for row in options.rows
    ]
    records = []
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(run, *job) for job in jobs]):
            records.append(done.result())
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
    print(table(records))


if __name__ == "__main__":
    main()
