"""The command `explain`."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from steadygaze.cli import app
from steadygaze.cli.application import (
    AnyModel,
    Common,
    ExplainerImports,
    command_help,
    common_options,
    data_option,
    load_adapter,
    model_option,
    model_options,
    output_file,
    output_option,
    print_health,
    print_omissions,
    print_result,
    stderr_console,
    stdout_console,
)
from steadygaze.cli.command_options import option_words
from steadygaze.cli.output_streams import print_json, print_json_lines, print_line, progress_bar, show, until_closed
from steadygaze.cli.predict_command import TextOptions, print_empty, text_options, write_table
from steadygaze.core.rounding import percent
from steadygaze.results.model_options import ModelOptions

if TYPE_CHECKING:
    from steadygaze.adapters.bulk import BulkTask
    from steadygaze.adapters.model_adapter import ModelAdapter
    from steadygaze.adapters.text_explainer import TextExplainer
    from steadygaze.data.text_checks import EmptyTexts
    from steadygaze.estimator.explain_request import ExplainRequest
    from steadygaze.results.explanation import Explanation
    from steadygaze.results.health import Health

Page = Annotated[
    Path | None, output_option("--html", metavar="PATH", parser=output_file, help="HTML page of highlighted texts.")
]
Eraser = Annotated[
    Path | None,
    output_option("--eraser", metavar="PATH", parser=output_file, help="Rationales as ERASER predictions (.jsonl)."),
]
Share = Annotated[float, output_option("--share", help="With --eraser: share of words in the hard rationale.")]
ExplainerName = Annotated[
    str | None,
    model_option(
        "--explainer", help="Explainer (see: list explainers) or folder of fit-explainer.", show_default="the model's"
    ),
]
ExplainerSettings = Annotated[
    list[str] | None,
    model_option("--set", metavar="KEY=VALUE", help="Setting of the explainer; repeatable."),
]
TrueLabels = Annotated[
    str | None,
    data_option("--label", metavar="COL", help="With --file: label column; wrong predictions are marked."),
]
Target = Annotated[str | None, model_option("--target", help="Label to explain.", show_default="the predicted label")]
Granularities = Annotated[
    Literal["word", "piece"], model_option("--granularity", help="Words, or subwords of a transformer.")
]
OutputKind = Annotated[
    Literal["probability", "logit"] | None,
    model_option("--output", help="Explain the probability or the logit of the class.  Default: as the explainer."),
]


EachSentence = Annotated[
    bool,
    output_option("--each-sentence", help="Predict each sentence alone: which give the label, and which change it."),
]


EMPTY = {**dict.fromkeys(("text", "label", "probabilities", "tokens", "spans", "weights")), "reason": "empty text"}
"""With --json: the row of an empty text."""


@app.command(
    **command_help(
        'explain model/ "A gorgeous, witty, seductive movie."',
        "explain model/ --file reviews.csv --label rating --html explanations.html",
        'explain model/ "A dull film." --explainer lime --set samples=500 --json',
    )
)
@common_options("data_dir", "verbose")
@model_options("attention")
@text_options
def explain(
    model: AnyModel,
    label: TrueLabels = None,
    explainer: ExplainerName = None,
    settings: ExplainerSettings = None,
    target: Target = None,
    granularity: Granularities = "word",
    output: OutputKind = None,
    imports: ExplainerImports = None,
    html: Page = None,
    eraser: Eraser = None,
    share: Share = 0.2,
    each_sentence: EachSentence = False,
    *,
    inputs: TextOptions,
    options: ModelOptions,
    common: Common,
) -> None:
    """Show the weight of each word in a prediction."""
    from steadygaze.core.settings import parse

    _check_outputs(inputs, label, {"--html": html, "--eraser": eraser, "--out": inputs.out_file})
    load, file = partial(load_adapter, model, options, common), inputs.file
    if each_sentence:
        others = {"--html": html, "--eraser": eraser, "--label": label, "--explainer": explainer, "--target": target}
        _print_sentences(load, inputs, {**others, "--output": output, "--set": settings}, common)
        return
    from steadygaze.adapters import streaming
    from steadygaze.estimator.explain_request import ExplainRequest

    rest: dict[str, Any] = {"settings": parse(settings or []), "seed": common.seed, "batch_size": common.batch}
    request = ExplainRequest(None, explainer, target, granularity, output=output, **rest)
    if inputs.out_file is not None:
        values = {**asdict(options), **asdict(request), "batch_size": None, **_explainer_digest(explainer)}
        write_table(inputs, partial(_explanation_task, load, request), values, common, _print_notes)
        return
    adapter, empty, dropped = load(), streaming.EmptyTexts(), Counter[str]()
    subject, request = _method_and_model(adapter, request)
    notes = _print_notes(subject, request.explainer, common)
    health = getattr(request.explainer, "health", subject.health)
    texts = inputs.read(subject, dropped, label, None if eraser is not None else empty)
    explanations = streaming.explain(
        subject, texts, request, lambda sentence: print_line(stderr_console(common), f"! {sentence}")
    )
    explanations, counts = _with_progress(explanations, common), Counter[str]()
    if label is not None and file is not None:
        labels = streaming.labels(adapter, target, file, inputs.columns, label, inputs.drop_empty)
        explanations = streaming.with_true_labels(adapter, explanations, labels, counts)
    if eraser is not None and file is not None:
        _write_eraser(eraser, _nonempty(explanations), (file, inputs.columns, inputs.drop_empty), share, health, common)
    elif html is not None:
        from steadygaze.report.page import write_explanations

        written = write_explanations(html, _nonempty(explanations), Path(model).name, notes, inputs.replace)
        _print_page(html, written, counts, health, common)
    else:
        _print_explanations(explanations, health, common)
    _print_counts(counts, common, empty)
    print_omissions(file, dropped, common)
    if not common.json:
        _print_next([model, *option_words(ModelOptions, options.changed)], inputs, label, adapter, common, empty)


def _print_sentences(
    load: "Callable[[], ModelAdapter]", inputs: TextOptions, others: dict[str, object], common: Common
) -> None:
    """`others`: options that --each-sentence excludes, with their values."""
    from steadygaze.adapters.predict_sentences import predictions_of_sentences
    from steadygaze.adapters.streaming import EmptyTexts
    from steadygaze.core.errors import UserError

    if excluded := [name for name, value in {**others, "--out": inputs.out_file}.items() if value is not None]:
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


def _nonempty(explanations: "Iterator[Explanation | None]") -> "Iterator[Explanation]":
    return (explanation for explanation in explanations if explanation is not None)


def _with_progress(explanations: "Iterator[Explanation | None]", common: Common) -> "Iterator[Explanation | None]":
    """Print the number of explained texts now and then, if standard error is a log."""
    console = stderr_console(common)
    if console.is_terminal:
        yield from explanations
        return
    with progress_bar(console) as on_progress:
        for done, explanation in enumerate(explanations, 1):
            on_progress("explained", done, done)
            yield explanation


def _check_outputs(inputs: TextOptions, label: str | None, outputs: dict[str, Path | None]) -> None:
    """Refuse outputs that exclude each other, a file that lacks a column, and an unknown format."""
    from steadygaze.core.errors import UserError

    named = [name for name, path in outputs.items() if path is not None]
    without_file = inputs.file is None or inputs.texts or inputs.pair
    if outputs["--eraser"] is not None and (without_file or len(named) > 1):
        raise UserError(
            "--eraser writes the rationales of the texts of a file: give --file, without texts, --html, --out"
        )
    if len(named) > 1:
        raise UserError(f"{named[0]} and {named[1]} exclude each other: give one of them")
    if label is not None and named not in ([], ["--html"]):
        raise UserError(
            f"--label does not go with {named[0]}: it marks wrong predictions in the terminal and in --html"
        )
    if label is not None and without_file:
        raise UserError("--label names a column of the file: give --file FILE, without other texts")
    inputs.check(label)


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


def _print_next(
    model: "Sequence[str]",
    inputs: TextOptions,
    label: str | None,
    adapter: "ModelAdapter",
    common: Common,
    empty: "EmptyTexts",
) -> None:
    """Print the commands to try next.  `model`: its name and the options that belong to it."""
    import shlex

    file, columns, classes = inputs.file, inputs.columns, [str(name) for name in adapter.classes]
    is_pair = inputs.pair is not None or bool(adapter.pair)
    names = (
        ["COLUMN", "SECOND_COLUMN"][: 1 + is_pair]
        if file is None
        else [name for name in columns if columns != ["text"]]
    )
    words = [word for name in names for word in ("--text", name)]
    known = "COLUMN" if file is None else label or _label_column(file, columns, classes)
    words += [] if known is None else ["--label", known]
    words += [] if inputs.sentences is None else ["--sentences", inputs.sentences]
    words += ["--drop-empty"] if inputs.drop_empty or (file is not None and empty.count) else []
    words = ["audit", *model, "--data", "FILE" if file is None else str(file), *words, "--html", "audit.html"]
    for command in (shlex.join(words), "list explainers"):
        print_line(stderr_console(common), f"next:  steadygaze {command}")


def _label_column(file: Path, texts: "Sequence[str]", classes: "Sequence[str]") -> str | None:
    """The only column whose first cells are classes of the model; None: `label`, or not known."""
    from steadygaze.core.errors import UserError
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
    path: Path,
    explanations: "Iterator[Explanation]",
    source: tuple[Path, Sequence[str], bool],
    share: float,
    health: "Health",
    common: Common,
) -> None:
    """`source`: the file of the texts, its columns and --drop-empty."""
    from steadygaze.results.eraser_predictions import names, write_predictions

    written = write_predictions(path, explanations, names(*source), share)
    if common.json:
        print_json({"health": health.to_list(), "eraser": str(path), "explained": written})
    else:
        show(f"{written:,} rationales written to {path}")


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
    if (accuracy := RationaleExplainer().reader_accuracy(adapter.model)) is None:
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
