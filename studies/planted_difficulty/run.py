"""Test accuracy of a bag of words and of an oracle on the planted corpora, and sizes of the corpora.

For each aspect and for the pairs: test accuracy of TF-IDF (words and pairs of words) with logistic regression, test
accuracy of the oracle that uses lexicon and grammar, the number of word types, of texts and of distinct texts.
"""

import re

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from steadygaze.core.types import Example
from steadygaze.data.planted.lexicon import ASPECTS
from steadygaze.data.planted.reviews import SIZES, planted_pairs, planted_reviews, question_aspect, read_planted_review


def run(*, seed: int = 0, sizes: tuple[int, int, int] = SIZES) -> None:
    """Sizes: training, validation and test texts."""
    print(f"{'corpus':<12}{'tf-idf':>8}{'oracle':>8}{'positive':>10}{'types':>8}{'texts':>8}{'distinct':>10}")
    for aspect in ASPECTS:
        print_line(aspect, planted_reviews(seed, aspect=aspect, sizes=sizes), aspect)
    print_line("pairs", planted_pairs(seed, sizes=sizes), None)


def print_line(name: str, splits: dict[str, list[Example]], aspect: str | None) -> None:
    """Print one line of the table; without an aspect, the oracle takes it from each question."""
    everything = [example for split in splits.values() for example in split]
    test = splits["test"]
    right = [
        read_planted_review(example.text, aspect or question_aspect(example.question or "")) == example.label
        for example in test
    ]
    positive = [example.label == "positive" for example in test]
    types = {word for example in everything for word in re.findall(r"[\w'-]+", example.text.lower())}
    distinct = {example.text for example in everything}
    print(
        f"{name:<12}{bag_of_words(splits):>8.3f}{sum(right) / len(test):>8.3f}{sum(positive) / len(test):>10.3f}"
        f"{len(types):>8,}{len(everything):>8,}{len(distinct):>10,}"
    )


def bag_of_words(splits: dict[str, list[Example]]) -> float:
    """Test accuracy of TF-IDF and logistic regression on question and text together."""
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(max_iter=1000))
    model.fit(*_columns(splits["train"]))
    return float(model.score(*_columns(splits["test"])))


def _columns(examples: list[Example]) -> tuple[list[str], list[str]]:
    return [f"{example.question or ''} {example.text}" for example in examples], [
        str(example.label) for example in examples
    ]
