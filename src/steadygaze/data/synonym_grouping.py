"""From a synonym table to synonym groups: filter the pairs, leave out suspicious ones, and group the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steadygaze.data.class_frequencies import (
    ClassFrequencies,
    SuspiciousPair,
    suspicious_pairs,
    suspicious_pairs_in_groups,
)
from steadygaze.data.lemmas import inflected_forms
from steadygaze.data.substitutable_pairs import substitutable_pairs
from steadygaze.data.synonym_groups import Rule, SynonymGroups, build_groups, fold_word
from steadygaze.data.synonym_tables import clean_table
from steadygaze.data.vocabulary_lexicon import representative_table
from steadygaze.data.word_tokenizer import NUMBER


@dataclass(frozen=True)
class Grouping:
    """Groups, and what was left out of them."""

    groups: SynonymGroups
    suspicious: list[SuspiciousPair]
    """Pairs with significantly different class frequencies."""
    is_fixed: bool = False
    """True if the groups were given, so that suspicious pairs are part of them."""


def group_synonyms(
    table: Mapping[str, Sequence[str]],
    frequencies: ClassFrequencies | None = None,
    rule: Rule = "star",
    *,
    keep_suspicious: bool = False,
) -> Grouping:
    """Group the words of a table.

    `frequencies` of the training texts choose the representatives and the suspicious pairs.  Unless `keep_suspicious`,
    the words of a suspicious pair are in different groups, also if they share a synonym.  Words that share a group
    without being synonyms of each other are tested too: groups are built again until none has a suspicious pair.

    >>> from steadygaze.data.class_frequencies import class_frequencies
    >>> texts = ["an awesome film"] * 9 + ["an awful film"] * 9
    >>> grouping = group_synonyms({"awesome": ["awful", "amazing"]}, class_frequencies(texts, [1] * 9 + [0] * 9))
    >>> grouping.groups.groups, [(pair.word, pair.synonym) for pair in grouping.suspicious]
    ((('awesome', 'amazing'),), [('awesome', 'awful')])
    """
    rows = clean_table(table).rows
    pairs = substitutable_pairs(rows)
    # A word whose synonyms are all left out keeps its empty row: it agrees with no word.
    return _separated({**dict.fromkeys(rows, ()), **pairs}, pairs, frequencies, rule, keep_suspicious)


def group_inflections(frequencies: ClassFrequencies, wordnet: Path, *, keep_suspicious: bool = False) -> Grouping:
    """Group the forms of each lemma of the training texts; `wordnet`: a database folder."""
    forms = inflected_forms(frequencies.total, wordnet)
    families = [(lemma, *row) for lemma, row in forms.items()]
    pairs = {word: [name for name in family if name != word] for family in families for word in family}
    return _separated(pairs, pairs, frequencies, "clique", keep_suspicious)


def group_inflected_synonyms(
    table: Mapping[str, Sequence[str]],
    inflections: Grouping,
    frequencies: ClassFrequencies,
    rule: Rule = "star",
    *,
    keep_suspicious: bool = False,
) -> Grouping:
    """Group synonyms after inflected forms: two words share a group if the representatives of their forms do."""
    first = inflections.groups
    rows = representative_table(clean_table(table).rows, first)
    synonyms = group_synonyms(rows, _merged(frequencies, first), rule, keep_suspicious=keep_suspicious)
    second = synonyms.groups
    words = dict.fromkeys([*second.representatives, *first.representatives])
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(second.representative(first.representative(word)), []).append(word)
    suspicious = sorted([*inflections.suspicious, *synonyms.suspicious], key=lambda pair: pair.p_value)
    return Grouping(
        SynonymGroups(tuple((name, *(w for w in row if w != name)) for name, row in groups.items())), suspicious
    )


def words_by_frequency(frequencies: ClassFrequencies) -> tuple[str, ...]:
    """The words of the training texts that typos are read as, the most frequent first."""
    total = frequencies.total
    words = (word for word in total if word != NUMBER and fold_word(word) == word)
    return tuple(sorted(words, key=lambda word: (-total[word], word)))


def _merged(frequencies: ClassFrequencies, groups: SynonymGroups) -> ClassFrequencies:
    """Numbers of texts with each representative: the sums over its group."""
    counts: dict[str, tuple[int, ...]] = {}
    for word, row in frequencies.counts.items():
        name = groups.representative(word)
        counts[name] = tuple(a + b for a, b in zip(counts.get(name, (0,) * len(row)), row, strict=True))
    return ClassFrequencies(frequencies.classes, counts)


def _separated(
    neighbors: Mapping[str, Sequence[str]],
    pairs: Mapping[str, Sequence[str]],
    frequencies: ClassFrequencies | None,
    rule: Rule,
    keep_suspicious: bool,
) -> Grouping:
    """Groups of neighbors, without suspicious pairs."""
    suspicious = [] if frequencies is None else suspicious_pairs(pairs, frequencies)
    if frequencies is None or keep_suspicious:
        return Grouping(build_groups(neighbors, None if frequencies is None else frequencies.total, rule), suspicious)
    while True:
        separate = [(pair.word, pair.synonym) for pair in suspicious]
        groups = build_groups(neighbors, frequencies.total, rule, separate)
        merged = suspicious_pairs_in_groups(groups.groups, frequencies)
        if not merged:
            return Grouping(groups, sorted(suspicious, key=lambda pair: pair.p_value))
        suspicious += merged
