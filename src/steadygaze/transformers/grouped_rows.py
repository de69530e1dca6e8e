"""Rows of a dataset with synonym groups: each text is rewritten to representatives and encoded again.

The ids that the rows already have must be those of their texts, before or after this step; otherwise the tokenizer, its
options or the column differ from those of the script.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils.data import IterableDataset

from steadygaze.core.errors import UserError
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.synonym_rewriting import SynonymRewriter

Columns = dict[str, list[Any]]
BATCH = 1024


class GroupedRows:
    """Rewrites the rows of datasets."""

    def __init__(self, groups: SynonymGroups, tokenizer: Any, column: str, max_length: int | None) -> None:
        self._rewrite = SynonymRewriter(groups)
        self._tokenizer, self._column, self._max_length = tokenizer, column, max_length

    def __call__(self, dataset: Any) -> Any:
        """The dataset with other ids; a dict of datasets by name is one of each."""
        if isinstance(dataset, Mapping):
            return {name: self(part) for name, part in dataset.items()}
        if dataset is None:
            return None
        if hasattr(dataset, "map") and hasattr(dataset, "column_names"):
            options = {"load_from_cache_file": False} if hasattr(dataset, "__len__") else {}  # a stream has no cache
            return dataset.map(self.encode, batched=True, batch_size=BATCH, **options)
        texts_of(dataset, self._column)
        rows = [dict(dataset[i]) for i in range(len(dataset))]
        return [row for start in range(0, len(rows), BATCH) for row in self._encode_rows(rows[start : start + BATCH])]

    def encode(self, columns: Columns) -> Columns:
        """New columns for a batch of rows."""
        texts = check_texts(columns.get(self._column), self._column)
        plain = self._tokenize(texts)
        grouped = self._tokenize([rewritten.text for rewritten in self._rewrite(texts)])
        if (present := columns.get("input_ids")) is not None:
            masks = columns.get("attention_mask")
            masks = [[1] * len(ids) for ids in present] if masks is None else masks
            for row, (ids, mask) in enumerate(zip(present, masks, strict=True)):
                real = [int(i) for i, is_real in zip(ids, mask, strict=True) if is_real]
                if real not in (plain["input_ids"][row], grouped["input_ids"][row]):
                    raise self._mismatch(texts[row], len(real), len(plain["input_ids"][row]))
        return grouped

    def _encode_rows(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        columns = {name: [row.get(name) for row in rows] for name in rows[0]}
        encoded = self.encode(
            {name: values for name, values in columns.items() if all(value is not None for value in values)}
        )
        return [{**row, **{name: values[i] for name, values in encoded.items()}} for i, row in enumerate(rows)]

    def _tokenize(self, texts: list[str]) -> Columns:
        return dict(self._tokenizer(texts, truncation=True, max_length=self._max_length))

    def _mismatch(self, text: str, length: int, expected: int) -> UserError:
        return UserError(
            f"the input_ids of the row with the {self._column} {text[:40]!r} ({length} tokens) are not those of the "
            f"tokenizer ({expected} tokens): pass the max_length of your script as max_length=, and the column that it "
            "tokenizes as text_column="
        )


def texts_of(dataset: Any, column: str) -> list[str]:
    """The texts of a dataset."""
    if isinstance(dataset, IterableDataset) and not hasattr(dataset, "column_names"):
        raise UserError("synonym_groups need a dataset with a length, or one of the datasets library")
    if hasattr(dataset, "column_names"):
        return check_texts(dataset[column] if column in (dataset.column_names or ()) else None, column)
    return check_texts([dict(dataset[i]).get(column) for i in range(len(dataset))], column)


def check_texts(values: Sequence[Any] | None, column: str) -> list[str]:
    texts = [] if values is None else list(values)
    if values is None or not all(isinstance(text, str) for text in texts):
        raise UserError(
            f"synonym_groups rewrite texts, and the rows have no column {column!r} of strings: keep the column beside "
            "input_ids, or pass its name as text_column="
        )
    return texts
