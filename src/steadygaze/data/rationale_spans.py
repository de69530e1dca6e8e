"""Rationales as character spans: from a mask, marks, phrases or word offsets.

A span is [start, end) in Python characters (code points).  The rationale of a text is one of

    nothing (null, or an empty cell)        not annotated                             None
    [[0, 4], [10, 15]]                      characters                                as written, sorted
    "superb acting"                         a phrase of the text                      its characters
    ["superb acting", "never dull"]         phrases, each once in the text            their characters
    [0, 0, 1, 1, 0]                         a mask: 0 or 1 for every word             words with 1
    [0.0, 0.2, 0.9, 1.0, 0.1]               graded marks, 0 to 1 for every word       words with 0.5 or more
    [[{"start_token": 3, "end_token": 5}]]  words, as ERASER counts them              their characters
    []                                      annotated, empty                          ()

as JSON in a string cell, or as a list.  A mask has as many numbers as the text has whitespace-separated words, or as
steadygaze's word tokenizer finds, which separates punctuation.  Phrases are matched as whole words if possible; white
space in a phrase matches any white space.  A phrase that occurs n times must be listed n times, which marks them all.

The sentences of a text have two of these forms: characters, or a list of strings in the order of the text.  Nothing,
or an empty list: not given.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby, pairwise
from typing import Any

from steadygaze.core.errors import UserError
from steadygaze.core.types import Example, Span
from steadygaze.core.untrusted_files import parse_json

Spans = tuple[Span, ...]
FORMS = (
    'a rationale is character spans [[0, 4]], a phrase or phrases ["superb acting"], a mask of 0 and 1 or marks from 0 '
    'to 1 for all words [0, 1, 0], or ERASER\'s [{"start_token": 3, "end_token": 5}]'
)
SENTENCES = 'sentences are character spans [[0, 12], [13, 30]] or strings ["A fine film.", "I left."], in order'
THRESHOLD = 0.5
"""A word with a graded mark of at least this value is in the rationale."""


def annotate(example: Example, rationale: Any) -> Example:
    """The example with a rationale in one of these forms; raise ValueError if it is not valid."""
    marks = _as_list(rationale)
    if marks is None:
        return example
    if marks and all(isinstance(mark, int | float) for mark in marks):
        return _annotate_words(example, marks)
    return replace(example, rationales=from_list(marks, example.text))


def with_sentences(example: Example, sentences: Any) -> Example:
    """The example with given sentences; raise ValueError if they are not valid.

    >>> with_sentences(Example("Yes. Yes."), ["Yes.", "Yes."]).sentences
    ((0, 4), (5, 9))
    """
    marks = _as_list(sentences, SENTENCES)
    if not marks:
        return example
    if not all(isinstance(mark, str) for mark in marks):
        spans: Spans = tuple(_span(mark, example.text, SENTENCES) for mark in marks)
    else:
        spans = from_phrases(marks, example.text)
        if "".join(example.text[slice(*span)] for span in spans).split() != "".join(marks).split():
            raise ValueError(f"the sentences are not in the order of the text; {SENTENCES}")
    for (_, end), (start, _) in pairwise(spans):
        if start < end:
            raise ValueError(f"a sentence begins at {start}, before the previous one ends at {end}; {SENTENCES}")
    return replace(example, sentences=spans)


def from_list(marks: list[Any], text: str) -> Spans:
    """The spans of phrases, character offsets or ERASER's marks."""
    if all(isinstance(mark, str) for mark in marks):
        return tuple(sorted(span for phrase, count in Counter(marks).items() for span in _phrase(phrase, count, text)))
    if any(isinstance(mark, dict) for mark in flat(marks)):
        parsed = [from_mark(mark, text, words(text)) for mark in flat(marks)]
        return tuple(sorted(span for span in parsed if span is not None))
    return tuple(sorted(_span(mark, text) for mark in marks))


def _as_list(rationale: Any, forms: str = FORMS) -> list[Any] | None:
    """Parse JSON, and convert arrays and tuples to lists; None: not annotated."""
    if isinstance(rationale, str):
        cell = rationale.strip()
        rationale = _parsed(cell, forms) if cell.startswith(("[", "{", '"')) else [cell] if cell else None
        rationale = [rationale] if isinstance(rationale, str) else rationale
    rationale = rationale.tolist() if hasattr(rationale, "tolist") else rationale
    if rationale is None or (isinstance(rationale, float) and math.isnan(rationale)):
        return None
    if not isinstance(rationale, list | tuple):
        raise ValueError(f"found {rationale!r:.60}; {forms}")
    return [mark.tolist() if hasattr(mark, "tolist") else mark for mark in rationale]


def _annotate_words(example: Example, marks: Sequence[float]) -> Example:
    spans = words(example.text)
    if len(spans) != len(marks) and len(tokens := _word_tokenizer().place([example.text]).spans[0]) != len(marks):
        raise ValueError(
            f"found {len(marks)} marks; words between white space in the text: {len(spans)}; words and punctuation "
            f"marks: {len(tokens)}; {FORMS}"
        )
    spans = spans if len(spans) == len(marks) else tokens
    if outside := [mark for mark in marks if not 0 <= mark <= 1]:
        raise ValueError(f"found the mark {outside[0]!r:.40}; {FORMS}")
    runs = groupby(zip(spans, marks, strict=True), key=lambda pair: pair[1] >= THRESHOLD)
    marked = [[span for span, _ in run] for is_marked, run in runs if is_marked]
    graded = tuple((*span, float(mark)) for span, mark in zip(spans, marks, strict=True) if mark)
    return replace(
        example,
        rationales=tuple((run[0][0], run[-1][1]) for run in marked),
        graded=graded if any(0 < mark < 1 for mark in marks) else None,
    )


@cache
def _word_tokenizer() -> Any:
    from steadygaze.data.word_tokenizer import build_word_tokenizer  # only for such masks

    return build_word_tokenizer([], max_length=1 << 30)


def _phrase(phrase: str, count: int, text: str) -> list[Span]:
    """All occurrences of a phrase that is listed `count` times, as whole words if it occurs so."""
    pattern = r"\s+".join(re.escape(word) for word in phrase.split())
    matches = [match.span() for match in re.finditer(rf"(?<!\w){pattern}(?!\w)", text)] if pattern else []
    matches = matches or [match.span() for match in re.finditer(pattern, text) if match.group()]
    if not matches:
        other = re.search(pattern, text, re.IGNORECASE) if pattern else None
        place = (
            f"in the text only as {other.group()!r:.60}; use the same case" if other else f"not in the text; {FORMS}"
        )
        raise ValueError(f"the phrase {phrase!r:.60} is {place}")
    if len(matches) > count:
        raise ValueError(
            f"the phrase {phrase!r:.60} occurs {len(matches)} times in the text: list it {len(matches)} times to mark "
            "all, use a longer phrase, or character spans [[start, end]]"
        )
    return matches


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


def _parsed(cell: str, forms: str) -> Any:
    try:
        return parse_json(cell, "the cell")
    except UserError:
        raise ValueError(f"{cell!r:.60} is not JSON; {forms}") from None


def _span(mark: Any, text: str, forms: str = FORMS) -> Span:
    pair = isinstance(mark, list | tuple) and len(mark) == 2 and all(type(end) is int for end in mark)
    if not pair:
        raise ValueError(f"{mark!r:.60} is not [start, end]; {forms}")
    start, end = mark
    if not 0 <= start < end <= len(text):
        raise ValueError(f"[{start}, {end}] is outside of a text of {len(text)} characters")
    if not text[start:end].strip():
        raise ValueError(f"[{start}, {end}] contains only white space")
    return start, end
