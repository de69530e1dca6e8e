"""Write the texts of the study as token ids, with opinion words and weights of the TF-IDF model."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.types import Example
from steadygaze.data.corpora import load_corpus
from studies.black_boxes.texts import LENGTH, WORDS

SPLIT_SIZES = {"reviews600": (540, 60), "planted": (7_200, 800), "yelp": (4_010, 445), "imdb": (10_000, 1_000)}
"""Corpus -> number of texts for the fit, and for the selection of the epoch and the measures."""
MIN_SENTIMENT = 0.5
"""An opinion word has a mean human sentiment (0 to 4) that differs from 2, neutral, by this or more."""
WORD = re.compile(r"\w+|[^\w\s]")


def prepare(out: Path, data: str) -> None:
    out.mkdir(parents=True, exist_ok=True)
    opinions = _opinion_words(data)
    for name, sizes in SPLIT_SIZES.items():
        examples = _examples(name, data, sum(sizes))
        texts = [WORD.findall(example.text.lower())[-LENGTH:] for example in examples]
        counts = Counter(word for text in texts[: sizes[0]] for word in text)
        max_words = (20_000 if name == "yelp" else WORDS) - 2
        words = ["", "[UNK]", *sorted(counts, key=lambda word: (-counts[word], word))[:max_words]]
        index_of = {word: index for index, word in enumerate(words)}
        rows = [np.array([index_of.get(word, 1) for word in text], np.int32) for text in texts]
        labels = sorted({example.label for example in examples}, key=str)
        values: dict[str, Any] = {
            "vocabulary": np.array(words),
            "ids": np.concatenate(rows).astype(np.int16),
            "lengths": np.array([len(row) for row in rows]),
            "label": np.array([labels.index(example.label) for example in examples]),
            "train": np.array(sizes[0]),
            "opinion": np.isin(words, list(_rationale_words(examples) if name == "planted" else opinions)),
        }
        if name == "yelp":
            values |= _tfidf(words, rows[: sizes[0]], values["label"][: sizes[0]])
        np.savez_compressed(out / f"{name}.npz", **values)
        print(name, len(rows), "texts", len(words), "words", f"{(out / f'{name}.npz').stat().st_size / 1e6:.1f} MB")


def _examples(name: str, data: str, count: int) -> list[Example]:
    """Random training texts, the same in every call."""
    corpus = {"planted": "planted-code", "yelp": "yelp_polarity", "reviews600": "rotten_tomatoes"}.get(name, name)
    examples = load_corpus(corpus, data_dir=Path(data)).splits["train"]
    order = np.random.default_rng(0).permutation(len(examples))[:count]
    return [examples[i] for i in order]


def _rationale_words(examples: list[Example]) -> set[str]:
    return {example.text[a:b] for example in examples for a, b in example.rationales or ()}


def _opinion_words(data: str) -> set[str]:
    """Words whose human sentiment in SST-2 is not neutral."""
    import pyarrow.parquet as pq

    rows = pq.read_table(Path(data) / "sst2" / "train.parquet", columns=["tokens", "token_sentiment"]).to_pydict()
    scores: dict[str, list[int]] = {}
    for tokens, sentiments in zip(rows["tokens"], rows["token_sentiment"], strict=True):
        for word, score in zip(tokens, sentiments, strict=True):
            scores.setdefault(word.lower(), []).append(score)
    return {word for word, sentiments in scores.items() if abs(np.mean(sentiments) - 2) >= MIN_SENTIMENT}


def _tfidf(words: list[str], rows: list[NDArray[np.int32]], label: NDArray[np.int64]) -> dict[str, Any]:
    """TfidfVectorizer and LogisticRegression of scikit-learn.  Features are words of at least two letters."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    seen = np.array([i > 1 and re.fullmatch(r"\w\w+", word) is not None for i, word in enumerate(words)])
    vectorizer = TfidfVectorizer(analyzer=lambda row: [str(i) for i in row if seen[i]])
    model = LogisticRegression(C=10).fit(vectorizer.fit_transform(rows), label)
    idf, weight = np.zeros((2, len(words)))
    for word, feature in vectorizer.vocabulary_.items():
        idf[int(word)], weight[int(word)] = vectorizer.idf_[feature], model.coef_[0][feature]
    return {"idf": idf, "weight": weight, "bias": model.intercept_, "seen": idf > 0}
