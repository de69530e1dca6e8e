"""Rationales as character spans: from word offsets, from phrases or from a column.

A span is [start, end) in Python characters (code points).  A user's rationales cell is one of

    nothing (null, or an empty cell)        not annotated                             None
    [[0, 4], [10, 15]]                      characters                                as written, sorted
    ["superb acting", "never dull"]         phrases, each found in the text           their characters
    [[{"start_token": 3, "end_token": 5}]]  words, as ERASER counts them              their characters
    []                                      annotated, empty                          ()

as JSON in a string cell, or as a list where the format has lists (jsonl, parquet).  The search for a
phrase starts after the previous phrase, then at the beginning; white space in a phrase matches any white space.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from steadygaze.core.errors import UserError
from steadygaze.core.types import Span
from steadygaze.core.untrusted_files import parse_json

Spans = tuple[Span, ...]


def from_cell(cell: Any, text: str) -> Spans | None:
    """Parse a cell to spans of the text; raise ValueError if it is not valid."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    marks = _parsed(cell) if isinstance(cell, str) else cell
    if not isinstance(marks, list | tuple):
        raise ValueError(f"{cell!r:.60} is not a list of [start, end] or of phrases")
    if all(isinstance(mark, str) for mark in marks):
        return from_phrases(marks, text)
    if any(isinstance(mark, dict) for mark in flat(marks)):
        parsed = [from_mark(mark, text, words(text)) for mark in flat(marks)]
        return tuple(sorted(span for span in parsed if span is not None))
    return tuple(sorted(_span(mark, text) for mark in marks))


def flat(marks: Any) -> list[Any]:
    """Flatten ERASER's groups of marks to one list."""
    if not isinstance(marks, list | None):
        raise ValueError(f"{marks!r:.60} is not a list of rationales")
    return [mark for group in marks or [] for mark in (group if isinstance(group, list) else [group])]


def from_mark(mark: Any, text: str, words: Sequence[Span]) -> Span | None:
    """The characters of an ERASER mark, the words [start, end); its text is checked if it has one.  None: no word.

    >>> from_mark({"start_token": 1, "end_token": 3, "text": "fine film"}, "a fine film", words("a fine film"))
    (2, 11)
    """
    if not isinstance(mark, dict):
        raise ValueError(f'{mark!r:.60} is not {{"start_token": …, "end_token": …}}')
    start, end, phrase = mark.get("start_token"), mark.get("end_token"), mark.get("text")
    if isinstance(phrase, str) and phrase.strip() and (start is None or start == -1):  # given only by its words
        return from_phrases([phrase], text)[0]
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= len(words):
        raise ValueError(f"tokens {start} to {end} are outside of a text of {len(words)} tokens")
    if start == end:
        return None
    span = words[start][0], words[end - 1][1]
    tokens = text[slice(*span)]
    if isinstance(phrase, str) and "".join(phrase.split()).lower() != "".join(tokens.split()).lower():
        raise ValueError(f"tokens {start} to {end} are {tokens!r:.60}, but the rationale is {phrase!r:.60}")
    return span


def from_phrases(phrases: Iterable[str], text: str) -> Spans:
    """The spans of the phrases, sorted."""
    spans, end = [], 0
    for phrase in phrases:
        pattern = re.compile(r"\s+".join(re.escape(word) for word in phrase.split()))
        match = pattern.search(text, end) or pattern.search(text)
        if not phrase.strip() or match is None:
            raise ValueError(f"the phrase {phrase!r:.60} is not in the text")
        end = match.end()
        spans.append(match.span())
    return tuple(sorted(spans))


def from_tokens(tokens: Sequence[str], text: str) -> list[Span] | None:
    """The span of each token, searched from left to right; None if a token is missing."""
    spans, end = [], 0
    for token in tokens:
        start = text.find(token, end)
        if start < 0:
            return None
        end = start + len(token)
        spans.append((start, end))
    return spans


def words(text: str) -> list[Span]:
    """The span of each whitespace-separated word."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def lines(text: str) -> Spans:
    """The span of each nonempty line."""
    return tuple(match.span() for match in re.finditer(r"[^\n]*\S[^\n]*", text))


def join(sentences: Sequence[str]) -> tuple[str, Spans]:
    """Join sentences with spaces; return the text and the span of each sentence."""
    spans, start = [], 0
    for sentence in sentences:
        spans.append((start, start + len(sentence)))
        start += len(sentence) + 1
    return " ".join(sentences), tuple(spans)


def _parsed(cell: str) -> Any:
    try:
        return parse_json(cell, "the cell")
    except UserError:
        raise ValueError(f'{cell!r:.60} is not JSON; write [[0, 4]] or ["a phrase"]') from None


def _span(mark: Any, text: str) -> Span:
    pair = isinstance(mark, list | tuple) and len(mark) == 2 and all(type(end) is int for end in mark)
    if not pair:
        raise ValueError(f"{mark!r:.60} is not [start, end]")
    start, end = mark
    if not 0 <= start < end <= len(text):
        raise ValueError(f"[{start}, {end}] is outside of a text of {len(text)} characters")
    if not text[start:end].strip():
        raise ValueError(f"[{start}, {end}] contains only white space")
    return start, end
