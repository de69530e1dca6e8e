"""The typer application, the options that commands share, progress bars and printing."""

import gc
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer
from rich.markup import escape
from typer.core import TyperCommand

import steadygaze
from steadygaze.cli.output_streams import output_closed
from steadygaze.core.errors import one_line, safe_json
from steadygaze.core.output_paths import check_file, check_folder, check_separate

if TYPE_CHECKING:
    from steadygaze.core.console import Console
    from steadygaze.estimator.text_classifier import TextClassifier

LONGEST_PREFIX = 1000
"""Characters of an argument in which a path may begin."""
F = TypeVar("F", bound=Callable[..., None])

DATA_PANEL, MODEL_PANEL, TRAINING_PANEL = "Data", "Model", "Training"
OUTPUT_PANEL, RUNTIME_PANEL = "Output", "Runtime"
EXIT_CODES = "0 done; 2 wrong input; 70 internal error; 130 interrupted"
AUDIT_EXIT_CODES = "0 done; 1 a requirement is not met; 2 wrong input; 70 internal error; 130 interrupted"

data_option = partial(typer.Option, rich_help_panel=DATA_PANEL)
model_option = partial(typer.Option, rich_help_panel=MODEL_PANEL)
training_option = partial(typer.Option, rich_help_panel=TRAINING_PANEL)
output_option = partial(typer.Option, rich_help_panel=OUTPUT_PANEL)
runtime_option = partial(typer.Option, rich_help_panel=RUNTIME_PANEL)

DATA = "Corpus name, .csv, .tsv, .jsonl or .parquet file, or folder of train, validation and test files."
CLASSIFIER = "Model folder of train, or Hugging Face sequence classifier (folder or hub id)."

Data = Annotated[str, typer.Argument(metavar="DATA", help=DATA)]
DataOption = Annotated[str, data_option("--data", metavar="DATA", help=DATA)]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder of train.")]
AnyModel = Annotated[str, typer.Argument(metavar="MODEL", help=CLASSIFIER)]
Texts = Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts, in quotes.", show_default=False)]
Pair = Annotated[
    tuple[str, str] | None,
    data_option("--pair", metavar="TEXT QUESTION", help="One pair: text and question, or premise and hypothesis."),
]
Out = Annotated[Path, output_option("--out", "-o", help="Output folder, written atomically.")]
File = Annotated[Path | None, data_option("--file", "-f", help="Texts: .csv, .tsv, .jsonl, .parquet or .txt file.")]
TextColumn = Annotated[
    list[str] | None,
    data_option("--text", metavar="COL", help="Text column; repeat for pairs.", show_default="text"),
]
LabelColumn = Annotated[str, data_option("--label", metavar="COL", help="Label column.")]
LabelIfAny = Annotated[
    str | None,
    data_option("--label", metavar="COL", help="Label column.", show_default="label, if there is one"),
]
Replace = Annotated[
    bool, output_option("--replace", help="Overwrite an existing output, but never an input or a model.")
]
RationalesColumn = Annotated[str | None, data_option("--rationales", metavar="COL", help="Column of human rationales.")]
DropEmpty = Annotated[bool, data_option("--drop-empty", help="Skip rows without text instead of stopping.")]
Split = Annotated[str | None, data_option("--split", help="Split to read.", show_default="test, or the only one")]
Synonyms = Annotated[Path | None, data_option("--synonyms", metavar="FILE", help="Synonym table (.parquet, .jsonl).")]
Encoder = Annotated[str, model_option("--encoder", help="Encoder; see: list encoders.")]
Vectors = Annotated[
    str | None,
    model_option("--vectors", help="Word vectors: GloVe file (.txt, .gz) or glove-50d.", show_default="random"),
]
Epochs = Annotated[
    int | None,
    training_option("--epochs", min=1, metavar="N", help="Epochs.", show_default="8; more for small datasets"),
]


@dataclass(frozen=True)
class Common:
    """Options of every command."""

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
            show_default="32 to train, 256 to audit, else 128",
        ),
    ] = None
    seed: Annotated[int, runtime_option("--seed", min=0, metavar="N", help="Random seed.")] = 0
    json: Annotated[bool, output_option("--json", help="Print the result as JSON.")] = False
    verbose: Annotated[bool, output_option("--verbose", "-v", help="Print details.")] = False
    quiet: Annotated[bool, output_option("--quiet", "-q", help="Print only the result.")] = False


class HelpPanelCommand(TyperCommand):
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


FOLDERS = ("out", "bundle", "teacher_cache")
OUTPUTS = ("html", "eraser", *FOLDERS)
"""Options that name an output.  All others can name an input, except NO_INPUTS."""
NO_INPUTS = ("texts", "text", "label", "rationales")


def check_outputs(values: Mapping[str, Any], data_dir: Path | None) -> None:
    """Refuse outputs that must not be written, before the command does any work."""
    others = [value for name, value in values.items() if name not in (*OUTPUTS, *NO_INPUTS)]
    inputs = [path for value in others for path in _paths(value, data_dir)]
    outputs = {name: values[name] for name in OUTPUTS if values.get(name) is not None}
    for name, path in outputs.items():
        if name in FOLDERS:
            check_folder(path, inputs)
        else:
            check_file(path, inputs, values.get("replace", False))
    check_separate({f"--{name.replace('_', '-')}": path for name, path in outputs.items()})


def output_file(text: str) -> Path:
    """Parse the path of a file to write; refuse a name with a final slash."""
    if text.endswith(("/", os.sep)):
        raise typer.BadParameter(f"{text} names a folder; name a file")
    return Path(text)


def _paths(value: Any, data_dir: Path | None) -> list[Path]:
    """Existing paths in an option: reviews.csv, biased=0.8:reviews.csv, synonyms=table.jsonl, sst2."""
    if isinstance(value, list | tuple):
        return [path for item in value for path in _paths(item, data_dir)]
    if not isinstance(value, str | Path):
        return []
    text = str(value)
    parts = [text, *(text[match.end() :] for match in re.finditer("[:=]", text[:LONGEST_PREFIX]))]
    base = data_dir or os.environ.get("STEADYGAZE_DATA")
    in_base = [os.path.join(base, part) for part in parts] if base else []
    return [Path(path) for part in (*parts, *in_base) if part and os.path.exists(path := os.path.expanduser(part))]


def common_options(command: F) -> F:
    """Add the fields of `Common` to the options of a command, which receives them as the argument `common`."""
    hints = get_type_hints(Common, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    shared = [inspect.Parameter(n, kind, default=getattr(Common, n), annotation=hint) for n, hint in hints.items()]
    own = [parameter for name, parameter in inspect.signature(command).parameters.items() if name != "common"]

    def wrapper(*args: Any, **values: Any) -> None:
        common = Common(**{name: values.pop(name) for name in hints})
        check_outputs(values, common.data_dir)
        command(*args, **values, common=common)

    wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
    wrapper.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]  # typer reads it
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *shared)}
    return wrapper  # type: ignore[return-value]


Watch = Callable[[str, int, int], None]
PAUSE = 30.0
"""Seconds between two progress lines in a log."""


@contextmanager
def progress_bar(console: "Console", each: bool = False) -> Iterator[Watch]:
    """Show a progress bar, or print progress lines in a log.  `each`: one line per finished item."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bars = (
        SpinnerColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*bars, console=console, transient=True, disable=not console.is_terminal or console.quiet) as bar:
        task, last = bar.add_task("reading", total=None), {"done": -1.0, "at": monotonic()}

        def watch(activity: str, done: int, total: int) -> None:
            bar.update(task, description=activity, completed=done, total=total)
            due = done != last["done"] if each else monotonic() - last["at"] > PAUSE
            if bar.disable and due:
                print_line(console, f"{done:,} of {total:,} done; {activity}")
                last.update(done=done, at=monotonic())

        yield watch


def print_line(console: "Console", message: str) -> None:
    """Print one line without wrapping."""
    console.print(one_line(message), highlight=False, markup=False, soft_wrap=True)


T = TypeVar("T")
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=steadygaze.__doc__.split("\n")[0],
    epilog=f"Start with: [bold]steadygaze demo[/bold]\n\n[bold]Exit codes:[/bold] {AUDIT_EXIT_CODES} (1: only audit)",
)


def _version(requested: bool) -> None:
    if requested:
        print(f"steadygaze {steadygaze.__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def load_model(model: Path, common: Common) -> "TextClassifier":
    from steadygaze.estimator.loading import load_classifier as load

    clf = load(model, common.device)
    freeze_collector()
    return clf


def freeze_collector() -> None:
    """Exclude loaded objects from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # results of texts contain no reference cycles


def stderr_console(common: Common) -> "Console":
    """Return a console for messages: standard error."""
    from steadygaze.core.console import Console

    return Console(stderr=True, quiet=common.quiet)


def stdout_console() -> "Console":
    """Return a console for formatted results: standard output."""
    from steadygaze.core.console import Console

    return Console()


def show(message: object) -> None:
    """Print one line of a result."""
    print(one_line(message))


def print_json(value: Any) -> None:
    print_json_lines([json.dumps(value, ensure_ascii=False, indent=1).encode(errors="replace")])


def print_json_lines(lines: Iterable[bytes]) -> None:
    """Print JSON in UTF-8, independent of the encoding of standard output."""
    sys.stdout.flush()  # keep the order of earlier output
    for line in until_closed(lines):
        sys.stdout.buffer.write(safe_json(line) + b"\n")
    sys.stdout.flush()


def until_closed(items: Iterable[T]) -> Iterator[T]:
    """Yield items until the reader of standard output closes the pipe."""
    for item in items:
        if output_closed():
            return
        yield item
