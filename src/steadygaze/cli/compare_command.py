"""steadygaze compare: which technique holds up?"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadygaze.cli.application import (
    Common,
    Data,
    DropEmpty,
    LabelColumn,
    RationalesColumn,
    TextColumn,
    Watch,
    app,
    as_json,
    common_options,
    print_line,
    progress_bar,
    stderr_console,
)

if TYPE_CHECKING:
    from steadygaze.core.console import Console
    from steadygaze.results.comparison import Comparison

Techniques = Annotated[
    str, typer.Option(metavar="A,B,…", help="See: list techniques.  The others are held against the first.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder of the comparison.  The same command goes on with it.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of all techniques; again for more.")
]
SettingsFor = Annotated[
    list[str] | None,
    typer.Option("--set-for", metavar="TECHNIQUE:KEY=VALUE", help="A setting of one technique; again for more."),
]
SPLIT = "What is audited.  Default: test, or a fifth of the texts, kept out of training."
TABLE = "Table of synonyms for the audit (.parquet, .jsonl).  For training: --set synonyms=FILE."
WIDTH = 240
"""Of a table that goes into a file or a pipe."""


@app.command(
    epilog="Example: steadygaze compare reviews.csv --techniques vanilla,word-at,consensus --seeds 3 --out runs/c"
)
@common_options
def compare(
    data: Data,
    techniques: Techniques,
    out: Out,
    seeds: Annotated[int, typer.Option(min=1, help="Models trained of each technique: --seed, --seed + 1, …")] = 3,
    encoder: Annotated[str, typer.Option(help="See: list encoders.")] = "bilstm",
    vectors: Annotated[str | None, typer.Option(help="Word vectors: a GloVe file (.txt, .gz), or glove-50d.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Times the texts are read.")] = None,
    settings: Settings = None,
    settings_for: SettingsFor = None,
    explainer: Annotated[
        str | None, typer.Option(help="See: list explainers.  Default: what each model shows.")
    ] = None,
    synonyms: Annotated[Path | None, typer.Option(help=TABLE)] = None,
    split: Annotated[str | None, typer.Option(help=SPLIT)] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Texts audited, drawn at random.  Default: all.")] = None,
    text: TextColumn = None,
    label: LabelColumn = "label",
    rationales: RationalesColumn = None,
    drop_empty: DropEmpty = False,
    *,
    common: Common,
) -> None:
    """Train techniques with several seeds, audit every model, and say which differ beyond chance."""
    from steadygaze.core.settings import parse

    given = {
        "data": data,
        "techniques": tuple(name.strip() for name in techniques.split(",") if name.strip()),
        "seeds": seeds,
        "seed": common.seed,
        "encoder": encoder,
        "vectors": vectors,
        "epochs": epochs,
        "batch_size": common.batch_size,
        "settings": parse(settings or []),
        "settings_for": _dealt(settings_for or []),
        "explainer": explainer,
        "synonyms": None if synonyms is None else str(synonyms),
        "split": split,
        "limit": limit,
        "text": tuple(text or ("text",)),
        "label": label,
        "rationales": rationales,
        "drop_empty": drop_empty,
    }
    _show(_run(given, out, common), out, common)


def _run(given: dict[str, Any], out: Path, common: Common) -> "Comparison":
    from steadygaze.core.settings import build
    from steadygaze.study.compare import StudyRuntime as Machine
    from steadygaze.study.compare import compare
    from steadygaze.study.compare_config import CompareConfig as Order

    order, say = build(Order, given), stderr_console(common)
    try:
        with progress_bar(say, each=True) as bar, _warning(say, bar) as watch:
            machine = Machine(out, common.data_dir, common.device, watch, ("steadygaze", *sys.argv[1:]))
            return compare(order, machine)
    except KeyboardInterrupt:
        if (out / "order.json").is_file():
            print_line(say, f"interrupted; {out} keeps what is done: the same command goes on")
        raise


def _dealt(pairs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """word-at:epsilon=0.1 -> {"word-at": {"epsilon": 0.1}}"""
    from steadygaze.core.errors import UserError
    from steadygaze.core.settings import parse

    found: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        technique, colon, setting = pair.partition(":")
        if not colon or not technique.strip() or "=" not in setting:
            raise UserError(f"--set-for takes technique:key=value, found {pair!r}; for example: word-at:epsilon=0.1")
        found.setdefault(technique.strip(), {}).update(parse([setting]))
    return found


@contextmanager
def _warning(say: "Console", watch: Watch) -> Iterator[Watch]:
    """What a training warns of is a line that names the cell."""
    cell = ""

    def watched(what: str, done: int, total: int) -> None:
        nonlocal cell
        watch(what, done, total)
        cell = what.partition(":")[0]

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: print_line(say, f"{cell}: {message}".removeprefix(": "))
        yield watched


def _show(found: "Comparison", out: Path, common: Common) -> None:
    if common.json:
        as_json(found.to_dict())
        return
    from steadygaze.core.console import Console
    from steadygaze.report.terminal_tables import ComparisonTable as Shown

    shown = Console()
    Console(width=shown.width if shown.is_terminal else WIDTH).print(Shown(found))
    page = out / "comparison.html"
    print_line(stderr_console(common), f"the page: open {page} in a browser")
