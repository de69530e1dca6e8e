"""The model of a command: load it, and check the labels of the data before."""

import gc
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadygaze.cli.command_options import Common
from steadygaze.cli.printing import print_health, print_line, stderr_console
from steadygaze.core.errors import UserError
from steadygaze.core.types import Label
from steadygaze.results.model_options import ModelOptions

if TYPE_CHECKING:
    from steadygaze.adapters.model_adapter import ModelAdapter
    from steadygaze.estimator.text_classifier import TextClassifier


def load_model(model: Path, common: Common) -> "TextClassifier":
    from steadygaze.estimator.text_classifier import load_classifier as load

    clf = load(model, common.device)
    print_health(clf.health)
    freeze_collector()
    return clf


def load_adapter(
    model: str, options: ModelOptions, common: Common, *, is_one_of_several: bool = False
) -> "ModelAdapter":
    """Any model; MODULE:NAME imports the user's own code.  The health of one of several models names the model."""
    from steadygaze.adapters.as_adapter import load_named

    adapter = load_named(model, options, common.device, import_objects=True)
    if adapter.hosted is not None:
        adapter.hosted.budget.announce = partial(print_line, stderr_console(common))
    print_health(adapter.health.of(model) if is_one_of_several else adapter.health)
    freeze_collector()
    return adapter


def freeze_collector() -> None:
    """Exclude loaded objects from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # results of texts contain no reference cycles


LARGEST_LABELED = 20 << 20
"""Larger files are not read twice: their labels are checked once the model is loaded."""


OTHER_TASKS = ("regression", "multi_label_classification")


def check_label_values(
    model: str, options: ModelOptions, data: str, text: Sequence[str], label: str | None, drop_empty: bool
) -> None:
    """Raise the error that the loaded model would raise for an unknown label, before torch is imported.

    Do nothing if its classes or the labels are not known.
    """
    from steadygaze.data.corpora import CORPORA, load_corpus
    from steadygaze.data.text_checks import UnmatchedLabel, positions, unmatched_label

    if options.prompt is not None or options.target is not None:
        return
    try:
        file, known = Path(data).expanduser(), stored_classes(Path(model).expanduser())
    except RuntimeError:  # a home that does not exist: the loader reports it
        return
    names = known if known is None or not options.classes else list(options.classes)
    if (
        names is None
        or data.partition(":")[0] in CORPORA
        or not file.is_file()
        or file.stat().st_size > LARGEST_LABELED
    ):
        return
    corpus = load_corpus(file, text=tuple(text), label=label, drop_empty=drop_empty)
    labels = [example.label for split in corpus.splits.values() for example in split if example.label is not None]
    codes = positions(labels, names) if labels else []
    if isinstance(codes, UnmatchedLabel):
        raise unmatched_label(codes.label, labels, names, Path(model).name)


def stored_classes(folder: Path) -> list[Label] | None:
    """The classes in the config.json of a classifier; None: not a folder of a single-label classifier."""
    from steadygaze.core.untrusted_files import read_json

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
