"""Replace the words of a text by the representatives of their synonym groups, and map positions back.

    text        A fine FILM, well-shot.
    rewritten   A good MOVIE, well-shot.        groups: good, fine; movie, film

The representative has the case of the word: lower, Title or UPPER.  Texts that differ inside groups and not in the case
of words have the same rewritten text.  Words are those of word_tokenizer.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.types import Span
from steadygaze.data.synonym_groups import SynonymGroups, fold_word
from steadygaze.data.word_tokenizer import SPECIALS, tokenizer_of_words

LONGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class RewrittenText:
    """A text after the replacement of words."""

    text: str
    edges: NDArray[np.int64] | None = None
    """(K,2) corresponding positions in the rewritten and in the original text, ascending; None: both are equal."""

    def original_spans(self, spans: Sequence[Span]) -> list[Span]:
        """Spans in the rewritten text -> spans in the original text.

        A part of a replaced word is mapped to the same share of the original word.

        >>> rewritten = RewrittenText("a movie!", np.array([(0, 0), (2, 2), (7, 6), (8, 7)]))  # a film!
        >>> rewritten.original_spans([(0, 1), (2, 7), (7, 8)])
        [(0, 1), (2, 6), (6, 7)]
        """
        if self.edges is None or not spans:
            return list(spans)
        positions = np.interp(np.asarray(spans, np.float64), *self.edges.T.astype(np.float64))
        return [(start, end) for start, end in np.floor(positions + 1e-6).astype(np.int64).tolist()]


class SynonymRewriter:
    """Replaces words of synonym groups by their representatives."""

    def __init__(self, groups: SynonymGroups) -> None:
        self._groups = groups
        words = list(groups.representatives)
        self._tokenizer = tokenizer_of_words(words, max_length=LONGEST)
        self._representatives = list(groups.representatives.values())

    def __call__(self, texts: Sequence[str]) -> list[RewrittenText]:
        tokenized = self._tokenizer.place(texts)
        ids = tokenized.ragged.ids - len(SPECIALS)
        starts = tokenized.ragged.starts.tolist()
        # With spellings, a word outside of the groups can be a typo.
        grouped = np.flatnonzero(tokenized.ragged.words & ((ids >= 0) | bool(self._groups.spellings)))
        bounds = np.searchsorted(grouped, starts).tolist()
        return [
            self._rewritten(text, tokenized.spans[row], ids, grouped[bounds[row] : bounds[row + 1]], starts[row] + 1)
            for row, text in enumerate(texts)
        ]

    def _rewritten(
        self, text: str, spans: list[Span], ids: NDArray[np.int32], grouped: NDArray[np.int64], first: int
    ) -> RewrittenText:
        """`grouped`: positions of words to look up; `first`: the position of the text's first word."""
        parts, edges, end, shift = [], [(0, 0)], 0, 0
        for position in grouped.tolist():
            start, stop = spans[position - first]
            index, word = ids[position], text[start:stop]
            representative = self._representatives[index] if index >= 0 else self._groups.representative(word)
            name = word if representative == word else match_case(word, representative)
            if name == word:
                continue
            parts += [text[end:start], name]
            edges.append((start + shift, start))
            shift += len(name) - (stop - start)
            edges.append((stop + shift, stop))
            end = stop
        if not parts:
            return RewrittenText(text)
        edges.append((len(text) + shift, len(text)))
        return RewrittenText("".join([*parts, text[end:]]), np.unique(np.array(edges), axis=0))


def match_case(word: str, synonym: str) -> str:
    """Give `synonym` the case of the word: GOOD -> FINE, Good -> Fine.

    >>> match_case("GOOD", "fine"), match_case("Good", "fine"), match_case("good", "fine"), match_case("I", "we")
    ('FINE', 'Fine', 'fine', 'We')
    """
    case = letter_case(word)
    if case == "upper":
        return synonym.upper()
    return synonym[:1].upper() + synonym[1:] if case == "title" else synonym


def letter_case(word: str) -> Literal["lower", "title", "upper"]:
    """The case that `match_case` gives to synonyms of the word."""
    if len(word) > 1 and word.isupper():
        return "upper"
    return "title" if word[:1].isupper() else "lower"


def cased_alternatives(word: str, names: Sequence[str]) -> dict[str, str]:
    """Alternatives in the case of the word -> their names in lower case.

    Names that cannot be recovered from the written form are left out: groß is written GROSS, which is another word.

    >>> cased_alternatives("TOLL", ["gut", "groß"]), cased_alternatives("Toll", ["gut", "groß"])
    ({'GUT': 'gut'}, {'Gut': 'gut', 'Groß': 'groß'})
    """
    case = letter_case(word)
    written = ((match_case(word, name), name) for name in names)
    return {form: name for form, name in written if fold_word(form) == name and letter_case(form) == case}
