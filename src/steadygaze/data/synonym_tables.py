"""Synonym tables: read them, merge several sources, leave out entries that cannot be substituted, write one file.

A table is a mapping of words to lists of synonyms, the closest first.  synonym_formats.py reads the files.

The words of a merged table are those of `fold_word`: letters only, in lower case.  Entries of several words, with other
characters, and words that are their own synonyms are left out and counted.  The synonyms of a word are those of the
first source, then those of the next.
"""

import json
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import reason
from steadygaze.data.synonym_formats import read_rows, wordnet_folder
from steadygaze.data.synonym_groups import fold_word

Table = Mapping[str, Sequence[str]]
"""Word -> its synonyms, the closest first."""
FORM = (
    'use .parquet or .jsonl with rows of {"word": "good", "synonyms": ["fine", "nice"]}, .csv, .json, a MyThes '
    "thesaurus (.dat) or the folder of a WordNet database"
)
INSTALLED_WORDNET = "wordnet"
"""Source that stands for the installed WordNet database."""
LISTS = {name: Path(__file__).with_name(f"{name}.csv") for name in ("everyday", "chat")}
"""Sources that steadygaze has: pairs written by hand that keep the meaning of a word nearly everywhere.

everyday   frequent English words in their usual inflections, spelling variants and abbreviations
chat       spellings of chats and tweets (people, ppl)
"""
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


def as_table(synonyms: str | Path | Table, *, folded: bool) -> dict[str, list[str]]:
    """The table of a file or a mapping; `folded`: in lower case, as a word vocabulary has them."""
    if isinstance(synonyms, str | Path):
        return read_synonyms(synonyms, folded=folded)
    return check_table(synonyms, folded=folded)


def check_table(table: Any, *, folded: bool = False) -> dict[str, list[str]]:
    """A user's mapping of words to synonyms; `folded`: in lower case."""
    if not isinstance(table, Mapping):
        raise UserError(f"synonyms must be a file or a mapping of a word to a list of words, found {table!r:.80}")
    for word, words in table.items():
        if not isinstance(words, list | tuple) or not all(isinstance(entry, str) for entry in (word, *words)):
            raise UserError(f"synonyms of {word!r:.40} must be a list of words, found {words!r:.80}")
    return lower_case_table(table) if folded else {word: list(words) for word, words in table.items()}


def lower_case_table(table: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The table in lower case; rows of words that differ only in case become one row.

    >>> lower_case_table({"Film": ["Movie"], "film": ["picture", "movie"]})
    {'film': ['movie', 'picture']}
    """
    rows: dict[str, dict[str, None]] = {}
    for word, synonyms in table.items():
        rows.setdefault(word.lower(), {}).update(dict.fromkeys(map(str.lower, synonyms)))
    return {word: list(row) for word, row in rows.items()}


def read_synonyms(path: str | Path, *, folded: bool = False, words: Collection[str] = ()) -> dict[str, list[str]]:
    """word -> its synonyms, the closest first; `folded`: in lower case, as a word vocabulary has them.

    Several rows of a word are one row.  `words`: see synonym_formats.py.
    """
    file = Path(path)
    if not os.path.exists(file):
        raise UserError(
            f"the synonym file {file} does not exist: check the path, or write one with `steadygaze synonyms build`"
        )
    try:
        table: dict[str, list[str]] = {}
        for word, synonyms in read_rows(file, words):
            table[word] = list(dict.fromkeys([*table[word], *synonyms])) if word in table else synonyms
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file} is not a synonym table ({reason(error)}): {FORM}") from None
    if not all(isinstance(name, str) for word, synonyms in table.items() for name in (word, *synonyms)):
        raise UserError(f"{file} is not a synonym table: some word is not a string; {FORM}")
    if not table:
        raise UserError(f"{file} contains no synonyms; {FORM}")
    return lower_case_table(table) if folded else table


def read_tables(sources: Sequence[str | Path], words: Collection[str] = ()) -> SynonymTable:
    """Merge tables; `words`: see synonym_formats.py."""
    return clean_table(*(read_synonyms(source_path(source), words=words) for source in sources))


def source_path(source: str | Path) -> Path:
    """The file or folder of a source; `wordnet` is the installed database, `everyday` and `chat` are LISTS."""
    if Path(source).exists():
        return Path(source)
    return wordnet_folder() if str(source) == INSTALLED_WORDNET else LISTS.get(str(source), Path(source))


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
