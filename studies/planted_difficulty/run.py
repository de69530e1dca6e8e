"""Test accuracy of a bag of words, of an oracle and of the default classifier on the planted corpora, and their sizes.

For each aspect and for the pairs: test accuracy of TF-IDF (words and pairs of words) with logistic regression, and of
the oracle that uses lexicon and grammar; the number of word types, of texts and of distinct texts; test accuracy of
vanilla training, and the share of its attention on the rationales, beside that of even attention.
"""

import re

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from steadygaze.core.types import Example, texts_of
from steadygaze.data.planted.lexicon import ASPECTS
from steadygaze.data.planted.reviews import SIZES, planted_pairs, planted_reviews, question_aspect, read_planted_review
from steadygaze.data.token_alignment import mark_tokens
from steadygaze.estimator.resumable_training import columns
from steadygaze.estimator.text_classifier import TextClassifier

Splits = dict[str, list[Example]]


def run(*, seed: int = 0, sizes: tuple[int, int, int] = SIZES, encoder: str = "bilstm", device: str = "auto") -> None:
    """Sizes: training, validation and test texts."""
    names = ("tf-idf", "oracle", "types", "texts", "distinct", "vanilla", "rationales", "even")
    print(f"{'corpus':<12}" + "".join(f"{name:>11}" for name in names))
    corpora: dict[str, Splits] = {aspect: planted_reviews(seed, aspect=aspect, sizes=sizes) for aspect in ASPECTS}
    for name, splits in (corpora | {"pairs": planted_pairs(seed, sizes=sizes)}).items():
        everything = [example for split in splits.values() for example in split]
        types = {word for example in everything for word in re.findall(r"[\w'-]+", example.text.lower())}
        counts = len(types), len(everything), len({example.text for example in everything})
        shares = bag_of_words(splits), oracle(splits["test"], name), *vanilla(splits, seed, encoder, device)
        cells = [*(f"{x:.3f}" for x in shares[:2]), *(f"{x:,}" for x in counts), *(f"{x:.3f}" for x in shares[2:])]
        print(f"{name:<12}" + "".join(f"{cell:>11}" for cell in cells), flush=True)


def bag_of_words(splits: Splits) -> float:
    """Test accuracy of TF-IDF and logistic regression on question and text together."""
    parts = {
        name: ([f"{e.question or ''} {e.text}" for e in split], [str(e.label) for e in split])
        for name, split in splits.items()
    }
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(max_iter=1000)).fit(*parts["train"])
    return float(model.score(*parts["test"]))


def oracle(test: list[Example], name: str) -> float:
    """For pairs, the aspect is that of the question."""
    aspects = [name if name in ASPECTS else question_aspect(example.question or "") for example in test]
    pairs = zip(test, aspects, strict=True)
    return float(np.mean([read_planted_review(example.text, aspect) == example.label for example, aspect in pairs]))


def vanilla(splits: Splits, seed: int, encoder: str, device: str) -> tuple[float, float, float]:
    """Test accuracy, and the shares of attention and of words on the rationales; validation texts select the epoch."""
    clf = TextClassifier(encoder, seed=seed, device=device).fit(
        *columns(splits["train"]), validation=columns(splits["validation"])
    )
    test, mass, share = splits["test"], [], []
    for explained, example in zip(clf.explain(texts_of(test)), test, strict=True):
        if example.rationales:
            marked = mark_tokens(explained.spans, example.rationales)
            mass.append(np.asarray(explained.weights)[marked].sum())
            share.append(marked.mean())
    return clf.score(*columns(test)), float(np.mean(mass)), float(np.mean(share))
