"""One row of a published data set -> the examples in it.

Each function takes the cells of a row, in the order in which its `Layout` names the columns, the label's name last.
It yields examples, and for what it leaves out the reason, as a string that the corpus counts.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steadygaze.corpus import evidence
from steadygaze.types import Example, Span

Made = Iterator[Example | str]

EMPTY = "empty text"
NO_LABEL = "no label"
OTHER_LABEL = "label of another task"
NO_EVIDENCE = "no evidence"
LOST_EVIDENCE = "evidence not in the text"
EMPTY_SPAN = "zero-length evidence span"
"""Counts spans, not rows: the row keeps its other evidence."""

_HEADER_FIELD = re.compile(r"^(From|Subject):", re.MULTILINE)
_LINE_BREAKS = re.compile(r"<br\s*/?>(?:\s*<br\s*/?>)*")  # begins with a literal, which is searched for faster
_AGREES = {"negative": (0, 1), "positive": (3, 4)}


def text(text: str, label: str) -> Made:
    yield Example(text, label)


def pair(premise: str, hypothesis: str, label: str) -> Made:
    yield Example(premise, label, question=hypothesis)


def tagged(text: str, label: str) -> Made:
    """IMDB.  A run of `<br />` is a line break; the few other words in angle brackets stay as they were typed."""
    yield Example(_LINE_BREAKS.sub("\n", text), label)


def posting(text: str, label: str) -> Made:
    """A newsgroup posting without its header, which gives the group away.  Some copies have none."""
    header, _, body = text.partition("\n\n")
    yield Example(body.strip() if _HEADER_FIELD.search(header) else text.strip(), label)


def marked_words(text: str, tokens: Sequence[str], sentiment: Sequence[int], label: str) -> Made:
    """SST-2.  Evidence: the words that people rated on the label's side of neutral, each rated alone, 0 to 4."""
    spans = evidence.from_tokens(tokens, text)
    if spans is None or len(spans) != len(sentiment):
        yield Example(text, label)
    else:
        agreeing = (span for span, rating in zip(spans, sentiment, strict=True) if rating in _AGREES[label])
        yield Example(text, label, evidence=tuple(agreeing))


def story(passage: Sequence[str], supporting: Iterable[int], question: str, answer: str) -> Made:
    """bAbI.  Evidence: the supporting sentences, whole."""
    text, sentences = evidence.join(passage)
    marked = tuple(sentences[i] for i in sorted(set(supporting)))
    yield Example(text, answer, question, marked, sentences)


def nested_story(lines: Any) -> Made:
    """bAbI on the hub: statements and questions in one list, numbered together; a question sees those above it."""
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


def review(text: str, starts: Sequence[int], ends: Sequence[int], label: str) -> Made:
    """Movie rationales.  Offsets count words, [start, end); a line is a sentence."""
    words = evidence.words(text)
    whole = [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]
    yield from [EMPTY_SPAN] * (len(starts) - len(whole))
    yield _review(text, sorted((words[start][0], words[end - 1][1]) for start, end in whole), label)


def phrased_review(text: str, phrases: Sequence[str], label: str) -> Made:
    """Movie rationales on the hub: evidence as phrases of the text."""
    whole = [phrase for phrase in phrases if phrase.strip()]
    yield from [EMPTY_SPAN] * (len(phrases) - len(whole))
    try:
        yield _review(text, evidence.from_phrases(whole, text), label)
    except ValueError:
        yield LOST_EVIDENCE


def _review(text: str, marked: Sequence[Span], label: str) -> Example | str:
    return Example(text, label, evidence=tuple(marked), sentences=evidence.lines(text)) if marked else NO_EVIDENCE
