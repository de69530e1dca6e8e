"""Word boundaries in scripts that are written without spaces: Chinese, Japanese, Thai, Lao, Khmer and Burmese.

    我非常喜欢这部电影   ->   我 | 非常 | 喜欢 | 这 | 部 | 电影

ICU finds the words with its dictionaries (Unicode Standard Annex #29, https://unicode.org/reports/tr29/).  Text in
other scripts has no breaks here, and ICU is imported only for texts with such letters.

Departs from ICU for Japanese, whose inflected endings ICU cuts into single letters (面白 | か | っ | た).  No word
begins with a small kana or a length mark, or ends with っ.  A word of ICU after a Han letter is an ending if it is a
single kana of okurigana or in a short list: 面白かった, but 一番 | いい.  Words of several Han letters have only the
endings of adjectives.  た and て after okurigana are endings too: 届いた.  ました and ません are not cut.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.ragged import row_starts
from steadygaze.core.types import Span

Breaks = dict[int, NDArray[np.int64]]
"""Row of a text -> ascending positions at which a word begins or ends; texts without such letters have no entry."""

SEPARATOR = "\ufdd0"
"""Written at the breaks of a text: a noncharacter, which Unicode reserves for internal use."""
ZERO_WIDTH_SPACE = "\u200b"
"""Separates words in Khmer, Thai and Burmese texts."""

HAN = (
    r"\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
)
KANA = (
    r"\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001b16f"
)
THAI_AND_LAO = r"\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf"
MYANMAR = r"\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa76\uaa7a-\uaa7f"
KHMER = r"\u1780-\u17d3\u17d7\u17dc\u17dd"
LETTER = re.compile(f"[{HAN}{KANA}{THAI_AND_LAO}{MYANMAR}{KHMER}]")
# Patterns below are compiled when they are first used: together they take 10 ms.
RUN = f"{LETTER.pattern}+"

SMALL_KANA = "ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮー\u3099\u309a"
OKURIGANA = "いうえきぎくげざぜぞそつてたぬひびぶべみむめゆらりるれろわん"
VERB_ENDING = f"[{OKURIGANA}]|ん[でだ]|[かまらわ]っ|けた|[らわ]れる"
ADJECTIVE_ENDING = "し[いく]|く"
AT_ENDINGS = (
    f"{SEPARATOR}(?=[{SMALL_KANA}])",
    f"(?<=[っッ]){SEPARATOR}(?=[{KANA}])",
    f"(?<=[{HAN}])(?<![{HAN}]{{2}}){SEPARATOR}(?=(?:{VERB_ENDING}){SEPARATOR})",
    f"(?<=[{HAN}]){SEPARATOR}(?=(?:{ADJECTIVE_ENDING}){SEPARATOR}|し?か{SEPARATOR}っ)",
    f"(?:(?<=[{HAN}][{OKURIGANA}])|(?<=[{HAN}]{SEPARATOR}[{OKURIGANA}])){SEPARATOR}(?=[たて]{SEPARATOR})",
    f"(?<=[{HAN}]{SEPARATOR}ん){SEPARATOR}(?=だ{SEPARATOR})",
    f"(?<=ま){SEPARATOR}(?=した|せん|しょう)",
)
"""Positions where the words of ICU, with a separator after each, are joined."""


def word_breaks(texts: Sequence[str]) -> Breaks:
    """The breaks of each text that has letters of these scripts.

    >>> {row: breaks.tolist() for row, breaks in word_breaks(["a film", "看电影 now"]).items()}
    {1: [0, 1, 3]}
    """
    runs = {
        row: [match.span() for match in re.finditer(RUN, text)]
        for row, text in enumerate(texts)
        if not text.isascii() and LETTER.search(text)
    }
    if not runs:
        return {}
    # One call for all runs, each on a line of its own.
    line = iter(_word_starts([texts[row][start:end] for row, spans in runs.items() for start, end in spans]))
    breaks = {}
    for row, spans in runs.items():
        inner = [next(line) + start for start, _ in spans]
        edges = [edge for span in spans for edge in _edges(texts[row], *span)]
        breaks[row] = np.unique(np.concatenate([*inner, np.array(edges, np.int64)]))
    return breaks


def mark_breaks(texts: Sequence[str], breaks: Breaks) -> list[str]:
    """The texts with a separator at every break."""
    marked = list(texts)
    for row, positions in breaks.items():
        edges = [0, *positions.tolist(), len(texts[row])]
        marked[row] = SEPARATOR.join(texts[row][start:end] for start, end in pairwise(edges))
    return marked


def unmarked_spans(spans: Sequence[Span], positions: NDArray[np.int64]) -> list[Span]:
    """Spans in a marked text -> spans in the text.  No span contains a separator."""
    ends = np.asarray(spans, np.int64).reshape(-1, 2)
    shift = np.searchsorted(positions + np.arange(len(positions)), ends[:, :1])
    return [(start, end) for start, end in (ends - shift).tolist()]


def blank_zero_width_spaces(text: str) -> str:
    """A zero-width space beside a letter of these scripts becomes a separator, character for character."""
    if ZERO_WIDTH_SPACE not in text:
        return text
    beside = f"(?<={LETTER.pattern}){ZERO_WIDTH_SPACE}+|{ZERO_WIDTH_SPACE}+(?={LETTER.pattern})"
    return re.sub(beside, lambda match: SEPARATOR * len(match[0]), text)


def _word_starts(runs: list[str]) -> list[NDArray[np.int64]]:
    """The starts of the words of each run, without the first."""
    from icu4py.breakers import WordBreaker  # only for texts in these scripts

    text = "\n".join(runs)
    words = "".join(word + SEPARATOR for word in WordBreaker(text, "und"))
    words = re.sub("|".join(AT_ENDINGS), "", words)
    # By the words, since the library's positions count UTF-16 units.
    starts = row_starts(np.fromiter(map(len, words.split(SEPARATOR)[:-1]), np.int64))[:-1]
    inside = np.ones(len(text) + 1, np.bool_)
    first = row_starts(np.fromiter(map(len, runs), np.int64, len(runs)) + 1)[:-1]
    inside[first] = False  # the first word of a run, and …
    inside[first[1:] - 1] = False  # … the line break before it
    starts = starts[inside[starts]]
    parts = np.split(starts, np.searchsorted(starts, first[1:]))
    return [part - begin for part, begin in zip(parts, first.tolist(), strict=True)]


def _edges(text: str, start: int, end: int) -> list[int]:
    """The ends of a run, unless a joiner or a combining mark connects it with its neighbor."""
    before, after = text[start - 1] if start else " ", text[end] if end < len(text) else " "
    begins = category(before) != "Cf" and category(text[start]) not in MARKS
    return [start] * begins + [end] * (category(after) not in ("Cf", *MARKS))


MARKS = ("Mn", "Mc", "Me")
