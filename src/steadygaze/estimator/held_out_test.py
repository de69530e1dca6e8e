"""A test part for `steadygaze train`: texts held out before training, and the scores of the model on them.

The validation score can be optimistic, because it selects the epoch.  The test part selects nothing: training, the
vocabulary and the choice of the epoch do not read it.  `TestPartFile` writes it for later audits.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steadygaze.core.errors import UserError
from steadygaze.core.types import texts_of
from steadygaze.data.corpus import Corpus
from steadygaze.data.eraser import is_eraser
from steadygaze.data.splits import hold_out
from steadygaze.data.table_writers import check_columns, check_format, write_rows
from steadygaze.data.tables import column_types
from steadygaze.data.user_files import CHUNK, stream_chunks
from steadygaze.estimator.inputs import read_labels
from steadygaze.estimator.model_config import HeldOutScore
from steadygaze.estimator.model_folder import hash_texts
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.results.evaluation import macro_f1_row
from steadygaze.results.row import mean_row


def hold_out_test(corpus: Corpus, share: float) -> Corpus:
    """Move a stratified share of the training texts to the split `test`."""
    if "test" in corpus.splits:
        raise UserError(
            f"{corpus.name} already has a test split: remove --test-share, and measure the model with "
            f"steadygaze evaluate MODEL --data {corpus.name} --split test"
        )
    parts = {name: [corpus.training[row] for row in rows] for name, rows in _part_rows(corpus, share).items()}
    if not parts["test"]:
        count = len(corpus.training)
        raise UserError(f"{corpus.name} has too few texts for a test part ({count}): remove --test-share")
    return dataclasses.replace(corpus, splits={**corpus.splits, **parts})


def _part_rows(corpus: Corpus, share: float) -> dict[str, list[int]]:
    """Positions in the training split of the texts that stay there, and of the test part.

    Copies of a text are in one part, or the test part would have training texts.  The share is that of the distinct
    texts.
    """
    copies = defaultdict[int, list[int]](list)
    for position, digest in enumerate(hash_texts(texts_of(corpus.training), key="").tolist()):
        copies[digest].append(position)
    rows = list(copies.values())
    parts = hold_out(len(rows), [corpus.training[first].label for first, *_ in rows], share=share)
    train, test = (sorted(position for distinct in part for position in rows[distinct]) for part in parts)
    return {"train": train, "test": test}


@dataclass(frozen=True)
class TestPartFile:
    """A file of the test part: its rows in the user's file, with all columns."""

    __test__ = False  # not a test of pytest

    out: Path
    file: Path
    share: float
    text: Sequence[str]
    label: str
    drop_empty: bool
    spreadsheet_safe: bool = False

    def __post_init__(self) -> None:
        check_format(self.out)
        if not self.file.is_file() or (tuple(self.text) == ("text",) and is_eraser(self.file)):
            raise UserError(
                f"--test-out copies rows of one .csv, .tsv, .jsonl or .parquet file, and {self.file} is not such a "
                "file: remove --test-out"
            )
        check_columns(self.out, column_types(self.file, CHUNK))

    def write(self, corpus: Corpus) -> int:
        """Write the rows that `hold_out_test` moves from this corpus to the test split; return their number."""
        types, test = column_types(self.file, CHUNK), set(_part_rows(corpus, self.share)["test"])
        chunks = stream_chunks(self.file, list(types), self.text, self.drop_empty, label=self.label)
        rows = (row for _, rows in chunks for row in rows)
        held_out = (row for position, row in enumerate(rows) if position in test)
        return write_rows(self.out, types, held_out, spreadsheet_safe=self.spreadsheet_safe)


def measure(clf: TextClassifier, inputs: Sequence[Any], labels: Sequence[Any]) -> dict[str, HeldOutScore]:
    """Accuracy and macro-F1 on these texts, with bootstrap intervals."""
    index = {label: i for i, label in enumerate(clf.stored_.description.classes)}
    codes = np.array([index[label] for label in read_labels(labels, minimum_classes=1)])
    predicted = clf.predict_proba(inputs).argmax(-1)
    accuracy = mean_row("accuracy", (predicted == codes).tolist(), proportion=True)
    rows = accuracy, macro_f1_row(codes, predicted, len(index))
    return {row.measure: HeldOutScore(value=row.value, interval=row.interval, n=row.n) for row in rows}
