"""WordWeights: which words carry the weight of the explanations of a corpus, per class.  Does not import torch.

    s_w = Σ_i W_iw / Σ_i Σ_v |W_iv|          over the texts i that are explained for the class

    W_iw  sum of the weights of the word w in text i, or in both texts of the pair i; upper and lower case count as one
          word
    s_w   its share of all weight; negative if the word lowers the score of the class

The interval is a bootstrap over texts, which resamples numerator and denominator together.  Words are ranked by |s_w|
on the same texts, so the intervals of the first words are slightly too far from 0.

The interval of a word in few texts is too narrow.  Coverage of the 95 % interval in a simulation of 200 texts of 20
words with equal true shares and weights of a Dirichlet distribution with α = ½:

    expected texts with the word    3      5      8      10     20     40
    coverage                        69 %   78 %   83 %   86 %   90 %   92 %

Tables mark words in fewer than 20 texts.

Function words and punctuation are left out unless requested, and their share of all weight is reported.  Left out are
tokens without a letter, a digit or an emoji, and English articles, pronouns, prepositions, conjunctions, auxiliaries
and numbers.  Negations and words of degree (not, never, too, only, more) carry meaning and stay.  The list is English.
A rule by frequency would cover all languages, but would also hide the frequent content words that decide a prediction.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.errors import Console, one_line, unknown
from steadygaze.core.output_paths import GENERATOR
from steadygaze.core.rounding import percent
from steadygaze.core.types import Label
from steadygaze.data.substitutable_pairs import FUNCTION_WORDS, NEGATIONS
from steadygaze.results.data_frame import data_frame
from steadygaze.results.explanation import Explanation
from steadygaze.results.formatting import count_text, number
from steadygaze.results.health import HEALTHY, Health, without_health
from steadygaze.results.highlight import page
from steadygaze.results.intervals import percentile_bounds, resample_counts
from steadygaze.results.row import SavedResult
from steadygaze.results.shade import NEGLIGIBLE

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Group

_DEGREE = """t more most less least few many much enough too very quite rather only even still almost like unlike
despite against first last"""  # t: of don't
MEANINGFUL = NEGATIONS | frozenset(_DEGREE.split())
"""Function words that stay: negations and words of degree."""
APOSTROPHE = re.compile("['’]")
RESAMPLES = 1_000
RELIABLE = 20
"""Fewest texts of a word whose 95 % interval covers its share in about 90 % of simulations."""
NOTE = f"* in fewer than {RELIABLE} texts: the interval is too narrow"
WORD = 32
"""Longest word in a table, in characters."""


@dataclass(frozen=True, slots=True)
class WordWeight:
    """The weight of one word in the explanations of one class."""

    word: str
    label: Label
    explainer: str
    share: float
    """Share of all weight of the texts that are explained for this class."""
    low: float
    high: float
    """95 % bootstrap interval of the share."""
    mean: float
    """Mean weight in the texts that contain the word."""
    n: int
    """Texts that contain the word."""

    @property
    def mark(self) -> str:
        """An asterisk if the interval is too narrow because the word is in few texts."""
        return "*" if self.n < RELIABLE else ""


@dataclass(frozen=True, repr=False)
class WordWeights(SavedResult):
    """The words with the largest weight, as returned by `steadygaze.word_weights`."""

    renderer: ClassVar[str] = "steadygaze.results.word_weights:render"

    model: str
    """Name of the model."""
    weights: tuple[WordWeight, ...]
    """By explainer and class, the largest absolute share first."""
    texts: Mapping[Label, int]
    """Number of texts that are explained for each class."""
    health: Health = HEALTHY
    """Known-bad states of the model or of the fitted explainers."""
    left_out: Mapping[str, float] = field(default_factory=dict)
    """Explainer -> the share of all weight of function words and punctuation; empty: they are listed."""
    remarks: tuple[str, ...] = ()
    """Limits of the meaning of the weights: no word matters much, or only the first text of a pair has weights."""

    def __iter__(self) -> Iterator[WordWeight]:
        return iter(self.weights)

    @property
    def explainers(self) -> list[str]:
        """Names of the explainers."""
        return list(dict.fromkeys(weight.explainer for weight in self.weights))

    @property
    def note(self) -> str:
        """The explanation of the asterisk, if a word has one, and the weight of the words that are left out."""
        shares = ", ".join(f"{percent(share, 0)} of the weight of {name}" for name, share in self.left_out.items())
        left_out = f"left out: function words and punctuation, {shares}" if shares else ""
        return "; ".join(filter(None, [NOTE if any(weight.mark for weight in self.weights) else "", left_out]))

    def top(self, label: Label, explainer: str | None = None, k: int = 10) -> list[WordWeight]:
        """The words with the largest absolute share for a class.

        Parameters
        ----------
        label : str or int
            The class.
        explainer : str, default=None
            Name of an explainer; None: the first one.
        k : int, default=10
            Number of words.

        Returns
        -------
        list of WordWeight
            In descending order.
        """
        if label not in self.texts:
            raise unknown("class", label, self.texts)
        if explainer is not None and explainer not in self.explainers:
            raise unknown("explainer", explainer, self.explainers)
        name = explainer or next(iter(self.explainers), None)
        return [weight for weight in self.weights if (weight.label, weight.explainer) == (label, name)][:k]

    def to_dict(self) -> dict[str, Any]:
        texts = {str(label): count for label, count in self.texts.items()}
        weights = [asdict(item) for item in self.weights]
        return {
            **GENERATOR,
            "health": self.health.to_list(),
            "model": self.model,
            "texts": texts,
            "left_out": dict(self.left_out),
            "remarks": list(self.remarks),
            "weights": weights,
        }

    def to_pandas(self) -> "DataFrame":
        """The weights as a table.

        Returns
        -------
        pandas.DataFrame
            One row per word, class and explainer.
        """
        return data_frame([asdict(weight) for weight in self.weights])

    def _repr_html_(self) -> str:
        return self.body().encode(errors="replace").decode()

    def body(self) -> str:
        """The tables as HTML, without the frame of a page.

        Returns
        -------
        str
            For each class one table per explainer.
        """
        parts = [self.health.banner, *(f"<p>{escape(remark)}</p>" for remark in self.remarks)]
        for label, count in self.texts.items():
            parts.append(f"<h2>{escape(str(label))} <small>({count_text(count, 'text')})</small></h2>")
            tables = [_table(name, self.top(label, name, len(self.weights))) for name in self.explainers]
            parts.append(f"<div style='display:flex;flex-wrap:wrap;gap:1em'>{''.join(tables)}</div>")
        if self.note:
            parts.append(f"<p><small>{self.note}</small></p>")
        return "".join(parts)

    def __repr__(self) -> str:
        return f"<WordWeights of {self.model}: {len(self.weights)} weights, {', '.join(self.explainers)}>"

    def __rich__(self) -> "Group":
        """For each class one table, with one column per explainer."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        parts: list[Any] = [*self.health.lines, *map(Text, self.remarks)]
        for label, count in self.texts.items():
            table = Table(*self.explainers, box=None)
            columns = [
                [_line(weight) for weight in self.top(label, name, len(self.weights))] for name in self.explainers
            ]
            for i in range(max(map(len, columns), default=0)):
                table.add_row(*(column[i] if i < len(column) else "" for column in columns))
            parts += [Text(f"{one_line(label, WORD)} ({count_text(count, 'text')})", "bold"), table, Text()]
        if self.note:
            parts.append(Text(self.note))
        return Group(*parts)

    def __str__(self) -> str:
        console = Console(width=100, no_color=True)
        with console.capture() as captured:
            console.print(self)
        return captured.get()


def render(weights: WordWeights) -> str:
    """One HTML page."""
    title = f"Word weights of {weights.model}"
    body = without_health(weights).body()
    return page(title, f"{weights.health.banner}<h1>{escape(title)}</h1>{body}")


def _line(weight: WordWeight) -> str:
    share, low, high = (percent(value, 1) for value in (weight.share, weight.low, weight.high))
    word = one_line(weight.word, WORD)
    if not any(character.isalnum() for character in word):
        word = f"“{word}”"  # a dash would read as a sign
    return f"{word} {share} [{low}, {high}]{weight.mark}"


def _table(explainer: str, weights: Sequence[WordWeight]) -> str:
    """Words with bars of their shares."""
    most = max((max(abs(weight.low), abs(weight.high)) for weight in weights), default=1.0) or 1.0
    rows = "".join(_bar(weight, most) for weight in weights)
    head = "<tr><th>word</th><th></th><th>share</th><th>95 % interval</th><th>texts</th></tr>"
    style = "border-spacing:0.6em 0.1em;font-size:0.85em"
    return f"<table style='{style}'><caption>{escape(explainer)}</caption>{head}{rows}</table>"


def _bar(weight: WordWeight, most: float) -> str:
    color = "#1f77b4" if weight.share >= 0 else "#c0392b"
    ends = sorted(abs(end) / most * 100 for end in (weight.low, weight.high))
    ends = [0.0, ends[1]] if weight.low < 0 < weight.high else ends
    bar = (
        f"<div style='position:relative;width:8em;height:0.9em' title='mean weight {number(weight.mean)}'>"
        f"<div style='background:{color};opacity:0.75;height:100%;width:{abs(weight.share) / most:.1%}'></div>"
        f"<div style='position:absolute;top:45%;height:1px;background:currentColor;"
        f"left:{ends[0]:.1f}%;width:{ends[1] - ends[0]:.1f}%'></div></div>"
    )
    share, low, high = (percent(value, 1) for value in (weight.share, weight.low, weight.high))
    numbers = f"{share}</td><td>{low} to {high}{weight.mark}</td><td>{weight.n:,}"
    return f"<tr><td dir='auto'>{escape(weight.word)}</td><td>{bar}</td><td>{numbers}</td></tr>"


def word_weights_of(
    explanations: Mapping[str, Sequence[Explanation]],
    model: str,
    words: int = 20,
    min_texts: int = 3,
    seed: int = 0,
    function_words: bool = False,
) -> WordWeights:
    """Aggregate explanations, explainer -> one per text.  `words`: per class; `min_texts`: fewest texts of a word."""
    first = next(iter(explanations.values()))
    labels = list(dict.fromkeys(label for item in first for label in item.probabilities or [item.label]))
    counts = {label: sum(item.explained_label == label for item in first) for label in labels}
    weights: list[WordWeight] = []
    for name, items in explanations.items():
        for label in labels:
            of_class = [item for item in items if item.explained_label == label]
            weights += _of_class(of_class, label, name, words, min_texts, seed, function_words)
    texts = {label: count for label, count in counts.items() if count}
    health = sum((item.health for items in explanations.values() for item in items[:1]), HEALTHY)
    left_out = {} if function_words else {name: _left_out(items) for name, items in explanations.items()}
    return WordWeights(model, tuple(weights), texts, health, left_out, tuple(_remarks(explanations, texts)))


def _remarks(explanations: Mapping[str, Sequence[Explanation]], texts: Mapping[Label, int]) -> Iterator[str]:
    for name, items in explanations.items():
        if any(item.question is not None and item.question_weights is None for item in items):
            yield f"{name}: only the words of the first text of each pair have weights."
        for label, count in texts.items():
            if all(item.negligible for item in items if item.explained_label == label):
                yield f"{name}, {one_line(label, WORD)}: {NEGLIGIBLE} in {count_text(count, 'text')}."


def _weights(explanation: Explanation) -> list[tuple[str, float]]:
    """The words of the text, and of the other text of a pair, with their weights."""
    parts = (explanation, explanation.question_explanation)
    return [pair for part in parts if part is not None for pair in zip(part.tokens, part.weights, strict=True)]


def is_function_word(word: str) -> bool:
    """True if a word is left out: punctuation, an English function word, or a contraction of such words.

    >>> [word for word in ("The", "...", "not", "too", "film", "of", "5", "😀") if is_function_word(word)]
    ['The', '...', 'of']
    >>> [word for word in ("'s", "’ll", "it's", "don't", "n't", "o'clock") if is_function_word(word)]
    ["'s", '’ll', "it's"]
    """
    parts = APOSTROPHE.split(word.lower())
    return all(not any(map(_has_meaning, part)) or part in FUNCTION_WORDS - MEANINGFUL for part in parts)


def _has_meaning(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character) == "So"  # an emoji


def _left_out(explanations: Sequence[Explanation]) -> float:
    """The share of function words and punctuation in the absolute weights."""
    pairs = [pair for item in explanations for pair in _weights(item)]
    total = sum(abs(weight) for _, weight in pairs)
    return sum(abs(weight) for word, weight in pairs if is_function_word(word)) / total if total else 0.0


def _of_class(
    explanations: Sequence[Explanation],
    label: Label,
    explainer: str,
    words: int,
    min_texts: int,
    seed: int,
    function_words: bool,
) -> list[WordWeight]:
    """The words with the largest absolute share."""
    pairs = list(map(_weights, explanations))
    tokens = [token.lower() for text in pairs for token, _ in text]
    if not tokens:
        return []
    vocabulary, ids = np.unique(np.array(tokens, dtype=object), return_inverse=True)
    rows = np.repeat(np.arange(len(explanations)), list(map(len, pairs)))
    values = np.array([weight for text in pairs for _, weight in text])
    cells, cell = np.unique(rows * len(vocabulary) + ids, return_inverse=True)  # one per text and word in it
    sums = np.bincount(cell, values)
    text, word = np.divmod(cells, len(vocabulary))
    absolute: NDArray[np.float64] = np.bincount(text, np.abs(sums), minlength=len(explanations)).astype(np.float64)
    total, occurs = np.bincount(word, sums), np.bincount(word)
    if not absolute.sum():
        return []
    listed = np.array([function_words or not is_function_word(name) for name in vocabulary])
    often = np.flatnonzero((occurs >= min_texts) & (total != 0) & listed)
    top = often[np.argsort(-np.abs(total[often]), kind="stable")][:words]
    matrix = np.zeros((len(explanations), len(top)))
    places = np.full(len(vocabulary), -1)
    places[top] = np.arange(len(top))
    chosen = places[word] >= 0
    matrix[text[chosen], places[word[chosen]]] = sums[chosen]
    low, high = _interval(matrix, absolute, seed)
    shares, means = total[top] / absolute.sum(), total[top] / occurs[top]
    columns = (column.tolist() for column in (shares, low, high, means, occurs[top]))
    return [
        WordWeight(str(vocabulary[index]), label, explainer, *row)
        for index, row in zip(top, zip(*columns, strict=True), strict=True)
    ]


def _interval(
    matrix: NDArray[np.float64], absolute: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Percentile intervals of Σ W_iw / Σ |W_i| over resampled texts.  (N,K), (N,) -> (K,), (K,)"""
    weighted = np.column_stack([absolute, matrix])
    sums = np.concatenate([counts @ weighted for counts in resample_counts(len(absolute), RESAMPLES, seed)])
    used = sums[:, 0] > 0
    return percentile_bounds(sums[used, 1:] / sums[used, :1])
