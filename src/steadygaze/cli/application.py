"""Options that commands share, and what they stand for: models, corpora, consoles."""

import gc
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from steadygaze.cli import EXIT_CODES, FAILED_CHECK
from steadygaze.cli.command_options import (
    ConfigCommand,
    F,
    check_outputs,
    config_option,
    config_options,
    option_group,
    with_options,
)
from steadygaze.cli.output_streams import print_line
from steadygaze.data.splits import DataConfig
from steadygaze.results.audit_config import AuditConfig
from steadygaze.results.model_options import OPTIONAL, ModelOptions

if TYPE_CHECKING:
    from steadygaze.adapters.model_adapter import ModelAdapter
    from steadygaze.core.errors import Console
    from steadygaze.core.types import Task
    from steadygaze.data.corpus import Corpus
    from steadygaze.estimator.text_classifier import TextClassifier
    from steadygaze.results.health import Health


DATA_PANEL, MODEL_PANEL, TRAINING_PANEL = "Data", "Model", "Training"
OUTPUT_PANEL, RUNTIME_PANEL = "Output", "Runtime"
AUDIT_EXIT_CODES = (
    f"0 done; {FAILED_CHECK}; 2 wrong input; 70 internal error; "
    "130 interrupted (SIGTERM 143, SIGHUP 129): --html has the finished measures"
)

data_option = partial(typer.Option, rich_help_panel=DATA_PANEL)
model_option = partial(typer.Option, rich_help_panel=MODEL_PANEL)
training_option = partial(typer.Option, rich_help_panel=TRAINING_PANEL)
output_option = partial(typer.Option, rich_help_panel=OUTPUT_PANEL)
runtime_option = partial(typer.Option, rich_help_panel=RUNTIME_PANEL)


DATA = "Corpus name, .csv, .tsv, .jsonl or .parquet file, or folder of train, validation and test files."
CLASSIFIER = (
    "Model folder of train, Hugging Face classifier (folder or hub id), or MODULE:NAME, a function or an object with "
    "predict_proba in your own code."
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
Encoder = Annotated[str, model_option("--encoder", help="Encoder; see: list encoders.")]
Vectors = Annotated[
    str | None,
    model_option("--vectors", help="Word vectors: GloVe file (.txt, .gz) or glove-50d.", show_default="random"),
]
SynonymGroupsFile = Annotated[
    Path | None,
    model_option(
        "--synonym-groups", metavar="FILE", help="Synonym groups (.json) or synonym table.", show_default="none"
    ),
]
Epochs = Annotated[
    int | None,
    training_option("--epochs", min=1, metavar="N", help="Epochs.", show_default="8; more for small datasets"),
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
class Common:
    """Options that most commands have; `common_options` names those that a command lacks."""

    data_dir: Annotated[
        Path | None,
        data_option(
            "--data-dir",
            metavar="DIR",
            help="Folder of published datasets, NAME/SPLIT.parquet.",
            show_default="$STEADYGAZE_DATA",
        ),
    ] = None
    device: Annotated[str, runtime_option("--device", help="auto, cpu, cuda or mps.")] = "auto"
    batch_size: Annotated[
        int | None,
        runtime_option(
            "--batch-size",
            min=1,
            metavar="N",
            help="Texts per batch.",
            show_default="32 to train (8 for small datasets), 256 to audit, else 128",
        ),
    ] = None
    config: Annotated[
        Path | None,
        runtime_option("--config", metavar="FILE", help="Options from a TOML file, by name."),
    ] = None
    save_config: Annotated[
        Path | None,
        runtime_option("--save-config", metavar="FILE", help="Write the options of this call to a TOML file."),
    ] = None
    seed: Annotated[int, runtime_option("--seed", min=0, metavar="N", help="Random seed.")] = 0
    json: Annotated[bool, output_option("--json", help="Print the result as JSON.")] = False
    verbose: Annotated[bool, output_option("--verbose", "-v", help="Print details.")] = False
    quiet: Annotated[bool, output_option("--quiet", "-q", help="Print only the result.")] = False

    @property
    def batch(self) -> int:
        """Texts per batch of predictions and explanations."""
        from steadygaze.models.inference import BATCH

        return self.batch_size or BATCH


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


def print_omissions(data: "str | Path | None", dropped: Mapping[str, int], common: Common) -> None:
    """Print how many items of the data were left out, by reason."""
    if data is not None and any(dropped.values()):
        from steadygaze.data.corpus import omissions  # imports pyarrow

        print_line(stderr_console(common), f"{Path(data).name}: {omissions(dropped)}")


class HelpPanelCommand(ConfigCommand):
    """A command that shows --help in the panel of the runtime options."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.rich_help_panel = RUNTIME_PANEL
        return option


def command_help(*examples: str, exit_codes: str = EXIT_CODES) -> dict[str, Any]:
    """Return the arguments of `app.command`: the class, and an epilog of examples and exit codes."""
    commands = [f"  steadygaze {example}" for example in examples]
    paragraphs = ["[bold]Examples:[/bold]", *map(escape, commands), f"[bold]Exit codes:[/bold] {exit_codes}"]
    return {"cls": HelpPanelCommand, "epilog": "\n\n".join(paragraphs)}


def output_file(text: str) -> Path:
    """Parse the path of a file to write; refuse a name with a final slash."""
    if text.endswith(("/", os.sep)):
        raise typer.BadParameter(f"{text} names a folder; name a file")
    return Path(text)


def common_options(*unused: str) -> Callable[[F], F]:
    """Add the fields of `Common` to the options of a command, which receives them as the argument `common`.

    `unused`: the fields that have no effect on the command; they are not among its options.
    """

    def collect(own: dict[str, Any], others: dict[str, Any]) -> Common:
        common = Common(**own)
        check_outputs(others, common.data_dir)
        return common

    added = option_group(Common)
    for name in unused:
        del added[name]
    return lambda command: with_options(command, "common", added, collect)


def corpus_options(command: F) -> F:
    """Add the fields of `CorpusOptions` to the options of a command, which receives them as the argument `corpus`."""
    return with_options(command, "corpus", option_group(CorpusOptions), lambda own, _: CorpusOptions(**own))


def model_options(*optional: str) -> Callable[[F], F]:
    """Add the options of `ModelOptions` to a command, which receives them as the argument `options`.

    `optional`: those of OPTIONAL that the command has.
    """
    return config_options(ModelOptions, "options", without={*OPTIONAL} - {*optional}, build=ModelOptions)


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
    print_health(adapter.health.of(model) if is_one_of_several else adapter.health)
    freeze_collector()
    return adapter


def print_health(health: "Health") -> None:
    """Print the known-bad states of a model, also with --quiet: they belong to every result."""
    from steadygaze.core.errors import Console

    for problem in health:
        print_line(Console(stderr=True), f"! {problem.sentence}")


def print_result(result: Any, known: "Health") -> None:
    """Print a result, first its health on standard error; `known`: problems that are already there."""
    from steadygaze.results.health import without_health

    print_health(result.health - known)
    stdout_console().print(without_health(result))


def freeze_collector() -> None:
    """Exclude loaded objects from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # results of texts contain no reference cycles


def stderr_console(common: Common) -> "Console":
    """Return a console for messages: standard error."""
    from steadygaze.core.errors import Console

    return Console(stderr=True, quiet=common.quiet)


def stdout_console() -> "Console":
    """Return a console for formatted results: standard output."""
    from steadygaze.core.errors import Console

    return Console()
