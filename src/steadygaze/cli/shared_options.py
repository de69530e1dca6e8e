"""Options that several commands have, each defined once."""

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steadygaze.cli.command_options import (
    Common,
    config_option,
    data_option,
    model_option,
    output_option,
    runtime_option,
    training_option,
)
from steadygaze.data.splits import DataConfig
from steadygaze.results.audit_config import AuditConfig
from steadygaze.study.study_options import StudyOptions, TuneOptions

if TYPE_CHECKING:
    from steadygaze.core.types import Task
    from steadygaze.data.corpus import Corpus


DATA = "Corpus name, .csv, .tsv, .jsonl or .parquet file, or folder of train, validation and test files."
CLASSIFIER = (
    "Model folder of train, Hugging Face classifier (folder or hub id), openai:MODEL@URL, or MODULE:NAME, a function "
    "or an object with predict_proba in your own code."
)

Data = Annotated[str, typer.Argument(metavar="DATA", help=DATA)]


def import_modules(names: list[str] | None) -> list[str] | None:
    """Import modules that the user typed; those of the current folder are found, as with `python -m`."""
    from steadygaze.core.errors import UserError

    if names and "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    modules = [name.removesuffix(".py") for name in names or ()]
    for name in modules:
        try:
            import_module(name)
        except (ImportError, TypeError, ValueError) as error:
            raise UserError(f"--import {name}: {error}; run the command in the folder of the module") from None
    return modules or None


Imports = Annotated[
    list[str] | None,
    training_option(
        "--import",
        metavar="MODULE",
        help="Import a Python module, which registers techniques, explainers or properties of your own; repeatable.",
        callback=import_modules,
    ),
]
ExplainerImports = Annotated[
    list[str] | None,
    model_option(
        "--import",
        metavar="MODULE",
        help="Import a Python module, which registers explainers of your own; repeatable.",
        callback=import_modules,
    ),
]
FittedExplainer = Annotated[
    str | None,
    model_option(
        "--explainer", help="Explainer (see: list explainers) or folder of fit-explainer.", show_default="the model's"
    ),
]
DataOption = Annotated[str, data_option("--data", metavar="DATA", help=DATA)]
AnyModel = Annotated[str, typer.Argument(metavar="MODEL", help=CLASSIFIER)]
Texts = Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts, in quotes.", show_default=False)]
Pair = Annotated[
    tuple[str, str] | None,
    data_option("--pair", metavar="TEXT QUESTION", help="One pair: text and question, or premise and hypothesis."),
]
Out = Annotated[Path, output_option("--out", "-o", help="Output folder, written atomically.")]
File = Annotated[Path | None, data_option("--file", "-f", help="Texts: .csv, .tsv, .jsonl, .parquet or .txt file.")]
TextColumn = Annotated[list[str] | None, config_option(DataConfig, "text")]
LabelColumn = Annotated[str, data_option("--label", metavar="COL", help="Label column.")]
LabelIfAny = Annotated[str | None, config_option(DataConfig, "label")]
Replace = Annotated[
    bool, output_option("--replace", help="Overwrite an existing output, but never an input or a model.")
]
SpreadsheetSafe = Annotated[
    bool, output_option("--spreadsheet-safe", help="Escape the formulas of a written .csv or .tsv file.")
]
RationalesColumn = Annotated[str | None, config_option(DataConfig, "rationales")]
Synonyms = Annotated[Path | None, config_option(AuditConfig, "synonyms")]
SentencesColumn = Annotated[str | None, config_option(DataConfig, "sentences")]
DropEmpty = Annotated[bool, config_option(DataConfig, "drop_empty")]
KeepLabels = Annotated[
    bool, data_option("--keep-labels", help="Train on labels that differ in case, spaces or one letter as they are.")
]
Split = Annotated[str | None, config_option(DataConfig, "split")]
Encoder = Annotated[str, config_option(StudyOptions, "encoder")]
Vectors = Annotated[str | None, config_option(StudyOptions, "vectors")]
SynonymGroupsFile = Annotated[Path | None, config_option(StudyOptions, "synonym_groups")]
Technique = Annotated[str, config_option(TuneOptions, "technique")]
Epochs = Annotated[int | None, config_option(StudyOptions, "epochs")]
SettingsOfAll = Annotated[
    list[str] | None, training_option("--set", metavar="KEY=VALUE", help="Setting of all techniques; repeatable.")
]
Engine = Annotated[
    str,
    runtime_option("--engine", help="local, ray (a cluster on this machine), ray://auto or ray://HOST:PORT."),
]
Workers = Annotated[
    int | None,
    runtime_option(
        "--workers", min=1, metavar="N", help="Models at a time.", show_default="as cores and memory allow; on a GPU 1"
    ),
]

Track = Annotated[
    str | None,
    output_option(
        "--track", metavar="SERVICE", help="Log epochs and scores: tensorboard[:DIR], mlflow[:URI], wandb[:PROJECT]."
    ),
]


@dataclass(frozen=True)
class CorpusOptions:
    """The corpus of a command and its columns."""

    data: DataOption
    text: TextColumn = None
    label: LabelIfAny = None
    drop_empty: DropEmpty = False

    @property
    def words(self) -> list[str]:
        """These options as words of a command."""
        texts = [word for name in self.text or [] for word in ("--text", name)]
        labels = ["--label", self.label] if self.label else []
        return ["--data", self.data, *texts, *labels, *(["--drop-empty"] if self.drop_empty else [])]

    def check(self, *, labeled: bool = False, sentences: str | None = None) -> None:
        """Refuse a missing file or column before a model is loaded."""
        from steadygaze.data.corpora import check_columns

        label = self.label or ("label" if labeled else None)
        check_columns(self.data, text=tuple(self.text or ("text",)), label=label, sentences=sentences)

    def load(self, common: Common, *, task: "Task" = "classification", sentences: str | None = None) -> "Corpus":
        from steadygaze.data.corpora import load_corpus

        return load_corpus(
            self.data,
            text=tuple(self.text or ("text",)),
            label=self.label,
            sentences=sentences,
            data_dir=common.data_dir,
            drop_empty=self.drop_empty,
            task=task,
        )
