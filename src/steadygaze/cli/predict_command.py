"""The command `predict`, and the tables of results that `explain` writes too."""

import json
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import (
    Common,
    command_help,
    common_options,
    file_option,
    model_options,
    options_of,
    runtime_option,
)
from steadygaze.cli.load_models import load_adapter
from steadygaze.cli.printing import (
    print_json,
    print_json_lines,
    print_line,
    print_omissions,
    show,
    stderr_console,
    until_closed,
)
from steadygaze.cli.progress_bars import interruptible, progress_bar
from steadygaze.core.errors import UserError, one_line, printable
from steadygaze.results.model_options import ModelOptions

if TYPE_CHECKING:
    from steadygaze.adapters.bulk import BulkTask
    from steadygaze.adapters.model_adapter import ModelAdapter
    from steadygaze.data.text_checks import EmptyTexts

RELATIONS = ("entail", "contradict", "paraphrase", "duplicate")
"""A label that contains one of these names a relation between two texts."""


@dataclass(frozen=True)
class TextOptions:
    """The texts of predict and explain, how the model reads them, and the table of results."""

    texts: shared.Texts = None
    file: shared.File = None
    pair: shared.Pair = None
    text: shared.TextColumn = None
    sentences: shared.SentencesColumn = None
    drop_empty: shared.DropEmpty = False
    out_file: Annotated[
        Path | None,
        file_option(
            "--out",
            "-o",
            help="With --file: all its columns and the results (.csv, .tsv, .jsonl, .parquet); resumable.",
        ),
    ] = None
    spreadsheet_safe: shared.SpreadsheetSafe = False
    replace: shared.Replace = False
    engine: Annotated[
        str,
        runtime_option(
            "--engine", help="With --out: local, ray (workers on this machine), ray://auto or ray://HOST:PORT."
        ),
    ] = "local"
    workers: Annotated[
        int | None,
        runtime_option("--workers", min=1, metavar="N", help="Workers of Ray.", show_default="one per core or GPU"),
    ] = None

    @property
    def columns(self) -> list[str]:
        return self.text or ["text"]

    def read(
        self,
        adapter: "ModelAdapter",
        dropped: Counter[str],
        label: str | None = None,
        empty: "EmptyTexts | None" = None,
    ) -> Iterator[Any]:
        """The texts, in chunks; refuse single texts for a model of pairs.  `dropped` counts what --drop-empty omits.

        `empty` receives the empty texts, which are then no error.
        """
        from steadygaze.adapters import streaming

        check_pairs(adapter, self.texts or [])
        source = bool(adapter.pair), self.texts or [], self.file, self.columns, self.drop_empty, self.pair
        return streaming.read(*source, self.sentences, label, adapter.task, dropped, empty)

    def check(self, label: str | None = None) -> None:
        """Refuse a table without a file, and a missing file or column, before a model is loaded."""
        if self.out_file is not None:
            check_out(self.out_file, self.file, self.texts or self.pair)
        if self.spreadsheet_safe:
            from steadygaze.data.table_writers import check_spreadsheet

            check_spreadsheet(self.out_file, self.spreadsheet_safe)
        if self.file is not None:
            check_file(self.file, self.text, label, self.sentences)
        elif self.sentences is not None:
            raise UserError("--sentences names a column of a file: give --file FILE")


@app.command(
    **command_help(
        'predict model/ "A gorgeous, witty, seductive movie."',
        "predict model/ --file reviews.csv --text review --out predictions.csv",
        'predict model/ --pair "A man sleeps." "Is anyone awake?"',
    )
)
@common_options("data_dir", "seed", "verbose")
@model_options()
@options_of("inputs", TextOptions)
def predict(model: shared.AnyModel, *, inputs: TextOptions, options: ModelOptions, common: Common) -> None:
    """Predict the labels of texts."""
    inputs.check()
    load = partial(load_adapter, model, options, common)
    if inputs.out_file is not None:
        write_table(inputs, partial(_prediction_task, load, common.batch), asdict(options), common)
        return
    from steadygaze.adapters import streaming
    from steadygaze.data.text_checks import EmptyTexts

    adapter, console = load(), stderr_console(common)
    dropped, empty = Counter[str](), EmptyTexts()
    texts = inputs.read(adapter, dropped, empty=empty)
    records = streaming.predict(adapter, texts, common.batch, lambda warning: print_line(console, f"! {warning}."))
    if common.json:
        health = {"health": adapter.health.to_list()}
        lines = (json.dumps({**health, **record}, ensure_ascii=False) for record in records)
        print_json_lines(line.encode(errors="replace") for line in lines)
    else:
        for record in until_closed(records):
            print(f"{_prediction_text(record)}\t{printable(' '.join(record['text'].split()))}")
    print_empty(empty, common)
    print_omissions(inputs.file, dropped, common)


def print_empty(empty: "EmptyTexts", common: Common) -> None:
    """Name the texts without a prediction."""
    if empty.count:
        print_line(stderr_console(common), f"! {empty.sentence}")


def check_file(file: Path, text: Sequence[str] | None, label: str | None = None, sentences: str | None = None) -> None:
    """Refuse a missing file or column before the model is loaded."""
    from steadygaze.data.user_files import ColumnNames, check_files, input_files

    for path in input_files(file):
        check_files(path, ColumnNames(tuple(text or ("text",)), label, sentences=sentences))


def check_out(out: Path, file: Path | None, texts: "Sequence[str] | None") -> None:
    from steadygaze.core.errors import UserError
    from steadygaze.data.table_writers import check_format

    if file is None or texts:
        raise UserError("--out writes the results of the texts of a file: give --file FILE, without other texts")
    check_format(out)


def _prediction_task(load: "Callable[[], ModelAdapter]", batch_size: int) -> "BulkTask":
    from steadygaze.adapters.bulk import BulkTask

    return BulkTask(load(), None, batch_size)


def write_table(
    inputs: TextOptions,
    make_task: "Callable[[], BulkTask]",
    settings: dict[str, Any],
    common: Common,
    print_notes: "Callable[[ModelAdapter, Any, Common], object] | None" = None,
) -> None:
    """Write the results beside the columns of the file.  `settings`: what they depend on beside the model."""
    from steadygaze.adapters.bulk import Source, bulk_run
    from steadygaze.data.text_checks import EmptyTexts
    from steadygaze.study.code_version import code_version

    out, file = inputs.out_file, inputs.file
    assert out is not None  # TextOptions.check
    assert file is not None
    console, task = stderr_console(common), make_task()
    source = Source(file, inputs.columns, inputs.drop_empty, inputs.sentences, empty=EmptyTexts())
    if print_notes is not None and task.request is not None:
        print_notes(task.adapter, task.request.explainer, common)
    model = {
        "task": "predict" if task.request is None else "explain",
        "model": task.adapter.fingerprint or task.adapter.name,
        "code": code_version(),
    }
    kept = f"{out.name}.parts keeps the finished rows: run the same command again to continue"
    with (
        warnings.catch_warnings(),
        interruptible(console, lambda: kept),
        progress_bar(console) as on_progress,
        bulk_run(out, source, task, {**settings, **model}, on_progress, inputs.spreadsheet_safe) as run,
    ):
        warnings.showwarning = lambda message, *_: print_line(console, f"! {message}.")
        if inputs.engine == "local":
            run.write(task)
        else:
            from steadygaze.cli.ray_bulk import write_with_ray

            write_with_ray(run, make_task, inputs.engine, inputs.workers, gpu=common.device in ("auto", "cuda"))
        written = run.parts.merge(task.health)
    if source.empty is not None:
        print_empty(source.empty, common)
    explained = task.request is not None
    if common.json:
        print_json(
            {"health": task.health.to_list(), "out": str(out), "explained" if explained else "predicted": written}
        )
    else:
        show(f"{written:,} {'explanations' if explained else 'predictions'} written to {out}")


def _prediction_text(record: dict[str, Any]) -> str:
    """Label and probability, labels and probabilities, or values."""
    from steadygaze.results.explanation import LABEL

    if "values" in record:
        values = {name: math.nan if value is None else value for name, value in record["values"].items()}
        return "\t".join(f"{one_line(name, LABEL)}\t{value:.4g}" for name, value in values.items())
    if None in record["probabilities"].values():
        return "no prediction\tnan"
    names = record["labels"] if "labels" in record else [record["label"]]
    pairs = [f"{one_line(name, LABEL)}\t{record['probabilities'][str(name)]:.3f}" for name in names]
    return "\t".join(pairs) or "no label"


def check_pairs(adapter: "ModelAdapter", texts: "Sequence[str]") -> None:
    """Refuse single texts for a model whose labels name a relation between two texts."""
    from steadygaze.core.errors import UserError

    relations = [str(label) for label in adapter.classes if any(word in str(label).lower() for word in RELATIONS)]
    if adapter.pair is None and texts and relations:
        raise UserError(
            f"{adapter.name} predicts {relations[0]!r}, a relation between two texts: give --pair TEXT QUESTION, or "
            "--file FILE --text COLUMN --text COLUMN"
        )
