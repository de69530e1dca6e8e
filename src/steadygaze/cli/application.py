"""The command line's options, each said once; and those that every verb has.

A bar for what is being done now; where nobody sees a bar, a line now and then.

The application that verbs are added to, and what they share: where results go, and where words for people go.
"""

import gc
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

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

DATA = "A corpus name, a .csv, .tsv, .jsonl or .parquet file, or a folder of train, validation and test files."
FILE = "Read texts from a .csv, .tsv, .jsonl, .parquet or .txt file."
COLUMN = "Column of the text; twice for pairs: the text, then the question about it."
FOLDER = "Folder of published sets, <name>/<split>.parquet.  Default: $STEADYGAZE_DATA."

Data = Annotated[str, typer.Argument(metavar="DATA", help=DATA)]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder made by train.")]
Text = Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts, in quotes.")]
Pair = Annotated[
    tuple[str, str] | None,
    typer.Option("--pair", metavar="TEXT QUESTION", help="One pair: a text and a question, or premise and hypothesis."),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder to write; it appears whole or not at all.")]
File = Annotated[Path | None, typer.Option("--file", "-f", help=FILE)]
TextColumn = Annotated[list[str] | None, typer.Option("--text", metavar="COL", help=COLUMN)]
LabelColumn = Annotated[str, typer.Option("--label", metavar="COL", help="Column of the label.")]
LabelIfAny = Annotated[
    str | None, typer.Option("--label", metavar="COL", help="Column of the label.  Default: label, where there is one.")
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Overwrite an output that exists, unless it is an input or inside a model.")
]
RationalesColumn = Annotated[
    str | None, typer.Option("--rationales", metavar="COL", help="Column of human rationales.")
]
DropEmpty = Annotated[bool, typer.Option("--drop-empty", help="Leave out rows without text instead of stopping.")]


@dataclass(frozen=True)
class Common:
    """What every verb takes."""

    data_dir: Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", help=FOLDER)] = None
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")] = "auto"
    batch_size: Annotated[int | None, typer.Option("--batch-size", min=1, help="Texts at once.")] = None
    seed: Annotated[int, typer.Option("--seed", min=0, help="Whatever is drawn is drawn from it.")] = 0
    json: Annotated[bool, typer.Option("--json", help="Machine-readable result on standard output.")] = False
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but the result.")] = False


FOLDERS = ("out", "bundle", "teacher_cache")
OUTPUTS = ("html", "eraser", *FOLDERS)
"""Options that name an output; every other option and argument can name an input, but for those below."""
NO_INPUTS = ("given", "text", "label", "rationales")


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
    """The path of a file to write; a name with a final slash is one of a folder."""
    if text.endswith(("/", os.sep)):
        raise typer.BadParameter(f"{text} names a folder; name a file")
    return Path(text)


def _paths(value: Any, data_dir: Path | None) -> list[Path]:
    """Existing paths that an option may stand for: reviews.csv, biased=0.8:reviews.csv, synonyms=table.jsonl, sst2."""
    if isinstance(value, list | tuple):
        return [path for one in value for path in _paths(one, data_dir)]
    if not isinstance(value, str | Path):
        return []
    text = str(value)
    parts = [text, *(text[found.end() :] for found in re.finditer("[:=]", text[:LONGEST_PREFIX]))]
    base = data_dir or os.environ.get("STEADYGAZE_DATA")
    named = [os.path.join(base, part) for part in parts] if base else []
    return [Path(path) for part in (*parts, *named) if part and os.path.exists(path := os.path.expanduser(part))]


def common_options(verb: F) -> F:
    """Adds the fields of `Common` to a verb's options; the verb gets them as its keyword argument `common`."""
    hints = get_type_hints(Common, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(n, kind, default=getattr(Common, n), annotation=hint) for n, hint in hints.items()]
    own = [parameter for name, parameter in inspect.signature(verb).parameters.items() if name != "common"]

    def called(*args: Any, **values: Any) -> None:
        common = Common(**{name: values.pop(name) for name in hints})
        check_outputs(values, common.data_dir)
        verb(*args, **values, common=common)

    called.__name__, called.__doc__ = verb.__name__, verb.__doc__
    called.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]  # what typer reads
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *added)}
    return called  # type: ignore[return-value]


Watch = Callable[[str, int, int], None]
PAUSE = 30.0
"""Seconds between two lines of a log."""


@contextmanager
def progress_bar(say: "Console", each: bool = False) -> Iterator[Watch]:
    """`each`: a log has a line whenever something is done, however quickly."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bars = (
        SpinnerColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*bars, console=say, transient=True, disable=not say.is_terminal or say.quiet) as bar:
        task, last = bar.add_task("reading", total=None), {"done": -1.0, "at": monotonic()}

        def watch(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)
            due = done != last["done"] if each else monotonic() - last["at"] > PAUSE
            if bar.disable and due:
                print_line(say, f"{done:,} of {total:,} done; {what}")
                last.update(done=done, at=monotonic())

        yield watch


def print_line(say: "Console", said: str) -> None:
    """One line, however wide."""
    say.print(one_line(said), highlight=False, markup=False, soft_wrap=True)


T = TypeVar("T")
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=steadygaze.__doc__.split("\n")[0],
    epilog="Start with: [bold]steadygaze demo[/bold]",
)


def _version(asked: bool) -> None:
    if asked:
        print(f"steadygaze {steadygaze.__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def load_models(model: Path, common: Common) -> "TextClassifier":
    from steadygaze.estimator.loading import load_classifier as load

    clf = load(model, common.device)
    parse_settings()
    return clf


def parse_settings() -> None:
    """What is loaded stays: the collector need not look through it again after every few texts."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # what is made of a text holds no cycles


def stderr_console(common: Common) -> "Console":
    """For people: standard error, so that standard output holds the result alone."""
    from steadygaze.core.console import Console

    return Console(stderr=True, quiet=common.quiet)


def stdout_console() -> "Console":
    """For results that are drawn: standard output."""
    from steadygaze.core.console import Console

    return Console()


def show(message: object) -> None:
    """One line of a result."""
    print(one_line(message))


def as_json(value: Any) -> None:
    as_lines([json.dumps(value, ensure_ascii=False, indent=1).encode(errors="replace")])


def as_lines(lines: Iterable[bytes]) -> None:
    """JSON, in UTF-8 whatever the encoding of standard output."""
    sys.stdout.flush()  # what was printed before comes before
    for line in while_read(lines):
        sys.stdout.buffer.write(safe_json(line) + b"\n")
    sys.stdout.flush()


def while_read(items: Iterable[T]) -> Iterator[T]:
    """Items to print, until the reader of standard output has gone."""
    for item in items:
        if output_closed():
            return
        yield item
