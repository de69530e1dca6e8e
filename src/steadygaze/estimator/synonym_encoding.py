"""Synonym groups of a fit: from a file, a table or a mapping, checked against the training texts."""

from pathlib import Path

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import read_text
from steadygaze.data.synonym_groups import Rule, SynonymGroups, build_groups
from steadygaze.data.synonyms import check_table, read_synonyms, substitutable_pairs
from steadygaze.data.word_tokenizer import document_frequency
from steadygaze.estimator.inputs import Split
from steadygaze.estimator.train_config import GroupSource
from steadygaze.training.progress import Watcher


def resolve_groups(source: GroupSource, rule: Rule, train: Split, watcher: Watcher) -> SynonymGroups | None:
    """The groups of a source, with the representatives chosen by their frequency in the training texts."""
    if source is None:
        return None
    frequency = document_frequency(train.all_texts)
    groups = _groups(source, rule, frequency)
    grouped = sum(number for word, number in frequency.items() if word in groups.representatives)
    if not grouped:
        raise UserError(
            "synonym_groups: no word of the training texts is in a group.  Check the language and the lower case of "
            "the table, or train without it"
        )
    share = grouped / sum(frequency.values())
    watcher.say(
        f"synonym groups: {len(groups.groups):,} groups of {len(groups.representatives):,} words; "
        f"{share:.0%} of the words in the training texts are in a group"
    )
    return groups


def _groups(source: GroupSource, rule: Rule, frequency: dict[str, int]) -> SynonymGroups:
    if isinstance(source, SynonymGroups):
        return source
    if isinstance(source, str | Path) and Path(source).suffix == ".json":
        return SynonymGroups.from_json(read_text(source), source)
    table = read_synonyms(source) if isinstance(source, str | Path) else check_table(source)
    return build_groups(substitutable_pairs(table), frequency, rule)
