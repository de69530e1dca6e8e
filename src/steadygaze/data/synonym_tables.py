"""Merged synonym tables: read several sources, leave out entries that cannot be substituted, write one file.

Words are those of `fold_word`: letters only, in lower case.  Entries of several words, with other characters, and words
that are their own synonyms are left out and counted.  The synonyms of a word are those of the first source, then those
of the next.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steadygaze.data.synonym_formats import wordnet_folder
from steadygaze.data.synonym_groups import fold_word
from steadygaze.data.synonyms import read_synonyms

INSTALLED_WORDNET = "wordnet"
"""Source that stands for the installed WordNet database."""
SEVERAL_WORDS, OTHER_CHARACTERS, SAME_WORD = "several words", "not only letters", "synonym of itself"


@dataclass(frozen=True)
class SynonymTable:
    """Words and their synonyms."""

    rows: dict[str, list[str]]
    """Word -> its synonyms, the closest first; empty rows stay."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Reason -> number of pairs."""

    @property
    def pairs(self) -> int:
        return sum(map(len, self.rows.values()))

    def coverage(self, frequency: Mapping[str, int]) -> "TableCoverage":
        """How much of a corpus has synonyms; `frequency`: the number of texts with each word."""
        names = {name for word, row in self.rows.items() if row for name in (word, *row)}
        return TableCoverage(
            len(frequency),
            sum(word in names for word in frequency),
            sum(frequency.values()),
            sum(number for word, number in frequency.items() if word in names),
        )


@dataclass(frozen=True, slots=True)
class TableCoverage:
    """Words of a corpus with a synonym."""

    words: int
    """Different words of the corpus."""
    words_with_synonym: int
    occurrences: int
    """Words of all texts; a word counts once in a text."""
    occurrences_with_synonym: int

    @property
    def share(self) -> float:
        return self.occurrences_with_synonym / self.occurrences if self.occurrences else 0.0


def read_tables(sources: Sequence[str | Path], words: Collection[str] = ()) -> SynonymTable:
    """Merge tables; `words`: see synonym_formats.py."""
    tables = []
    for source in sources:
        path = wordnet_folder() if str(source) == INSTALLED_WORDNET and not Path(source).exists() else Path(source)
        tables.append(read_synonyms(path, words=words))
    return clean_table(*tables)


def clean_table(*tables: Mapping[str, Sequence[str]]) -> SynonymTable:
    """Merge tables, with their words as `fold_word` returns them.

    >>> table = clean_table({"Film": ["movie", "moving picture", "film"]}, {"film": ["B2", "flick", "movie"]})
    >>> table.rows, table.left_out
    ({'film': ['movie', 'flick']}, {'several words': 1, 'synonym of itself': 1, 'not only letters': 1})
    """
    rows: dict[str, dict[str, None]] = {}
    left_out: Counter[str] = Counter()
    for table in tables:
        for word, synonyms in table.items():
            name = fold_word(word)
            if name is None:
                left_out[_reason(word)] += max(1, len(synonyms))
                continue
            row = rows.setdefault(name, {})
            for synonym in synonyms:
                other = fold_word(synonym)
                if other is None or other == name:
                    left_out[SAME_WORD if other == name else _reason(synonym)] += 1
                else:
                    row[other] = None
    return SynonymTable({word: list(row) for word, row in rows.items()}, dict(left_out))


def _reason(word: str) -> str:
    return SEVERAL_WORDS if len(word.replace("_", " ").replace("-", " ").split()) > 1 else OTHER_CHARACTERS


def table_text(rows: Mapping[str, Sequence[str]]) -> str:
    """The content of a .jsonl file."""
    records = ({"word": word, "synonyms": list(row)} for word, row in sorted(rows.items()) if row)
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
