"""From a synonym table to synonym groups: filter the pairs, leave out suspicious ones, and group the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steadygaze.data.class_frequencies import ClassFrequencies, SuspiciousPair, suspicious_pairs, without_pairs
from steadygaze.data.synonym_groups import Rule, SynonymGroups, build_groups
from steadygaze.data.synonym_tables import clean_table
from steadygaze.data.synonyms import substitutable_pairs


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

    `frequencies` of the training texts choose the representatives and the suspicious pairs, which are left out unless
    `keep_suspicious`.

    >>> from steadygaze.data.class_frequencies import class_frequencies
    >>> texts = ["an awesome film"] * 9 + ["an awful film"] * 9
    >>> grouping = group_synonyms({"awesome": ["awful", "amazing"]}, class_frequencies(texts, [1] * 9 + [0] * 9))
    >>> grouping.groups.groups, [(pair.word, pair.synonym) for pair in grouping.suspicious]
    ((('awesome', 'amazing'),), [('awesome', 'awful')])
    """
    rows = clean_table(table).rows
    pairs = substitutable_pairs(rows)
    suspicious = [] if frequencies is None else suspicious_pairs(pairs, frequencies)
    if not keep_suspicious:
        pairs = without_pairs(pairs, suspicious)
    # A word whose synonyms are all left out keeps its empty row: it agrees with nobody.
    groups = build_groups(
        {**dict.fromkeys(rows, ()), **pairs}, None if frequencies is None else frequencies.total, rule
    )
    return Grouping(groups, suspicious)
