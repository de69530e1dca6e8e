"""One row of a published data set -> the examples in it.

A `Layout` names the columns of a set and the function that reads a row of them.  Such a function takes the cells in the
order of the columns, the label's name last.  It yields examples; for a dropped item it yields the reason as
a string, which the corpus counts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, get_origin

from steadygaze.core.errors import UserError, one_line
from steadygaze.core.types import Example, Span
from steadygaze.data import rationale_spans
from steadygaze.data.text_checks import is_empty

Examples = Iterator[Example | str]

EMPTY = "empty text"
NO_LABEL = "no label"
OTHER_LABEL = "label of another task"
NO_RATIONALE = "no rationales"
LOST_RATIONALE = "rationales not in the text"
EMPTY_SPAN = "zero-length rationales span"
"""Counts spans, not rows: the row keeps its other rationales."""

_AGREES = {"negative": (0, 1), "positive": (3, 4)}


@dataclass(frozen=True)
class Layout:
    """The columns, the function that reads a row of them, and the names of the labels."""

    columns: tuple[str, ...]
    examples: Callable[..., Examples]
    """Called with the cells of a row, in the order of `columns`."""
    labels: Mapping[Any, str] | None = None
    """Value of the last column -> label; other rows are dropped.  None: the value is the label."""

    def read(self, table: Mapping[str, list[Any]], dropped: Counter[str], where: str) -> list[Example]:
        """The examples of the table; dropped items are counted in `dropped`.  `where`: for error messages."""
        examples = []
        lists = [name in self._lists for name in self.columns]
        for row, cells in enumerate(zip(*(table[name] for name in self.columns), strict=True), start=1):
            try:
                if any(isinstance(cell, str) for cell, several in zip(cells, lists, strict=True) if several):
                    raise TypeError("a string instead of a list")
                items = [_checked(item) for item in self._row(cells)]
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                values = ", ".join(f"{name}={cell!r:.40}" for name, cell in zip(self.columns, cells, strict=True))
                problem = f"is not a row of this data set ({one_line(error, 80)})"
                raise UserError(f"{where}, row {row} {problem}: found {values}; download the data set again") from None
            for item in items:
                if isinstance(item, str):
                    dropped[item] += 1
                elif is_empty(item.text) or (item.question is not None and is_empty(item.question)):
                    dropped[EMPTY] += 1
                else:
                    examples.append(item)
        return examples

    @property
    def _lists(self) -> set[str]:
        """Columns whose cells are lists."""
        annotations = [parameter.annotation for parameter in signature(self.examples).parameters.values()]
        pairs = zip(self.columns, annotations, strict=False)
        return {name for name, annotation in pairs if get_origin(annotation) in (Sequence, Iterable)}

    def _row(self, cells: tuple[Any, ...]) -> Examples:
        *content, label = cells
        if any(cell is None for cell in content):
            return iter([EMPTY])
        if self.labels is None:
            return self.examples(*cells)
        if label not in self.labels:
            return iter([NO_LABEL if label in (None, -1) else OTHER_LABEL])
        return self.examples(*content, self.labels[label])


def _checked(item: Example | str) -> Example | str:
    """Refuse an example whose text, question or label has another type."""
    if isinstance(item, Example):
        for name, kinds in (("text", str), ("question", str | None), ("label", str | int)):
            if not isinstance(value := getattr(item, name), kinds):
                raise TypeError(f"the {name} is a {type(value).__name__}")
    return item


def text(text: str, label: str) -> Examples:
    yield Example(text, label)


def pair(premise: str, hypothesis: str, label: str) -> Examples:
    yield Example(premise, label, question=hypothesis)


def cleaned(clean: Callable[[str], str]) -> Callable[[str, str], Examples]:
    """Like `text`, for a set whose texts need cleaning."""
    return lambda text, label: iter([Example(clean(text), label)])


def marked_words(text: str, tokens: Sequence[str], sentiment: Sequence[int], label: str) -> Examples:
    """SST-2.  Rationales: the words rated on the label's side of neutral, each rated alone, 0 to 4."""
    spans = rationale_spans.from_tokens(tokens, text)
    if spans is None or len(spans) != len(sentiment):
        yield Example(text, label)
    else:
        agreeing = (span for span, rating in zip(spans, sentiment, strict=True) if rating in _AGREES[label])
        yield Example(text, label, rationales=tuple(agreeing))


def story(passage: Sequence[str], supporting: Iterable[int], question: str, answer: str) -> Examples:
    """bAbI.  Rationales: the supporting sentences."""
    text, sentences = rationale_spans.join(passage)
    if any(number < 0 for number in supporting):
        raise ValueError("a supporting sentence has a negative number")
    marked = tuple(sentences[i] for i in sorted(set(supporting)))
    yield Example(text, answer, question, marked, sentences)


def nested_story(lines: Any) -> Examples:
    """bAbI on the hub: statements and questions in one list; a question is about the statements before it."""
    if isinstance(lines, dict):  # a struct of lists, or a list of structs, by the age of the export
        lines = [dict(zip(lines, line, strict=True)) for line in zip(*lines.values(), strict=True)]
    passage: list[str] = []
    place: dict[str, int] = {}
    for line in lines:
        if line["type"] == 0:
            place[line["id"]] = len(passage)
            passage.append(line["text"].strip())
        else:
            supporting = [place[number] for number in line["supporting_ids"]]
            yield from story(passage, supporting, line["text"].strip(), line["answer"])


def review(text: str, starts: Sequence[int], ends: Sequence[int], label: str) -> Examples:
    """Movie rationales.  Offsets are [start, end) in words; each line is a sentence."""
    words = rationale_spans.words(text)
    if any(not 0 <= number <= len(words) for number in (*starts, *ends)):
        raise ValueError(f"evidence outside of a text of {len(words)} words")
    nonempty = [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]
    yield from [EMPTY_SPAN] * (len(starts) - len(nonempty))
    yield _review(text, sorted((words[start][0], words[end - 1][1]) for start, end in nonempty), label)


def phrased_review(text: str, phrases: Sequence[str], label: str) -> Examples:
    """Movie rationales on the hub: rationales as phrases of the text."""
    nonempty = [phrase for phrase in phrases if phrase.strip()]
    yield from [EMPTY_SPAN] * (len(phrases) - len(nonempty))
    try:
        yield _review(text, rationale_spans.from_phrases(nonempty, text), label)
    except ValueError:
        yield LOST_RATIONALE


def _review(text: str, marked: Sequence[Span], label: str) -> Example | str:
    return (
        Example(text, label, rationales=tuple(marked), sentences=rationale_spans.lines(text))
        if marked
        else NO_RATIONALE
    )
