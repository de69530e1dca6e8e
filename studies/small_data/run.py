"""Macro-F1 on 200, 500 and 1,000 training texts: the default classifier beside TF-IDF and logistic regression.

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

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow.parquet as pq

from studies import jobs
from studies.data_folder import data_folder
from studies.small_data.plan import BASELINES, CORPORA, DEFAULT_ROWS, EXPLAINED, HELD_OUT, OURS, SIZES, Fit, plan


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


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """Lists are separated by commas."""

    rows: str = field(default=",".join(DEFAULT_ROWS), metadata={"help": "models"})
    corpora: str = ",".join(CORPORA)
    sizes: str = field(default=",".join(map(str, SIZES)), metadata={"help": "numbers of training texts"})
    seeds: int = 5
    split: Literal["test", "held-out"] = "test"


def run(options: Options) -> None:
    sizes = [int(size) for size in options.sizes.split(",")]
    fits = plan(options.rows.split(","), options.corpora.split(","), sizes, options.seeds, options.split)
    jobs.run(options, lambda: fits, partial(measure, device=options.device))
