"""Corpus: named splits of examples with a fingerprint; generated, or published on disk or on the Hugging Face hub.

On disk a corpus is `<name>/<split>.parquet` in the folder --data-dir or $STEADYGAZE_DATA.  Rows keep their order.  Rows
without text or label are dropped and counted.  Code from the hub is never run: script datasets are read from the
parquet export of the hub.
"""

import inspect
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pyarrow import parquet
from pydantic import ValidationError, validate_call

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import sentence
from steadygaze.core.types import Example, Label
from steadygaze.core.untrusted_files import arrow_path, digest_json, foreign_error
from steadygaze.data.row_layouts import Layout
from steadygaze.data.tables import require


def omissions(dropped: Mapping[str, int]) -> str:
    """
    >>> omissions({"empty text": 2, "no label": 0, "no rationales": 1000})
    'empty text: 2 left out; no rationales: 1,000 left out'
    """
    return "; ".join(f"{reason}: {count:,} left out" for reason, count in dropped.items() if count)


@dataclass(frozen=True)
class Corpus:
    """Texts for training or evaluation."""

    name: str
    """Name of the corpus or of the file."""
    splits: dict[str, list[Example]]
    """"train", "validation", "test", if they exist; a file is all "train"."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Reason -> number of dropped items, over all splits."""
    source: str = "file"
    """Source: "generated", "disk", "hub" or "file"."""

    @property
    def omissions(self) -> str:
        """The dropped items, counted by reason; empty if there are none."""
        return omissions(self.dropped)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content: split names and, in order, every text, question, label and rationale.

        Sentences of a file are content too; the text determines those of other corpora.
        """
        content: list[Any] = []
        for name, examples in sorted(self.splits.items()):
            content.append([name, len(examples)])
            content += ((item.text, item.question, item.label, item.rationales) for item in examples)
            content += (item.graded for item in examples if item.graded is not None)
            if self.source == "file":
                content += (item.sentences for item in examples if item.sentences is not None)
        return digest_json(content)

    @property
    def label_names(self) -> list[Label]:
        """Every label that occurs, sorted."""
        labels = {example.label for split in self.splits.values() for example in split if example.label is not None}
        return sorted(labels, key=lambda label: (isinstance(label, str), label))

    @property
    def sizes(self) -> dict[str, int]:
        """Split -> number of examples."""
        return {name: len(examples) for name, examples in self.splits.items()}

    @property
    def training(self) -> list[Example]:
        """The split to train on."""
        if "train" not in self.splits:
            raise UserError(
                f"{self.name} has no split to train on, only {', '.join(self.splits)}: add a split named train"
            )
        return self.splits["train"]

    def choose(self, split: str | None = None) -> str:
        """The name of the split to evaluate on.

        Parameters
        ----------
        split : str, default=None
            A split; None: test, or the only split.

        Returns
        -------
        str
            A key of `splits`.
        """
        name = split or ("test" if "test" in self.splits or len(self.splits) > 1 else next(iter(self.splits)))
        if name not in self.splits:
            raise UserError(f"{self.name} has no split {name!r}, only {', '.join(self.splits)}: name one with --split")
        return name


@dataclass(frozen=True)
class GeneratedCorpus:
    """The options are keyword arguments of the function; the option `seed=` overrides the seed of the run."""

    about: str
    generate: Callable[..., dict[str, list[Example]]]

    def load(self, name: str, options: Mapping[str, Any], data_dir: Path | None, seed: int) -> Corpus:
        """Generate the corpus from the seed and the options."""
        parameters = inspect.signature(self.generate).parameters
        for option in options:
            if option not in parameters:
                raise unknown(f"option of {name}", option, parameters)
        try:
            splits = validate_call(self.generate)(**{"seed": seed, **options})
        except ValidationError as error:
            raise UserError(f"{name}: {sentence(error)}") from None
        option_text = ",".join(f"{key}={value}" for key, value in options.items())
        return Corpus(f"{name}:{option_text}" if option_text else name, splits, source="generated")


SAME_SPLITS = {"train": "train", "validation": "validation", "test": "test"}
EXPORT = "refs/convert/parquet"
"""The branch with the parquet export of the hub: one folder per configuration."""


@dataclass(frozen=True)
class HubSource:
    """A dataset on the hub."""

    id: str
    configuration: str | None = None
    splits: Mapping[str, str] = field(default_factory=lambda: SAME_SPLITS)
    """Split -> its name on the hub."""
    exported: bool = False
    """Read the parquet export of the hub, because the dataset is a script."""


def fetch(hub: HubSource, name: str) -> dict[str, dict[str, list[Any]]]:
    """Split -> column -> cells, for the splits that the hub has."""
    try:
        import datasets
    except ImportError:
        raise UserError(
            f"{name} is not in the data folder, and the hub needs an extra: pip install 'steadygaze[hub]'; "
            f"or put {name}/<split>.parquet into --data-dir or $STEADYGAZE_DATA."
        ) from None
    place = (
        {"data_dir": hub.configuration or "default", "revision": EXPORT}
        if hub.exported
        else {"name": hub.configuration}
    )
    try:
        dataset = datasets.load_dataset(hub.id, **place)
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise UserError(
            f"{name} is not in the data folder and could not be read from the hub ({hub.id}: {reason}); "
            f"put {name}/<split>.parquet into --data-dir or $STEADYGAZE_DATA."
        ) from None
    return {
        split: dataset[hub_split].with_format("arrow")[:].to_pydict()
        for split, hub_split in hub.splits.items()
        if hub_split in dataset
    }


@dataclass(frozen=True)
class PublishedCorpus:
    """One published corpus."""

    about: str
    disk: Layout
    hub: HubSource
    hub_layout: Layout | None = None
    """None: the layout on disk."""
    files: Mapping[str, str] = field(default_factory=lambda: SAME_SPLITS)
    """Split -> name of its file."""
    validation_from: Callable[[Sequence[Example]], int] | None = None
    """Start of a validation split in train, for corpora without one whose rows are not independent."""

    def load(self, name: str, options: Mapping[str, Any], data_dir: Path | None, seed: int) -> Corpus:
        """Load from the data folder, else from the hub; published corpora have no options and no seed."""
        if options:
            raise UserError(f"{name} takes no options; found {', '.join(options)}.")
        folder = _folder(name, data_dir)
        if folder is None:
            layout, tables, source = self.hub_layout or self.disk, fetch(self.hub, name), "hub"
        else:
            layout, tables, source = self.disk, self._read(folder), "disk"
        dropped: Counter[str] = Counter()
        splits = {}
        for split, table in tables.items():
            where = f"{name}, {split} split"
            require(layout.columns, list(table), where)
            splits[split] = layout.read(table, dropped, where)
        return Corpus(name, self._with_validation(splits), dict(dropped), source)

    def _with_validation(self, splits: dict[str, list[Example]]) -> dict[str, list[Example]]:
        if self.validation_from is None or "train" not in splits or "validation" in splits:
            return splits
        train = splits["train"]
        begin = self.validation_from(train)
        if begin == len(train):
            return splits
        return {"train": train[:begin], "validation": train[begin:]} | {s: splits[s] for s in splits if s != "train"}

    def _read(self, folder: Path) -> dict[str, dict[str, list[Any]]]:
        files = {split: folder / f"{stem}.parquet" for split, stem in self.files.items()}
        existing = {split: arrow_path(file) for split, file in files.items() if file.exists()}
        with foreign_error(f"{folder} cannot be read as parquet"):
            tables = {split: parquet.read_table(file).to_pydict() for split, file in existing.items()}
        if not tables:
            raise UserError(f"{folder} contains none of {', '.join(file.name for file in files.values())}.")
        return tables


def _folder(name: str, data_dir: Path | None) -> Path | None:
    """The folder of the corpus in the data folder, if there is one."""
    base = data_dir if data_dir is not None else os.environ.get("STEADYGAZE_DATA")
    if not base:
        return None
    if not Path(base).is_dir():
        raise UserError(f"there is no data folder {base}.")
    folder = Path(base) / name
    return folder if folder.is_dir() else None
