"""Test accuracy of vanilla training on published and planted corpora, and rationale mass where rationales are known.

    python bench/accuracy.py sst2 --seeds 3 --vectors glove.6B.100d.txt.gz
    python bench/accuracy.py planted-reviews planted-reviews:aspect=palate planted-pairs

Validation texts select the epoch.
"""

import argparse
import statistics
from pathlib import Path

import numpy as np

from steadygaze.core.types import texts_of
from steadygaze.data.corpora import load_corpus
from steadygaze.data.published_corpora import PUBLISHED_CORPORA
from steadygaze.data.token_alignment import mark_tokens
from steadygaze.estimator.resumable_training import columns
from steadygaze.estimator.text_classifier import TextClassifier
from studies.data_folder import data_folder


def run(name: str, seed: int, arguments: argparse.Namespace) -> tuple[float, float]:
    """Test accuracy and rationale mass of one model; the mass is a mean over texts with rationales, NaN without any."""
    corpus = load_corpus(name, data_dir=data_folder(name) if name in PUBLISHED_CORPORA else None)
    clf = TextClassifier(
        arguments.encoder, seed=seed, epochs=arguments.epochs, vectors=arguments.vectors, device=arguments.device
    )
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("corpora", nargs="*", default=["planted-reviews"])
    parser.add_argument("--encoder", default="bilstm")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--vectors", type=Path, default=None, help="for example glove.6B.100d.txt.gz")
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    for name in arguments.corpora:
        scores = [run(name, seed, arguments) for seed in range(arguments.seeds)]
        print(
            f"{name}  mean of {len(scores)}: test accuracy {statistics.mean(accuracy for accuracy, _ in scores):.4f}  "
            f"rationale mass {statistics.mean(mass for _, mass in scores):.3f}"
        )


if __name__ == "__main__":
    main()
