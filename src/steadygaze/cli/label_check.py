"""Refuse labels that a model folder does not know, before the model is loaded.  Does not import torch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steadygaze.core.errors import UserError
from steadygaze.core.types import Label
from steadygaze.core.untrusted_files import read_json
from steadygaze.data.corpora import CORPORA, load_corpus
from steadygaze.data.text_checks import UnmatchedLabel, positions, unmatched_label

LARGEST = 20 << 20
"""Larger files are not read twice: their labels are checked once the model is loaded."""
OTHER_TASKS = ("regression", "multi_label_classification")


def check_label_values(
    model: str, classes: Sequence[Label] | None, data: str, text: Sequence[str], label: str | None, drop_empty: bool
) -> None:
    """Raise the error that the loaded model would raise; do nothing if its classes or the labels are not known."""
    try:
        file, known = Path(data).expanduser(), stored_classes(Path(model).expanduser())
    except RuntimeError:  # a home that does not exist: the loader reports it
        return
    names = known if known is None or classes is None else list(classes)
    if names is None or data.partition(":")[0] in CORPORA or not file.is_file() or file.stat().st_size > LARGEST:
        return
    corpus = load_corpus(file, text=tuple(text), label=label, drop_empty=drop_empty)
    found = [example.label for split in corpus.splits.values() for example in split if example.label is not None]
    codes = positions(found, names) if found else []
    if isinstance(codes, UnmatchedLabel):
        raise unmatched_label(codes.label, found, names, Path(model).name)


def stored_classes(folder: Path) -> list[Label] | None:
    """The classes in the config.json of a classifier; None: not a folder of a single-label classifier."""
    try:
        values: Any = read_json(folder / "config.json")
    except (OSError, ValueError, UserError):  # the loader reports it
        return None
    if not isinstance(values, Mapping):
        return None
    if isinstance(values.get("classes"), list) and isinstance(values.get("technique"), str):
        return list(values["classes"])
    names, kinds = values.get("id2label"), values.get("architectures") or [""]
    if not isinstance(names, Mapping) or len(names) < 2 or values.get("problem_type") in OTHER_TASKS:
        return None
    if not str(kinds[0]).endswith("ForSequenceClassification") or not all(str(key).isdecimal() for key in names):
        return None
    return [str(names[key]) for key in sorted(names, key=int)]
