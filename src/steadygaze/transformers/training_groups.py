"""The synonym groups of a StableTrainer: from a file, a table or a mapping, checked against the training texts."""

import warnings
from typing import Any

from steadygaze.core.errors import SynonymWarning, UserError
from steadygaze.data.class_frequencies import class_frequencies
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.estimator.synonym_encoding import read_groups, suspicious_sentence
from steadygaze.estimator.train_config import GroupSource as GroupSource
from steadygaze.transformers.grouped_rows import texts_of

LABELS = ("labels", "label", "label_ids")


def training_groups(source: GroupSource, dataset: Any, column: str) -> SynonymGroups:
    """The groups of the training texts; without a training dataset, the groups as they are."""
    if dataset is None:
        return read_groups(source, "star", None).groups
    texts = texts_of(dataset, column)
    frequencies = class_frequencies(texts, _labels(dataset, len(texts)))
    grouping = read_groups(source, "star", frequencies)
    groups = grouping.groups
    if groups.representatives.keys().isdisjoint(frequencies.total) and not groups.spellings:
        raise UserError(
            "synonym_groups: no word of the training texts is in a group.  Check the language of the table, or train "
            "without it"
        )
    if grouping.suspicious:
        treatment = "merged in the given groups" if grouping.is_fixed else "not merged"
        warnings.warn(SynonymWarning(suspicious_sentence(grouping.suspicious, treatment)), stacklevel=4)
    return groups


def _labels(dataset: Any, size: int) -> list[Any]:
    names = getattr(dataset, "column_names", None)
    row = {} if names is not None or not size else dict(dataset[0])
    for name in LABELS:
        if names is not None and name in names:
            return [int(value) for value in dataset[name]]
        if name in row:
            return [int(dataset[i][name]) for i in range(size)]
    raise UserError(f"StableTrainer needs a column of labels: {', '.join(LABELS)}")
