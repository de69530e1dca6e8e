"""Worlds: texts whose informative words are known, with substitutes that keep their meaning.

A text is chatter with a few informative words.  Each informative word speaks for one class with a strength; the label
is the class with the larger sum.  Every text also has one gate word and, sometimes, a negation before an informative
word: some models read them, others do not.

    short     8 to 24 generated words, two classes
    long      60 to 160 generated words, four classes
    reviews   sentences of Rotten Tomatoes; the informative words are those with the largest weights of a logistic
              regression of its training texts

All words of a synonym group speak for the same class with nearly the same strength.
"""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.types import Example
from steadygaze.data.word_tokenizer import WordTokenizer, build_word_tokenizer

MOST_INFORMATIVE = 6
"""Informative words of a text: exact Shapley values enumerate their subsets."""
GATES, NEGATION = ("gatea", "gateb"), "nevr"
GROUP = 4
"""Words of a synonym group."""


@dataclass(frozen=True)
class Shape:
    """What the texts of a world look like."""

    shortest: int = 8
    longest: int = 24
    classes: int = 2
    density: float = 0.15
    """Share of informative words."""
    balance: float = 0.5
    """Share of texts of the first class; the other classes share the rest."""
    negated: float = 0.2
    """Share of texts with a negation."""


KINDS = {"short": Shape(), "long": Shape(60, 160, classes=4, density=0.04), "reviews": Shape()}


@dataclass(frozen=True)
class World:
    kind: str
    shape: Shape
    tokens: WordTokenizer
    examples: list[Example]
    synonyms: dict[str, list[str]]
    words: list[str]
    """The word of each id."""
    polarity: Tensor  # (V,) long: the class that a word speaks for; −1: chatter
    strength: Tensor  # (V,) double
    group: Tensor  # (V,) long: the number within its synonym group
    half: Tensor  # (V,) long: 0 or 1, the half of the informative groups
    gate: Tensor  # (V,) long: 0 or 1 for gate words, else −1
    negation: Tensor  # (V,) bool
    filler: Tensor  # (V,) long: an arbitrary number of each word of chatter, the same for synonyms
    frequency: Tensor  # (V,) double: the share of texts with the word

    @property
    def classes(self) -> int:
        return self.shape.classes

    @property
    def size(self) -> int:
        return len(self.words)

    @property
    def relevant(self) -> Tensor:
        """(V,) bool: words that a model of this world can read."""
        return (self.polarity >= 0) | (self.gate >= 0) | self.negation


@dataclass(frozen=True)
class Lexicon:
    """The words that texts are made of."""

    informative: list[list[str]]
    """Groups of synonyms; group g speaks for the class g modulo the number of classes."""
    chatter: list[str]
    share: NDArray[np.float64]
    """Probability of each word of chatter."""


def world(kind: str, seed: int, texts: int = 100, shape: Shape | None = None, data: Path | None = None) -> World:
    random = np.random.default_rng((seed, list(KINDS).index(kind)))
    used = shape or KINDS[kind]
    if kind == "reviews":
        sentences, lexicon = _reviews(data, used.classes)
        chosen = random.permutation(len(sentences))
        written = [words for i in chosen if (words := _from_review(random, sentences[i], lexicon, used))][:texts]
    else:
        lexicon = _generated(used.classes)
        written = [_from_chatter(random, lexicon, used) for _ in range(texts)]
    return _assembled(kind, used, lexicon, written)


def _generated(classes: int) -> Lexicon:
    groups = max(12, 3 * classes)
    informative = [[f"info{_letters(g)}{letter}" for letter in "abcd"] for g in range(groups - groups % classes)]
    chatter = [f"word{_letters(i)}" for i in range(400)]
    share = 1 / np.arange(3, 403)
    return Lexicon(informative, chatter, share / share.sum())


def _letters(number: int) -> str:
    """
    >>> _letters(0), _letters(27)
    ('aa', 'bb')
    """
    return chr(ord("a") + number // 26) + chr(ord("a") + number % 26)


@cache
def _reviews(data: Path | None, classes: int) -> tuple[list[list[str]], Lexicon]:
    """The sentences of Rotten Tomatoes as lists of words, and the words that a regression weighs most."""
    import pyarrow.parquet as parquet
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    if data is None:
        raise ValueError("reviews need the folder of published corpora")
    table = parquet.read_table(data / "rotten_tomatoes" / "train.parquet")
    texts, labels = table.column("text").to_pylist(), table.column("label").to_pylist()
    vectorizer = CountVectorizer(token_pattern=r"[a-z]{2,}", min_df=5)
    counts = vectorizer.fit_transform(texts)
    weights = LogisticRegression(C=0.3, max_iter=1000).fit(counts, labels).coef_[0]
    names, order = vectorizer.get_feature_names_out(), np.argsort(weights)
    size = 16 * GROUP
    ends = [order[:size], order[::-1][:size]]
    informative = []
    for g in range(16):
        for end in ends:
            informative.append([str(names[i]) for i in end[g * GROUP : (g + 1) * GROUP]])
    assert classes == 2
    used = {word for group in informative for word in group}
    frequency = np.asarray(counts.sum(0)).ravel()
    common = [i for i in np.argsort(-frequency) if names[i] not in used][:2000]
    share = frequency[common].astype(np.float64)
    known = used | {str(names[i]) for i in common}
    words = [[w for w in vectorizer.build_analyzer()(text) if w in known] for text in texts]
    return words, Lexicon(informative, [str(names[i]) for i in common], share / share.sum())


def _from_chatter(random: np.random.Generator, lexicon: Lexicon, shape: Shape) -> list[str]:
    length = int(random.integers(shape.shortest, shape.longest + 1))
    words = [str(word) for word in random.choice(lexicon.chatter, length, p=lexicon.share)]
    return _with_evidence(random, words, lexicon, shape)


def _from_review(random: np.random.Generator, words: list[str], lexicon: Lexicon, shape: Shape) -> list[str]:
    informative = {word for group in lexicon.informative for word in group}
    chatter = [word for word in words if word not in informative]
    return _with_evidence(random, chatter, lexicon, shape) if len(chatter) >= 6 else []


def _with_evidence(random: np.random.Generator, words: list[str], lexicon: Lexicon, shape: Shape) -> list[str]:
    """Put informative words, a gate and perhaps a negation in place of chatter."""
    rest = (1 - shape.balance) / max(1, shape.classes - 1)
    label = int(random.choice(shape.classes, p=[shape.balance, *[rest] * (shape.classes - 1)]))
    number = int(np.clip(random.poisson(shape.density * len(words)), 1, min(MOST_INFORMATIVE, len(words) - 2)))
    against = int(random.binomial(number - 1, 0.2)) if number > 2 else 0
    places = random.permutation(np.arange(1, len(words)))[: number + 1]
    for rank, place in enumerate(places[:number]):
        spoken = label if rank >= against else int((label + random.integers(1, shape.classes)) % shape.classes)
        groups = len(lexicon.informative) // shape.classes
        words[place] = str(random.choice(lexicon.informative[spoken + shape.classes * int(random.integers(groups))]))
    words[places[number]] = GATES[int(random.integers(2))]
    if random.random() < shape.negated and number < MOST_INFORMATIVE:
        words.insert(int(places[0]), NEGATION)
    return words


def _assembled(kind: str, shape: Shape, lexicon: Lexicon, written: list[list[str]]) -> World:
    informative = {word: g for g, group in enumerate(lexicon.informative) for word in group}
    everything = [*informative, *lexicon.chatter, *GATES, NEGATION]
    tokens = build_word_tokenizer([" ".join(everything)] * 2)
    vocabulary = list(tokens.vocabulary)
    size = len(vocabulary)
    none = torch.full((size,), -1, dtype=torch.long)
    here = World(
        kind, shape, tokens, [], {}, vocabulary, none.clone(), torch.zeros(size, dtype=torch.float64), none.clone(),
        none.clone(), none.clone(), torch.zeros(size, dtype=torch.bool), none.clone(),
        torch.zeros(size, dtype=torch.float64),
    )  # fmt: skip
    for i, word in enumerate(vocabulary):
        if (g := informative.get(word)) is not None:
            place = lexicon.informative[g].index(word)
            here.polarity[i], here.group[i] = g % shape.classes, place
            here.half[i] = (g // shape.classes) % 2
            here.strength[i] = (1.0 if (g // shape.classes) % 3 else 1.6) * (1 + 0.02 * place)
        here.gate[i] = GATES.index(word) if word in GATES else -1
        here.negation[i] = word == NEGATION
    number_of = {word: i for i, word in enumerate(vocabulary)}
    groups = [lexicon.chatter[i : i + GROUP] for i in range(0, len(lexicon.chatter), GROUP)]
    for words in written:
        for word in set(words):
            here.frequency[number_of[word]] += 1 / len(written)
    for number, group in enumerate(groups):
        for word in group:
            here.filler[number_of[word]] = number
    synonyms = {
        word: [other for other in group if other != word]
        for group in [*lexicon.informative, *groups]
        for word in group
        if len(group) > 1
    }
    return replace(here, examples=[_example(words, informative, shape) for words in written], synonyms=synonyms)


def _example(words: list[str], informative: dict[str, int], shape: Shape) -> Example:
    """The text with its label and, as the human rationale, the words that speak for the label."""
    sums = np.zeros(shape.classes)
    for word in words:
        if word in informative:
            sums[informative[word] % shape.classes] += 1
    label, spans, text = int(sums.argmax()), [], ""
    for word in words:
        if word in informative and informative[word] % shape.classes == label:
            spans.append((len(text), len(text) + len(word)))
        text += f"{word} "
    return Example(text.strip(), f"class{label}", rationales=tuple(spans))
