"""Synonym groups of a fit: from a file, a table or a mapping, checked against the training texts."""

from pathlib import Path

from steadygaze.core.errors import SynonymWarning, UserError
from steadygaze.core.rounding import percent
from steadygaze.data.class_frequencies import (
    ClassFrequencies,
    SuspiciousPair,
    class_frequencies,
    suspicious_pairs_in_groups,
)
from steadygaze.data.synonym_grouping import Grouping, group_synonyms
from steadygaze.data.synonym_groups import Rule, SynonymGroups, read_group_file
from steadygaze.data.synonym_tables import check_table, read_synonyms
from steadygaze.data.unknown_words import with_unknown_words
from steadygaze.data.word_tokenizer import SPECIALS, WordTokenizer, tokenizer_of_words
from steadygaze.estimator.inputs import Split
from steadygaze.estimator.train_config import GroupSource, TrainConfig
from steadygaze.training.progress import Watcher

SHOWN = 5
"""Pairs in a message."""


def resolve_groups(config: TrainConfig, train: Split, validation: Split, watcher: Watcher) -> SynonymGroups | None:
    """The synonym groups of a fit.

    Groups of a table are built with the frequencies of the training texts, without suspicious pairs.  Given groups are
    used as they are, with a warning about suspicious pairs.
    """
    if config.synonym_groups is None:
        return None
    repeated = train.labels if train.questions is None else train.labels * 2
    frequencies = class_frequencies(train.all_texts, repeated)
    grouping = read_groups(config.synonym_groups, config.text.group_rule, frequencies)
    groups, total = grouping.groups, frequencies.total
    grouped = sum(number for word, number in total.items() if word in groups.representatives)
    if not grouped and not groups.spellings:
        raise UserError(
            "synonym_groups: no word of the training texts is in a group.  Check the language of the table, or train "
            "without it"
        )
    watcher.say(
        f"synonym groups: {len(groups.groups):,} groups of {len(groups.representatives):,} words; "
        f"{percent(grouped / sum(total.values()))} of the words in the training texts are in a group"
        + (f"; typos of {len(groups.spellings):,} words are recognized" if groups.spellings else "")
    )
    if grouping.suspicious:
        treatment = "merged in the given groups" if grouping.is_fixed else "not merged"
        watcher.warn(SynonymWarning(suspicious_sentence(grouping.suspicious, treatment)))
    return _learned(groups, train, validation, watcher) if config.text.learn_groups else groups


def _learned(groups: SynonymGroups, train: Split, validation: Split, watcher: Watcher) -> SynonymGroups:
    from steadygaze.data.learned_groups import learn_groups  # imports scikit-learn

    learned = learn_groups(groups, *((split.joined_texts, split.labels) for split in (train, validation)))
    watcher.say(
        f"synonym groups: {len(learned.rejected):,} of {learned.merges:,} words left out; macro-F1 of a logistic "
        f"regression on the validation texts {learned.score_without:.3f} without groups, {learned.score:.3f} with "
        "groups (optimistic: the same texts select the words)"
    )
    if not learned.groups.groups and not groups.spellings:
        raise UserError("synonym_groups: every group lowers macro-F1 on the validation texts: train without them")
    return learned.groups


def read_unknown_words(config: TrainConfig, tokenizer: WordTokenizer, watcher: Watcher) -> WordTokenizer:
    """The tokenizer that reads unknown words as their closest known synonym, if the configuration has a table."""
    source = None if _is_grouped(config.synonym_groups) else config.synonym_groups
    unknown = config.text.unknown or ("token" if source is None else "synonym")
    source = config.text.synonyms if source is None else source
    if unknown == "token":
        return tokenizer
    if source is None:
        raise UserError(
            "unknown=synonym needs a synonym table: pass one as synonym_groups or with the setting synonyms"
        )
    words = tokenizer.vocabulary[len(SPECIALS) :]
    table = read_synonyms(source, words=words) if isinstance(source, str | Path) else check_table(source)
    groups = with_unknown_words(tokenizer.synonym_groups, table, words)
    before = () if tokenizer.synonym_groups is None else tokenizer.synonym_groups.representatives
    number = len(groups.representatives.keys() - set(before) - set(words))
    if not number:
        return tokenizer
    watcher.say(f"unknown words: {number:,} words of the table are read as their closest synonym in the training texts")
    return tokenizer_of_words(words, max_length=tokenizer.max_length, synonym_groups=groups)


def _is_grouped(source: GroupSource) -> bool:
    """True if the source is groups, not a table."""
    return isinstance(source, SynonymGroups) or (
        isinstance(source, str | Path) and read_group_file(Path(source)) is not None
    )


def read_groups(source: GroupSource, rule: Rule, frequencies: ClassFrequencies | None) -> Grouping:
    """The groups of a file, table or mapping."""
    if isinstance(source, str | Path):
        source = read_group_file(Path(source)) or source
    if isinstance(source, SynonymGroups):
        suspicious = [] if frequencies is None else suspicious_pairs_in_groups(source.groups, frequencies)
        return Grouping(source, suspicious, is_fixed=True)
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
