"""From a synonym table to synonym groups: filter the pairs, leave out suspicious ones, and group the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steadygaze.data.class_frequencies import (
    ClassFrequencies,
    SuspiciousPair,
    suspicious_pairs,
    suspicious_pairs_in_groups,
)
from steadygaze.data.substitutable_pairs import substitutable_pairs
from steadygaze.data.synonym_groups import Rule, SynonymGroups, build_groups
from steadygaze.data.synonym_tables import clean_table


@dataclass(frozen=True)
class Grouping:
    """Groups, and what was left out of them."""

    groups: SynonymGroups
    suspicious: list[SuspiciousPair]
    """Pairs with significantly different class frequencies."""
    given: bool = False
    """Whether the groups were given, so that suspicious pairs are part of them."""


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
    suspicious = [] if frequencies is None else suspicious_pairs(pairs, frequencies)
    # A word whose synonyms are all left out keeps its empty row: it agrees with nobody.
    neighbors = {**dict.fromkeys(rows, ()), **pairs}
    if frequencies is None or keep_suspicious:
        return Grouping(build_groups(neighbors, None if frequencies is None else frequencies.total, rule), suspicious)
    while True:
        separate = [(pair.word, pair.synonym) for pair in suspicious]
        groups = build_groups(neighbors, frequencies.total, rule, separate)
        merged = suspicious_pairs_in_groups(groups.groups, frequencies)
        if not merged:
            return Grouping(groups, sorted(suspicious, key=lambda pair: pair.p_value))
        suspicious += merged
