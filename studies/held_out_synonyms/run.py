"""Synonym tables of the stability study: one that techniques train on, and two that no technique sees in training.

The folder gets three files with the columns `word` and `synonyms` (closest first):

    training.parquet   word pairs of the table, minus the held-out ones
    held-out.parquet   one third of the table's unordered word pairs, chosen by a hash of the pair
    wordnet.parquet    base forms that share the first sense of their commonest part of speech, minus training pairs

No table has a function word or a negation on either side of a pair.  The WordNet database is Debian's `wordnet-base`
(Miller 1995, WordNet 3.0).  Neither table is part of this repository.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from steadygaze.data.substitutable_pairs import FUNCTION_WORDS

ENDINGS = (
    *(("s", ""), ("es", ""), ("ies", "y"), ("ed", ""), ("ed", "e"), ("ied", "y")),
    *(("ing", ""), ("ing", "e"), ("er", ""), ("er", "e"), ("est", ""), ("est", "e")),
)
"""Regular inflections, after WordNet's own rules of detachment."""
INFLECTED_PARTS = ("noun", "verb")
Table = dict[str, list[str]]
HELD_OUT = 3
"""One pair in so many is held out."""
PARTS = {"noun": "1", "verb": "2", "adj": "3", "adv": "4"}
"""Part of speech, and its number in WordNet's sense keys (5: satellite adjectives, counted as adjectives)."""


def pair(word: str, other: str) -> tuple[str, str]:
    return (word, other) if word < other else (other, word)


def is_held_out(word: str, other: str) -> bool:
    """Whether a hash of the unordered pair puts it into the held-out part."""
    return int.from_bytes(hashlib.sha256("\t".join(pair(word, other)).encode()).digest()[:8]) % HELD_OUT == 0


def content(table: Mapping[str, Iterable[str]]) -> Table:
    """Pairs without a function word, a negation or a word that is not written in letters."""
    rows = {word: [o for o in others if o != word and _is_content(o)] for word, others in table.items()}
    return {word: others for word, others in rows.items() if others and _is_content(word)}


def split(table: Mapping[str, Iterable[str]]) -> tuple[Table, Table]:
    """(training, held-out): every unordered pair is in one of them alone."""
    parts: tuple[Table, Table] = ({}, {})
    for word, others in table.items():
        for other in others:
            parts[is_held_out(word, other)].setdefault(word, []).append(other)
    return parts


def without(table: Mapping[str, Iterable[str]], known: Mapping[str, Iterable[str]]) -> Table:
    """The pairs of `table` that are not in `known`, in either order."""
    seen = {pair(word, other) for word, others in known.items() for other in others}
    rows = {word: [other for other in others if pair(word, other) not in seen] for word, others in table.items()}
    return {word: others for word, others in rows.items() if others}


def read_wordnet(folder: Path) -> Table:
    """Single words that share the first sense of a word's commonest part of speech; mutual first senses come first."""
    counts = _counts(folder)
    exceptions = {line.split()[0] for part in PARTS for line in (folder / f"{part}.exc").read_text().splitlines()}
    first: dict[str, dict[str, str]] = {}  # word -> part of speech -> synset of its first sense
    members: dict[tuple[str, str], list[str]] = {}
    for part in PARTS:
        for fields in _lines(folder / f"index.{part}"):
            if fields[0].isalpha():
                first.setdefault(fields[0], {})[part] = fields[-int(fields[2])]
        for fields in _lines(folder / f"data.{part}"):
            names = [fields[4 + 2 * i].partition("(")[0].lower() for i in range(int(fields[3], 16))]
            members[part, fields[0]] = [name for name in names if name.isalpha()]
    table: Table = {}
    for word, senses in first.items():
        common = max(senses, key=lambda part: counts.get((word, PARTS[part]), 0))
        if len(senses) > 1 and not counts.get((word, PARTS[common])):
            continue  # nothing says which part of speech is the commonest
        synset = senses[common]
        others = [other for other in dict.fromkeys(members[common, synset]) if other != word]
        others.sort(key=lambda other: first.get(other, {}).get(common) != synset)  # stable
        if others and not (common in INFLECTED_PARTS and _is_inflected(word, first, exceptions)):
            table[word] = others
    return table


def _is_inflected(word: str, lemmas: Mapping[str, object], exceptions: set[str]) -> bool:
    """Whether a word is also a form of another lemma ("works", "making"), which the table does not have."""
    bases = (word.removesuffix(end) + new for end, new in ENDINGS if word.endswith(end))
    return word in exceptions or any(base in lemmas for base in bases)


def _counts(folder: Path) -> dict[tuple[str, str], int]:
    """(word, part of speech) -> how often its first sense was tagged in the concordance texts."""
    counts: dict[tuple[str, str], int] = {}
    for line in (folder / "cntlist.rev").read_text().splitlines():
        key, number, count = line.split()
        word, _, rest = key.partition("%")
        part = "3" if rest[0] == "5" else rest[0]
        if number == "1":
            counts[word, part] = int(count)
    return counts


def _lines(file: Path) -> Iterable[list[str]]:
    """The fields of each line but those of the license, which begin with two spaces."""
    return (line.split() for line in file.read_text(encoding="latin-1").splitlines() if not line.startswith("  "))


def _is_content(word: str) -> bool:
    return len(word) > 1 and word.isalpha() and word.lower() not in FUNCTION_WORDS


def write(file: Path, table: Table) -> None:
    import pyarrow
    import pyarrow.parquet

    columns = {"word": list(table), "synonyms": list(table.values())}
    pyarrow.parquet.write_table(pyarrow.table(columns), file, compression="zstd")


@dataclass(frozen=True, kw_only=True)
class Options:
    table: Path = field(metadata={"help": "table of synonyms"})
    wordnet: Path = field(metadata={"help": "folder of the WordNet database, such as /usr/share/wordnet"})
    out: Path = field(metadata={"help": "folder of the three tables"})


def run(options: Options) -> None:
    from steadygaze.data.synonym_tables import read_synonyms

    options.out.mkdir(parents=True, exist_ok=True)
    training, held_out = split(content(read_synonyms(options.table, folded=True)))
    tables = {
        "training": training,
        "held-out": held_out,
        "wordnet": without(content(read_wordnet(options.wordnet)), training),
    }
    for name, rows in tables.items():
        write(options.out / f"{name}.parquet", rows)
        print(f"{name}: {len(rows):,} words, {sum(map(len, rows.values())):,} synonyms")
