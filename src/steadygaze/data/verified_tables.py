"""Verified synonym tables: pairs that keep the meaning of a word, in a file that says so.

The pairs of LISTS (synonym_tables.py) were chosen by hand; their words have no other substitutes.  A pair of another
source passes a lexical and a contextual filter:

    lexical      of WordNet only: a shared sense in the same inflection that is likely for both words (word_readings.py)
    classes      substitutable_pairs.py
    contextual   the state of the word changes little in the texts (context_filter.py)

The substitute occurs in the texts, that of another source in at least LEAST_TEXTS.  A source that is not WordNet has no
lexical filter, in any language.

The first line of the file is {"verified": {…}}, with the encoder, the thresholds, the texts and a digest of the other
lines.  Other tables are unverified, also a merged one.  An edited file is refused: its first line is no longer true.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import parse_json, read_text
from steadygaze.data.context_filter import Similarity, pair_similarity
from steadygaze.data.substitutable_pairs import substitutable_pairs
from steadygaze.data.synonym_rewriting import LONGEST
from steadygaze.data.synonym_tables import LISTS, clean_table, read_synonyms, source_path, table_text
from steadygaze.data.word_readings import likely_synonyms, shared_readings
from steadygaze.data.word_tokenizer import SPECIALS, tokenizer_of_words

SHARE = 0.3
"""Least share of the shared reading among the readings of each word."""
LEAST_TEXTS = 3
"""Least number of texts with a substitute that is not of LISTS."""
THRESHOLD = 0.85
"""Least mean cosine of the states of a word and of its substitute; docs/results/verified-substitutions.md."""
KEY = "verified"


@dataclass(frozen=True)
class Verification:
    """How a table was verified."""

    encoder: str
    """SHA-256 of the weights."""
    threshold: float
    """Least mean cosine."""
    texts: str
    """Fingerprint of the texts."""
    sources: tuple[str, ...] = ()
    """File names of the sources."""


@dataclass(frozen=True)
class VerifiedRows:
    """Verified pairs."""

    listed: dict[str, list[str]]
    """Pairs of LISTS."""
    others: dict[str, list[str]]
    """Pairs of other sources that passed all filters."""
    candidates: int
    """Number of pairs of other sources that passed all filters but the contextual one."""


def verified_rows(
    sources: Sequence[str | Path],
    texts: Sequence[str],
    frequency: Mapping[str, int],
    similarity: Similarity,
    threshold: float = THRESHOLD,
) -> VerifiedRows:
    """The pairs of the sources that keep the meaning of words in these texts.

    `frequency`: number of texts with each word.
    """
    listed = listed_rows(sources, frequency)
    candidates = {word: row for word, row in candidate_rows(sources, frequency).items() if word not in listed}
    cosines = pair_similarity(candidates, texts, similarity)
    kept = {
        word: [synonym for synonym in row if cosines.get((word, synonym), -1.0) >= threshold]
        for word, row in candidates.items()
    }
    others = {word: row for word, row in kept.items() if row}
    return VerifiedRows(listed, others, sum(map(len, candidates.values())))


def listed_rows(sources: Sequence[str | Path], frequency: Mapping[str, int]) -> dict[str, list[str]]:
    """The pairs of those sources that are LISTS."""
    paths = [path for path in map(source_path, sources) if path in LISTS.values()]
    tables = [_frequent(read_synonyms(path, folded=True), frequency, texts=1) for path in paths]
    return {word: row for word, row in clean_table(*tables).rows.items() if row}


def candidate_rows(sources: Sequence[str | Path], frequency: Mapping[str, int]) -> dict[str, list[str]]:
    """The pairs of other sources that pass all filters but the contextual one."""
    words = frozenset(frequency)
    tables = []
    for path in map(source_path, sources):
        if path.is_dir():
            tables.append(likely_synonyms(shared_readings(path, words), frequency, share=SHARE, texts=LEAST_TEXTS))
        elif path not in LISTS.values():
            tables.append(_frequent(read_synonyms(path, folded=True), frequency, texts=LEAST_TEXTS))
    return substitutable_pairs(clean_table(*tables).rows)


def _frequent(table: Mapping[str, Sequence[str]], frequency: Mapping[str, int], texts: int) -> dict[str, list[str]]:
    return {
        word: [synonym for synonym in row if frequency.get(synonym, 0) >= texts]
        for word, row in table.items()
        if word in frequency
    }


def verified_text(rows: Mapping[str, Sequence[str]], verification: Verification) -> str:
    """The content of a .jsonl file."""
    body = table_text(rows)
    header = {KEY: {**asdict(verification), "rows": _digest(body)}}
    return json.dumps(header, ensure_ascii=False) + "\n" + body


def read_verification(file: str | Path) -> Verification | None:
    """How the table of a file was verified; None: it is unverified."""
    path = Path(file)
    if path.suffix != ".jsonl" or not path.is_file():
        return None
    first, _, body = read_text(path).partition("\n")
    values = parse_json(first, f"the first line of {path}") if f'"{KEY}"' in first else None
    if not isinstance(values, dict) or KEY not in values:
        return None
    header = values[KEY]
    if not isinstance(header, dict) or not _is_described(header):
        raise UserError(f"{path}: its first line does not describe a verified table: {_REPAIR}")
    if header.pop("rows") != _digest(body):
        raise UserError(f"{path} was edited after it was verified: {_REPAIR}")
    return Verification(**{**header, "sources": tuple(header["sources"])})


def _is_described(header: Mapping[str, object]) -> bool:
    names = {field.name for field in fields(Verification)}
    return (
        header.keys() == {*names, "rows"}
        and isinstance(header["threshold"], float | int)
        and isinstance(header["sources"], list)
        and all(isinstance(value, str) for value in (header["encoder"], header["texts"], *header["sources"]))
    )


def texts_with_substitutes(rows: Mapping[str, Sequence[str]], texts: Sequence[str], most: int = 3) -> dict[int, int]:
    """Number of words with a substitute, at most `most` -> number of texts.

    >>> texts_with_substitutes({"film": ["movie"]}, ["a film", "a book", "film after film"])
    {0: 1, 1: 1, 2: 1, 3: 0}
    """
    tokenized = tokenizer_of_words([word for word, row in rows.items() if row], max_length=LONGEST).encode(texts)
    numbers = tokenized.counts(tokenized.words & (tokenized.ids >= len(SPECIALS)))
    texts_with = Counter(numbers.clip(max=most).tolist())
    return {number: texts_with[number] for number in range(most + 1)}


_REPAIR = "remove the first line to use it as an unverified table, or build it again with `synonyms build --verify`"


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
