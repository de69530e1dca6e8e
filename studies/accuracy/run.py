"""Test accuracy of vanilla training on published and planted corpora, and rationale mass where rationales are known.

Validation texts select the epoch.
"""

import statistics
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from steadygaze.core.types import texts_of
from steadygaze.data.corpora import load_corpus
from steadygaze.data.published_corpora import PUBLISHED_CORPORA
from steadygaze.data.token_alignment import mark_tokens
from steadygaze.estimator.resumable_training import columns
from steadygaze.estimator.text_classifier import TextClassifier
from studies.data_folder import data_folder


def measure(
    name: str, seed: int, encoder: str, epochs: int | None, vectors: Path | None, device: str
) -> tuple[float, float]:
    """Test accuracy and rationale mass of one model; the mass is a mean over texts with rationales, NaN without any."""
    corpus = load_corpus(name, data_dir=data_folder(name) if name in PUBLISHED_CORPORA else None)
    clf = TextClassifier(encoder, seed=seed, epochs=epochs, vectors=vectors, device=device)
    clf.fit(*columns(corpus.splits["train"]), validation=columns(corpus.splits["validation"]))
    test = corpus.splits["test"]
    mass, share, cut = [], [], 0
    for explained, example in zip(clf.explain(texts_of(test)), test, strict=True):
        if example.rationales:
            where = mark_tokens(explained.spans, example.rationales)
            mass.append(np.asarray(explained.weights)[where].sum())
            share.append(where.mean())
            cut += explained.read_to is not None
    accuracy = clf.score(*columns(test))
    even = f"{np.mean(share):.3f}" if share else "unknown"
    print(
        f"{name}  seed {seed}  test accuracy {accuracy:.4f}  rationale mass {np.mean(mass) if mass else np.nan:.3f}  "
        f"(evenly spread: {even}; n {len(mass)}, without rationales {len(test) - len(mass)}, cut short {cut})  "
        f"epochs {len(clf.history_)}",
        flush=True,
    )
    return accuracy, float(np.mean(mass)) if mass else float("nan")


def run(
    corpora: list[str] = ["planted-reviews"],  # noqa: B006
    *,
    encoder: str = "bilstm",
    seeds: int = 1,
    epochs: int | None = None,
    vectors: Annotated[Path | None, typer.Option(help="for example glove.6B.100d.txt.gz")] = None,
    device: str = "auto",
) -> None:
    for name in corpora:
        scores = [measure(name, seed, encoder, epochs, vectors, device) for seed in range(seeds)]
        print(
            f"{name}  mean of {len(scores)}: test accuracy {statistics.mean(accuracy for accuracy, _ in scores):.4f}  "
            f"rationale mass {statistics.mean(mass for _, mass in scores):.3f}"
        )
