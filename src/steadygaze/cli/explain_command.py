"""The command `explain`."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import (
    Common,
    command_help,
    common_options,
    data_option,
    file_option,
    model_option,
    model_options,
    option_words,
    options_of,
    output_option,
)
from steadygaze.cli.load_models import load_adapter
from steadygaze.cli.predict_command import TextOptions, print_empty, write_table
from steadygaze.cli.printing import (
    print_health,
    print_json,
    print_json_lines,
    print_line,
    print_omissions,
    print_result,
    show,
    stderr_console,
    stdout_console,
    until_closed,
)
from steadygaze.cli.progress_bars import progress_bar
from steadygaze.core.errors import UserError
from steadygaze.core.rounding import percent
from steadygaze.results.model_options import ModelOptions

if TYPE_CHECKING:
    from steadygaze.adapters.bulk import BulkTask
    from steadygaze.adapters.model_adapter import ModelAdapter
    from steadygaze.adapters.text_explainer import TextExplainer
    from steadygaze.core.errors import Console
    from steadygaze.data.text_checks import EmptyTexts
    from steadygaze.estimator.explain_request import ExplainRequest
    from steadygaze.results.explanation import Explanation
    from steadygaze.results.health import Health


EMPTY = {**dict.fromkeys(("text", "label", "probabilities", "tokens", "spans", "weights")), "reason": "empty text"}
"""With --json: the row of an empty text."""


@dataclass(frozen=True)
class ExplainOptions(TextOptions):
    """The texts, how they are explained, and the outputs."""

    label: Annotated[
        str | None,
        data_option("--label", metavar="COL", help="With --file: label column; wrong predictions are marked."),
    ] = None
    explainer: shared.FittedExplainer = None
    settings: Annotated[
        list[str] | None, model_option("--set", metavar="KEY=VALUE", help="Setting of the explainer; repeatable.")
    ] = None
    target: Annotated[
        str | None, model_option("--target", help="Label to explain.", show_default="the predicted label")
    ] = None
    granularity: Annotated[
        Literal["word", "piece", "segment"],
        model_option("--granularity", help="Words, subwords of a transformer, or parts of a prompt."),
    ] = "word"
    output: Annotated[
        Literal["probability", "logit"] | None,
        model_option("--output", help="Explain the probability or the logit of the class.  Default: as the explainer."),
    ] = None
    imports: shared.ExplainerImports = None
    html: Annotated[Path | None, file_option("--html", help="HTML page of highlighted texts.")] = None
    eraser: Annotated[Path | None, file_option("--eraser", help="Rationales as ERASER predictions (.jsonl).")] = None
    share: Annotated[float, output_option("--share", help="With --eraser: share of words in the hard rationale.")] = 0.2
    each_sentence: Annotated[
        bool,
        output_option(
            "--each-sentence", help="Predict each sentence alone: which give the label, and which change it."
        ),
    ] = False

    def named(self, *fields: str) -> list[str]:
        """Those of these options that have a value."""
        options = {"out_file": "--out", "settings": "--set"}
        return [options.get(name, f"--{name}") for name in fields if getattr(self, name) is not None]

    def check_explain(self) -> None:
        """Refuse outputs that exclude each other, a file that lacks a column, and an unknown format."""
        outputs, without_file = self.named("html", "eraser", "out_file"), self.file is None or self.texts or self.pair
        if self.eraser is not None and (without_file or len(outputs) > 1):
            raise UserError(
                "--eraser writes the rationales of the texts of a file: give --file, without texts, --html, --out"
            )
        if len(outputs) > 1:
            raise UserError(f"{outputs[0]} and {outputs[1]} exclude each other: give one of them")
        if self.label is not None and outputs not in ([], ["--html"]):
            raise UserError(
                f"--label does not go with {outputs[0]}: it marks wrong predictions in the terminal and in --html"
            )
        if self.label is not None and without_file:
            raise UserError("--label names a column of the file: give --file FILE, without other texts")
        self.check(self.label)


@app.command(
    **command_help(
        'explain model/ "A gorgeous, witty, seductive movie."',
        "explain model/ --file reviews.csv --label rating --html explanations.html",
        'explain model/ "A dull film." --explainer lime --set samples=500 --json',
    )
)
@common_options("data_dir", "verbose")
@model_options("attention")
@options_of("inputs", ExplainOptions)
def explain(model: shared.AnyModel, *, inputs: ExplainOptions, options: ModelOptions, common: Common) -> None:
    """Show the weight of each word in a prediction."""
    inputs.check_explain()
    load = partial(load_adapter, model, options, common)
    if inputs.each_sentence:
        _print_sentences(load, inputs, common)
        return
    from steadygaze.core.settings import parse
    from steadygaze.estimator.explain_request import ExplainRequest

    rest: dict[str, Any] = {"settings": parse(inputs.settings or []), "seed": common.seed, "batch_size": common.batch}
    request = ExplainRequest(None, inputs.explainer, inputs.target, inputs.granularity, output=inputs.output, **rest)
    if inputs.out_file is not None:
        values = {**asdict(options), **asdict(request), "batch_size": None, **_explainer_digest(inputs.explainer)}
        write_table(inputs, partial(_explanation_task, load, request), values, common, _print_notes)
        return
    _print_or_write(model, load(), request, inputs, options, common)


def _print_or_write(
    model: str,
    adapter: "ModelAdapter",
    request: "ExplainRequest",
    inputs: ExplainOptions,
    options: ModelOptions,
    common: Common,
) -> None:
    """Explain the texts, in the terminal, as a page or as ERASER predictions."""
    from steadygaze.adapters import streaming

    console, file, dropped, counts = stderr_console(common), inputs.file, Counter[str](), Counter[str]()
    empty = streaming.EmptyTexts()
    subject, request = _method_and_model(adapter, request)
    notes = _print_notes(subject, request.explainer, common)
    health = getattr(request.explainer, "health", subject.health)
    texts = inputs.read(subject, dropped, inputs.label, None if inputs.eraser is not None else empty)
    explanations = streaming.explain(subject, texts, request, lambda sentence: print_line(console, f"! {sentence}"))
    explanations = _with_progress(explanations, console)
    if inputs.label is not None and file is not None:
        labels = streaming.labels(adapter, inputs.target, file, inputs.columns, inputs.label, inputs.drop_empty)
        explanations = streaming.with_true_labels(adapter, explanations, labels, counts)
    nonempty = (explanation for explanation in explanations if explanation is not None)
    if inputs.eraser is not None:
        _write_eraser(nonempty, inputs, health, common)
    elif inputs.html is not None:
        from steadygaze.report.page import write_explanations

        written = write_explanations(inputs.html, nonempty, Path(model).name, notes, inputs.replace)
        _print_page(inputs.html, written, counts, health, common)
    else:
        _print_explanations(explanations, health, common)
    _print_counts(counts, common, empty)
    print_omissions(file, dropped, common)
    if not common.json:
        words = ["audit", model, *option_words(ModelOptions, options.changed), *_audited_data(inputs, adapter, empty)]
        for command in (shlex.join([*words, "--html", "audit.html"]), "list explainers"):
            print_line(console, f"next:  steadygaze {command}")


def _print_sentences(load: "Callable[[], ModelAdapter]", inputs: ExplainOptions, common: Common) -> None:
    from steadygaze.adapters.predict_sentences import predictions_of_sentences
    from steadygaze.adapters.streaming import EmptyTexts

    if excluded := inputs.named("html", "eraser", "label", "explainer", "target", "output", "settings", "out_file"):
        raise UserError(f"--each-sentence prints a table, or JSON with --json: leave out {excluded[0]}")
    adapter, dropped, empty = load(), Counter[str](), EmptyTexts()
    texts = [text for chunk in inputs.read(adapter, dropped, empty=empty) for text in chunk]
    predictions = predictions_of_sentences(adapter, texts, common.batch)
    if common.json:
        print_json(predictions.to_dict())
    else:
        print_result(predictions, adapter.health)
    print_empty(empty, common)
    print_omissions(inputs.file, dropped, common)


def _with_progress(explanations: "Iterator[Explanation | None]", console: "Console") -> "Iterator[Explanation | None]":
    """Print the number of explained texts now and then, if standard error is a log."""
    if console.is_terminal:
        yield from explanations
        return
    with progress_bar(console) as on_progress:
        for done, explanation in enumerate(explanations, 1):
            on_progress("explained", done, done)
            yield explanation


def _print_page(html: Path, written: dict[str, int], counts: "Counter[str]", health: "Health", common: Common) -> None:
    from steadygaze.results.formatting import count_text

    if common.json:
        print_json({"health": health.to_list(), "html": str(html), **written, **counts})
    else:
        show(f"{count_text(written['explained'], 'text')} explained, {written['drawn']:,} drawn in {html}")


def _print_counts(counts: "Counter[str]", common: Common, empty: "EmptyTexts") -> None:
    """Print the number of wrong predictions, of training texts among the texts, and of empty texts."""
    from steadygaze.results.evaluation import overlap_sentence

    if counts:
        print_line(stderr_console(common), f"{counts['wrong']:,} of {counts['labeled']:,} predictions are wrong")
    if sentence := overlap_sentence(counts["training_texts"], counts["labeled"]):
        print_line(stderr_console(common), f"! {sentence}")
    print_empty(empty, common)


def _audited_data(inputs: ExplainOptions, adapter: "ModelAdapter", empty: "EmptyTexts") -> list[str]:
    """The options of an audit that reads the same file, or names where there is none."""
    file, columns = inputs.file, inputs.columns
    if file is None:
        names = ["COLUMN", "SECOND_COLUMN"] if inputs.pair is not None or adapter.pair else ["COLUMN"]
        known: str | None = "COLUMN"
    else:
        names = [name for name in columns if columns != ["text"]]
        known = inputs.label or _label_column(file, columns, [str(name) for name in adapter.classes])
    words = ["--data", "FILE" if file is None else str(file)]
    words += [word for name in names for word in ("--text", name)]
    words += [] if known is None else ["--label", known]
    words += [] if inputs.sentences is None else ["--sentences", inputs.sentences]
    return words + (["--drop-empty"] if inputs.drop_empty or (file is not None and empty.count) else [])


def _label_column(file: Path, texts: "Sequence[str]", classes: "Sequence[str]") -> str | None:
    """The only column whose first cells are classes of the model; None: `label`, or not known."""
    from steadygaze.data.tables import column_types, json_rows, read_columns
    from steadygaze.data.user_files import CHUNK

    try:
        first = next(json_rows(file))[1] if file.suffix.lower() == ".jsonl" else column_types(file, CHUNK)
        names = [name for name in first if name not in texts]
        cells = {} if "label" in names or not names else next(read_columns(file, names, CHUNK)).columns
    except UserError:  # a folder, or a name of two columns
        return None
    values = {name: {str(cell) for cell in column if cell not in (None, "")} for name, column in cells.items()}
    labels = [name for name in values if values[name] and values[name] <= set(classes)]
    return labels[0] if len(labels) == 1 else None


def _print_explanations(explanations: "Iterator[Explanation | None]", health: "Health", common: Common) -> None:
    import json

    from steadygaze.results.health import without_health

    if common.json:
        empty = json.dumps({"health": health.to_list(), **EMPTY}).encode()
        print_json_lines(empty if explanation is None else explanation.to_json() for explanation in explanations)
        return
    console = stdout_console()
    for explanation in until_closed(explanations):
        shown = EMPTY["reason"] if explanation is None else without_health(explanation)  # standard error has it
        console.print(shown, end="\n\n")


def _write_eraser(
    explanations: "Iterator[Explanation]", inputs: ExplainOptions, health: "Health", common: Common
) -> None:
    from steadygaze.results.eraser_predictions import names, write_predictions

    assert inputs.eraser is not None  # check_explain
    assert inputs.file is not None
    source = names(inputs.file, inputs.columns, inputs.drop_empty)
    written = write_predictions(inputs.eraser, explanations, source, inputs.share)
    if common.json:
        print_json({"health": health.to_list(), "eraser": str(inputs.eraser), "explained": written})
    else:
        show(f"{written:,} rationales written to {inputs.eraser}")


def _method_and_model(adapter: "ModelAdapter", request: "ExplainRequest") -> "tuple[ModelAdapter, ExplainRequest]":
    """The model to explain, and the request with a fitted explainer instead of its folder."""
    from steadygaze.adapters.text_explainer import explainer_of

    method = explainer_of(request.explainer, adapter, request.target)
    if isinstance(method, str | None):
        return adapter, request
    target = None if adapter.outputs else request.target  # it explains one output
    return method.black_box, replace(request, explainer=method, target=target)  # it knows whether it reads pairs


def _explanation_task(load: "Callable[[], ModelAdapter]", request: "ExplainRequest") -> "BulkTask":
    from steadygaze.adapters.bulk import BulkTask

    return BulkTask(*_method_and_model(load(), request))


def _explainer_digest(explainer: str | None) -> dict[str, str | None]:
    """The digest of the files of a fitted explainer, or of an explainer of the user."""
    from steadygaze.core.untrusted_files import digest_file, digest_json
    from steadygaze.explainers import EXPLAINERS
    from steadygaze.study.code_version import explainer_source

    if explainer is None or explainer in EXPLAINERS:
        return {"fitted": None, **({} if explainer is None else explainer_source(explainer))}
    files = [path for path in sorted(Path(explainer).rglob("*")) if path.is_file()]
    return {"fitted": digest_json([[path.name, digest_file(path)] for path in files])}


def _print_notes(adapter: "ModelAdapter", method: "str | TextExplainer | None", common: Common) -> list[str]:
    """Print notes about how reliable the explanations are; return them."""
    from steadygaze.core.errors import printable
    from steadygaze.results.leakage_warnings import read_sentence

    notes = _rationalizer_warnings(adapter, method) if isinstance(method, str | None) else method.warnings
    print_health(getattr(method, "health", adapter.health) - adapter.health)
    for note in notes:
        print_line(stderr_console(common), f"! {note}")
    leakage = reader_note(adapter, method) if isinstance(method, str | None) else read_sentence(method.rows)
    if leakage:
        print_line(stderr_console(common), printable(leakage))
    return [*notes, *([leakage] if leakage else [])]


def reader_note(adapter: "ModelAdapter", explainer: str | None) -> str:
    """One line about the independent reader of a rationalizer; empty if it has none or another explainer is used."""
    from steadygaze.explainers.rationale import RationaleExplainer

    if not _shows_rationale(adapter, explainer):
        return ""
    if (accuracy := RationaleExplainer().reader_facts(adapter.model).accuracy) is None:
        return ""
    share = percent(accuracy)
    return f"An independent reader recovers the label from the selected words in {share} of the validation texts."


def _shows_rationale(adapter: "ModelAdapter", explainer: str | None) -> bool:
    from steadygaze.explainers.resolve_explainer import default_explainer

    return (explainer or default_explainer(adapter.model, bool(adapter.pair))) == "rationale"


def _rationalizer_warnings(adapter: "ModelAdapter", explainer: str | None) -> list[str]:
    """Warnings about the selections of a rationalizer, from its scores on validation texts."""
    from steadygaze.results.leakage_warnings import MIN_TEXTS, READER, by_measure, selection_warnings

    if adapter.saved is None or not _shows_rationale(adapter, explainer):
        return []
    rows = adapter.saved.description.reader_rows
    reader = by_measure(rows).get(READER)
    return [] if reader is None or reader.n < MIN_TEXTS else [item.sentence for item in selection_warnings(rows)]
