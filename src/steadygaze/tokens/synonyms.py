"""Which words of a vocabulary may stand for each other, from a file that says so.

A file (.parquet or .jsonl) has a row for each word: `word`, a string, and `synonyms`, a list, the closest first.
Of a transformer's vocabulary only whole words count: a piece that continues a word is neither exchanged nor put in.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from steadygaze.errors import UserError
from steadygaze.foreign_files import MissingFile, arrow_path, parse_json, read_text, reason

STARTS = ("Ġ", "▁")
"""What byte-level and sentence-piece vocabularies write before the first piece of a word."""
SPECIAL = re.compile(r"<.+>|\[.+\]", re.DOTALL)
"""How vocabularies write special tokens.  No word of a word vocabulary looks so: < and [ are words of their own."""
GOES_ON = "##"
"""What WordPiece writes before every other."""
FORM = 'rows of {"word": "good", "synonyms": ["fine", "nice"]}'


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What is known of the ids of a vocabulary."""

    names: list[str]
    """The word each id is, without the mark of a first piece."""
    continues: NDArray[np.bool_]  # (V,)
    words: NDArray[np.bool_]  # (V,) written with letters only
    special: NDArray[np.bool_]  # (V,) <unk>, <s>, [CLS], [unused1] …

    def table(self, synonyms: Mapping[str, Sequence[str]], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(V,most) ids of synonyms, the closest first, and (V,) how many there are."""
        ids = {name: i for i, name in enumerate(self.names) if not self.continues[i]}
        table, count = np.zeros((len(self.names), most), np.int64), np.zeros(len(self.names), np.int64)
        for name, i in ids.items():
            found = [ids[other] for other in synonyms.get(name, ()) if other in ids and other != name][:most]
            table[i, : len(found)], count[i] = found, len(found)
        return table, count


def lexicon(vocabulary: Sequence[str], kind: Literal["words", "pieces"]) -> Lexicon:
    """How a vocabulary of pieces marks them is read off the vocabulary itself: a mark is on a tenth of it at least."""
    tenth = len(vocabulary) / 10 if kind == "pieces" else math.inf  # words are whole, whatever they look like
    start = next((mark for mark in STARTS if sum(token.startswith(mark) for token in vocabulary) > tenth), "")
    goes_on = sum(token.startswith(GOES_ON) for token in vocabulary) > tenth
    if start:
        continues = [not token.startswith(start) for token in vocabulary]
    else:
        continues = [goes_on and token.startswith(GOES_ON) for token in vocabulary]
    names = [token.removeprefix(start) for token in vocabulary]
    words = np.array([name.isalpha() for name in names], np.bool_)
    special = np.array([SPECIAL.fullmatch(token) is not None for token in vocabulary], np.bool_)
    return Lexicon(names, np.array(continues, np.bool_), words, special)


def read_synonyms(path: str | Path, *, folded: bool = False) -> dict[str, list[str]]:
    """word -> its synonyms, the closest first; `folded`: in lower case, as a word vocabulary has them."""
    file = Path(path)
    try:
        rows = _parquet(file) if file.suffix == ".parquet" else _lines(file)
        found = {word: _several(others) for word, others in rows}
    except MissingFile:
        raise UserError(f"there is no file of synonyms {file}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file} is no table of synonyms ({reason(error)}): .parquet or .jsonl with {FORM}") from None
    if not all(isinstance(name, str) for word, others in found.items() for name in (word, *others)):
        raise UserError(f"{file} is no table of synonyms: some word is no string; it needs {FORM}")
    if not found:
        raise UserError(f"{file} holds no synonyms; it needs {FORM}")
    return {word.lower(): [other.lower() for other in others] for word, others in found.items()} if folded else found


def _several(others: object) -> list[str]:
    if not isinstance(others, list):
        raise TypeError("synonyms must be a list")  # of a string, list() would make its letters
    return others


def _parquet(file: Path) -> list[tuple[str, list[str]]]:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(arrow_path(file), columns=["word", "synonyms"])
    return [(row["word"], row["synonyms"]) for row in table.to_pylist()]


def _lines(file: Path) -> list[tuple[str, list[str]]]:
    rows = [parse_json(line, "a line") for line in read_text(file).split("\n") if line.strip()]
    return [(row["word"], row["synonyms"]) for row in rows]
