"""Readings of words: how often a word form has a sense, by the sense-tagged texts that WordNet counts.

A reading of a form is a sense of a lemma in a part of speech and an inflection: `films` is the plural of the noun film,
or the third person of the verb.  The share of a reading among all readings of the form is

    (n + 1 / 2k)  /  Σ over all readings

with n the count of the sense in cntlist.rev (wndb(5WN)) and k its rank among the senses of its part of speech.  The
second term decides where WordNet tagged nothing.  All forms of a lemma have the counts of the lemma.

Two words may substitute each other in a shared reading: the same sense in the same inflection.  `shared_readings`
returns for each pair how likely the reading is for each word.  Both must be likely: `please` has the sense of
`delight`, but is mostly read as another one; `card` has the sense of `tease` as a rare verb.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import read_text
from steadygaze.data.lemmas import regular_forms
from steadygaze.data.substitutable_pairs import FUNCTION_WORDS
from steadygaze.data.synonym_formats import INFLECTIONS, database_senses, exceptions, read_synsets

COUNTS = "cntlist.rev"
PARTS = {"1": "noun", "2": "verb", "3": "adj", "4": "adv", "5": "adj"}
"""Number of a part of speech in the keys of cntlist.rev."""
PAST = "past"
"""A past form of a verb with several of them: WordNet does not name its tense."""


class Reading(NamedTuple):
    """A sense of a part of speech, in an inflection."""

    part: str
    synset: str
    inflection: str


@dataclass(frozen=True, slots=True)
class SharedReading:
    """How likely the readings that two words share are, in 0 … 1."""

    word: float
    """Share of the readings of the word."""
    synonym: float
    """Share of the readings of the synonym."""


def shared_readings(folder: Path, words: Collection[str]) -> dict[tuple[str, str], SharedReading]:
    """The ordered pairs of different words that share a reading.  `folder`: a WordNet database."""
    shares: dict[str, defaultdict[Reading, float]] = {}
    synsets = {part: read_synsets(folder, part) for part in INFLECTIONS}
    readers: defaultdict[Reading, list[str]] = defaultdict(list)
    for form, counts in _reading_counts(folder, frozenset(words)).items():
        if form in FUNCTION_WORDS or len(form) < 2:
            continue
        total = sum(counts.values())
        shares[form] = defaultdict(float)
        for (reading, lemma), count in counts.items():
            shares[form][reading] += count / total
            # A lemma that the synset has in capitals only is a name.
            is_word = lemma in synsets[reading.part].get(reading.synset, ())
            if is_word and reading.inflection != PAST and form not in readers[reading]:
                readers[reading].append(form)
    pairs: dict[tuple[str, str], SharedReading] = {}
    for reading, forms in readers.items():
        for word, synonym in ((a, b) for a in forms for b in forms if a != b):
            before = pairs.get((word, synonym), SharedReading(0.0, 0.0))
            pairs[word, synonym] = SharedReading(
                before.word + shares[word][reading], before.synonym + shares[synonym][reading]
            )
    return pairs


def likely_synonyms(
    pairs: Mapping[tuple[str, str], SharedReading], frequency: Mapping[str, int], *, share: float, texts: int
) -> dict[str, list[str]]:
    """Word -> synonyms in a reading that has at least this share for both, in at least `texts` texts.

    The likeliest synonym is the first.

    >>> pairs = {("film", "movie"): SharedReading(0.6, 1.0), ("movie", "film"): SharedReading(1.0, 0.6)}
    >>> likely_synonyms(pairs | {("film", "pic"): SharedReading(0.6, 0.2)}, {"film": 9, "movie": 3}, share=0.5, texts=3)
    {'film': ['movie'], 'movie': ['film']}
    """
    rows: dict[str, list[str]] = {}
    likely = [
        (shared.word * shared.synonym, word, synonym)
        for (word, synonym), shared in pairs.items()
        if min(shared.word, shared.synonym) >= share and frequency.get(synonym, 0) >= texts
    ]
    for _, word, synonym in sorted(likely, key=lambda entry: (-entry[0], *entry[1:])):
        rows.setdefault(word, []).append(synonym)
    return rows


def _reading_counts(folder: Path, words: frozenset[str]) -> dict[str, dict[tuple[Reading, str], float]]:
    """Form -> (reading, lemma) -> smoothed count."""
    tagged = _tagged_counts(folder)
    counts: defaultdict[str, dict[tuple[Reading, str], float]] = defaultdict(dict)
    for part in INFLECTIONS:
        irregular = exceptions(folder / f"{part}.exc")
        for lemma, senses in database_senses(folder, part).items():
            if not lemma.isalpha():
                continue
            for form, inflection in _forms(lemma, part, irregular.get(lemma, [])):
                for rank, synset in enumerate(senses if form in words else (), 1):
                    counts[form][Reading(part, synset, inflection), lemma] = tagged[lemma, part, rank] + 0.5 / rank
    return counts


def _tagged_counts(folder: Path) -> Counter[tuple[str, str, int]]:
    """(lemma, part of speech, rank of the sense) -> how often it was tagged."""
    file = folder / COUNTS
    if not file.is_file():
        raise UserError(f"{folder} has no {COUNTS}, which counts the senses: use a complete WordNet 3.0 database")
    counts: Counter[tuple[str, str, int]] = Counter()
    try:
        for line in read_text(file).splitlines():
            key, rank, number = line.split()
            lemma, _, sense = key.partition("%")
            counts[lemma, PARTS[sense[:1]], int(rank)] += int(number)
    except (ValueError, KeyError):
        raise UserError(f"{file} has the line {line!r:.60}; it needs a sense key, a rank and a count") from None
    return counts


def _forms(lemma: str, part: str, irregular: list[str]) -> Iterator[tuple[str, str]]:
    """The forms of a lemma and their inflections; the lemma itself has the inflection ""."""
    yield lemma, ""
    regular = regular_forms(lemma, part, irregular)
    if part == "noun":
        yield from ((form, "s") for form in irregular or regular)
    elif part == "adj":
        yield from zip(regular, ("er", "est"), strict=False)
    elif part == "verb":
        past = [form for form in irregular if not form.endswith("ing")]
        for form in {*irregular, *regular}:
            if form == regular[0]:
                yield form, "s"
            elif form.endswith("ing"):
                yield form, "ing"
            else:
                yield form, PAST if len(past) > 1 else "ed"
