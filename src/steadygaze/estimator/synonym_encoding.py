"""Synonym groups of a fit: from a file, a table or a mapping, checked against the training texts."""

from pathlib import Path

from steadygaze.core.errors import SynonymWarning, UserError
from steadygaze.data.class_frequencies import ClassFrequencies, SuspiciousPair, class_frequencies, suspicious_pairs
from steadygaze.data.synonym_grouping import Grouping, group_synonyms
from steadygaze.data.synonym_groups import Rule, SynonymGroups, read_group_file
from steadygaze.data.synonyms import check_table, read_synonyms
from steadygaze.estimator.inputs import Split
from steadygaze.estimator.train_config import GroupSource
from steadygaze.training.progress import Watcher

SHOWN = 5
"""Pairs in a message."""


def resolve_groups(source: GroupSource, rule: Rule, train: Split, watcher: Watcher) -> SynonymGroups | None:
    """The groups of a source.

    Groups of a table are built with the frequencies of the training texts, without suspicious pairs.  Given groups are
    used as they are, with a warning about suspicious pairs.
    """
    if source is None:
        return None
    repeated = train.labels if train.questions is None else train.labels * 2
    frequencies = class_frequencies(train.all_texts, repeated)
    grouping = read_groups(source, rule, frequencies)
    groups, total = grouping.groups, frequencies.total
    grouped = sum(number for word, number in total.items() if word in groups.representatives)
    if not grouped:
        raise UserError(
            "synonym_groups: no word of the training texts is in a group.  Check the language of the table, or train "
            "without it"
        )
    watcher.say(
        f"synonym groups: {len(groups.groups):,} groups of {len(groups.representatives):,} words; "
        f"{grouped / sum(total.values()):.0%} of the words in the training texts are in a group"
    )
    if grouping.suspicious:
        treatment = "merged in the given groups" if grouping.given else "not merged"
        watcher.warn(SynonymWarning(suspicious_sentence(grouping.suspicious, treatment)))
    return groups


def read_groups(source: GroupSource, rule: Rule, frequencies: ClassFrequencies | None) -> Grouping:
    """The groups of a file, table or mapping."""
    if isinstance(source, str | Path):
        source = read_group_file(Path(source)) or source
    if isinstance(source, SynonymGroups):
        table = {group[0]: list(group[1:]) for group in source.groups}
        suspicious = [] if frequencies is None else suspicious_pairs(table, frequencies)
        return Grouping(source, suspicious, given=True)
    words = () if frequencies is None else frequencies.counts.keys()
    table = read_synonyms(source, words=words) if isinstance(source, str | Path) else check_table(source)
    return group_synonyms(table, frequencies, rule)


def suspicious_sentence(pairs: list[SuspiciousPair], treatment: str) -> str:
    """A sentence about suspicious pairs; `treatment` says what happens to them."""
    names = ", ".join(f"{pair.word}/{pair.synonym}" for pair in pairs[:SHOWN])
    more = f" and {len(pairs) - SHOWN:,} more" if len(pairs) > SHOWN else ""
    return (
        f"{len(pairs):,} pairs of synonyms have significantly different class frequencies and are {treatment}: "
        f"{names}{more}.  They may be antonyms; steadygaze synonyms check lists them"
    )
