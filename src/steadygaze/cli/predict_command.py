"""The commands `predict` and `explain`."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from steadygaze.cli import app
from steadygaze.cli.application import (
    AnyModel,
    ClassNames,
    Common,
    DropEmpty,
    File,
    LabelWords,
    Pair,
    PromptTemplate,
    Replace,
    TextColumn,
    Texts,
    command_help,
    common_options,
    data_option,
    load_adapter,
    model_option,
    output_file,
    output_option,
    stderr_console,
    stdout_console,
)
from steadygaze.cli.output_streams import print_json, print_json_lines, print_line, show, until_closed
from steadygaze.core.errors import one_line, printable

if TYPE_CHECKING:
    from steadygaze.adapters.model_adapter import ModelAdapter
    from steadygaze.adapters.text_explainer import TextExplainer
    from steadygaze.results.explanation import Explanation

RELATIONS = ("entail", "contradict", "paraphrase", "duplicate")
"""A label that contains one of these names a relation between two texts."""

Page = Annotated[
    Path | None, output_option("--html", metavar="PATH", parser=output_file, help="HTML page of highlighted texts.")
]
Eraser = Annotated[
    Path | None,
    output_option("--eraser", metavar="PATH", parser=output_file, help="Rationales as ERASER predictions (.jsonl)."),
]
Predictions = Annotated[
    Path | None,
    output_option(
        "--out",
        "-o",
        metavar="PATH",
        parser=output_file,
        help="With --file: all its columns and the predictions (.csv, .tsv, .jsonl, .parquet).",
    ),
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
    Literal["probability", "logit"], model_option("--output", help="Explain the probability or the logit of the class.")
]


@app.command(
    **command_help(
        'predict model/ "A gorgeous, witty, seductive movie."',
        "predict model/ --file reviews.csv --text review --out predictions.csv",
        'predict model/ --pair "A man sleeps." "Is anyone awake?"',
    )
)
@common_options
def predict(
    model: AnyModel,
    texts: Texts = None,
    file: File = None,
    pair: Pair = None,
    text: TextColumn = None,
    drop_empty: DropEmpty = False,
    classes: ClassNames = None,
    prompt: PromptTemplate = None,
    label_words: LabelWords = None,
    out_file: Predictions = None,
    replace: Replace = False,
    *,
    common: Common,
) -> None:
    """Predict the labels of texts."""
    if file is not None:
        _check_file(file, text)
    from steadygaze.cli import streaming

    if out_file is not None:
        _check_out(out_file, file, texts)
    adapter = load_adapter(model, common, classes, prompt, label_words)
    check_pairs(adapter, texts or [])
    columns = text or ["text"]
    chunks = streaming.read(bool(adapter.pair), texts or [], file, columns, drop_empty, pair)
    console = stderr_console(common)
    records = streaming.predict(
        adapter, chunks, common.batch_size, lambda warning: print_line(console, f"! {warning}.")
    )
    if out_file is not None and file is not None:
        written = streaming.write_predictions(out_file, adapter, records, file, columns, drop_empty)
        if common.json:
            print_json({"out": str(out_file), "predicted": written})
        else:
            show(f"{written:,} predictions written to {out_file}")
    elif common.json:
        print_json_lines(json.dumps(record, ensure_ascii=False).encode(errors="replace") for record in records)
    else:
        for record in until_closed(records):
            print(f"{_prediction_text(record)}\t{printable(' '.join(record['text'].split()))}")


def _check_file(file: Path, text: Sequence[str] | None, label: str | None = None) -> None:
    """Refuse a missing file or column before the model is loaded."""
    from steadygaze.data.user_files import ColumnNames, check_files

    check_files(file, ColumnNames(tuple(text or ("text",)), label))


def _check_out(out: Path, file: Path | None, texts: Sequence[str] | None) -> None:
    from steadygaze.core.errors import UserError
    from steadygaze.data.table_writers import check_format

    if file is None or texts:
        raise UserError("--out writes the predictions of the texts of a file: give --file FILE, without other texts")
    check_format(out)


def _prediction_text(record: dict[str, Any]) -> str:
    """Label and probability, labels and probabilities, or values."""
    from steadygaze.results.explanation import LABEL

    if "values" in record:
        return "\t".join(f"{one_line(name, LABEL)}\t{value:.4g}" for name, value in record["values"].items())
    names = record["labels"] if "labels" in record else [record["label"]]
    pairs = [f"{one_line(name, LABEL)}\t{record['probabilities'][str(name)]:.3f}" for name in names]
    return "\t".join(pairs) or "no label"


@app.command(
    **command_help(
        'explain model/ "A gorgeous, witty, seductive movie."',
        "explain model/ --file reviews.csv --label rating --html explanations.html",
        'explain model/ "A dull film." --explainer lime --set samples=500 --json',
    )
)
@common_options
def explain(
    model: AnyModel,
    texts: Texts = None,
    file: File = None,
    pair: Pair = None,
    text: TextColumn = None,
    label: TrueLabels = None,
    drop_empty: DropEmpty = False,
    explainer: ExplainerName = None,
    settings: ExplainerSettings = None,
    target: Target = None,
    granularity: Granularities = "word",
    output: OutputKind = "probability",
    classes: ClassNames = None,
    prompt: PromptTemplate = None,
    label_words: LabelWords = None,
    html: Page = None,
    eraser: Eraser = None,
    share: Share = 0.2,
    replace: Replace = False,
    *,
    common: Common,
) -> None:
    """Show the weight of each word in a prediction."""
    from steadygaze.core.errors import UserError
    from steadygaze.core.settings import parse

    if eraser is not None and (file is None or texts or html is not None):
        raise UserError("--eraser writes the rationales of the texts of a file: give --file alone, and no --html")
    if label is not None and (file is None or texts or eraser is not None):
        raise UserError("--label names a column of the file: give --file FILE, without other texts or --eraser")
    if file is not None:
        _check_file(file, text, label)
    from steadygaze.cli import streaming

    options = {"target": target, "granularity": granularity, "output": output, "settings": parse(settings or [])}
    adapter, columns = load_adapter(model, common, classes, prompt, label_words), text or ["text"]
    explain_chunks, notes = _explained(adapter, explainer, options, common)
    explanations = explain_chunks(texts or [], file, columns, drop_empty, pair)
    counts: Counter[str] = Counter()
    if label is not None and file is not None:
        true_labels = streaming.labels(adapter, target, file, columns, label, drop_empty)
        explanations = streaming.with_true_labels(adapter, explanations, true_labels, counts)
    if eraser is not None and file is not None:
        _write_eraser(eraser, explanations, (file, columns, drop_empty), share, common)
    elif html is not None:
        from steadygaze.results.formatting import count_text

        written = streaming.write_explanations(html, explanations, Path(model), notes, replace)
        if common.json:
            print_json({"html": str(html), **written, **counts})
        else:
            show(f"{count_text(written['explained'], 'text')} explained, {written['drawn']:,} drawn in {html}")
    else:
        _print_explanations(explanations, common)
    _print_counts(counts, common)
    if not common.json:
        subject = [model] if classes is None else [model, "--classes", classes]
        _print_next(subject, file, columns, label, common)


def _print_counts(counts: "Counter[str]", common: Common) -> None:
    """Print the number of wrong predictions, and of training texts among the texts."""
    from steadygaze.results.evaluation import overlap_sentence

    if counts:
        print_line(stderr_console(common), f"{counts['wrong']:,} of {counts['labeled']:,} predictions are wrong")
    if sentence := overlap_sentence(counts["training_texts"], counts["labeled"]):
        print_line(stderr_console(common), f"! {sentence}")


def _print_next(
    model: "Sequence[str]", file: Path | None, columns: "Sequence[str]", label: str | None, common: Common
) -> None:
    """Print the commands to try next."""
    import shlex

    texts = [word for name in columns if file is not None and list(columns) != ["text"] for word in ("--text", name)]
    labels = [] if label is None else ["--label", label]
    words = ["audit", *model, "--data", "FILE" if file is None else str(file), *texts, *labels, "--html", "audit.html"]
    for command in (shlex.join(words), "list explainers"):
        print_line(stderr_console(common), f"next:  steadygaze {command}")


def _print_explanations(explanations: "Iterator[Explanation]", common: Common) -> None:
    if common.json:
        print_json_lines(explanation.to_json() for explanation in explanations)
        return
    console = stdout_console()
    for explanation in until_closed(explanations):
        console.print(explanation, end="\n\n")


def _write_eraser(
    path: Path,
    explanations: "Iterator[Explanation]",
    source: tuple[Path, Sequence[str], bool],
    share: float,
    common: Common,
) -> None:
    """`source`: the file of the texts, its columns and --drop-empty."""
    from steadygaze.results.eraser_predictions import names, write_predictions

    written = write_predictions(path, explanations, names(*source), share)
    if common.json:
        print_json({"eraser": str(path), "explained": written})
    else:
        show(f"{written:,} rationales written to {path}")


def _explained(
    adapter: "ModelAdapter", explainer: str | None, options: dict[str, Any], common: Common
) -> "tuple[Callable[..., Iterator[Explanation]], list[str]]":
    """Return a function that reads and explains texts, and notes about how reliable the explanations are."""
    from steadygaze.cli import streaming
    from steadygaze.core.errors import printable
    from steadygaze.results.leakage_warnings import read_sentence

    method = _resolve(explainer, adapter, options["target"])
    notes = [] if isinstance(method, str | None) else method.warnings
    if not isinstance(method, str | None):
        options = options if not adapter.outputs else {**options, "target": None}  # it explains one output
        adapter = method.black_box  # it knows whether it was fitted to pairs
    for note in notes:
        print_line(stderr_console(common), f"! {note}")
    leakage = reader_note(adapter, method) if isinstance(method, str | None) else read_sentence(method.rows)
    if leakage:
        print_line(stderr_console(common), printable(leakage))
        notes = [*notes, leakage]

    def explain_chunks(*sources: Any) -> "Iterator[Explanation]":
        check_pairs(adapter, sources[0])
        chunks = streaming.read(bool(adapter.pair), *sources)
        return streaming.explain(adapter, chunks, method, batch_size=common.batch_size, seed=common.seed, **options)

    return explain_chunks, notes


def reader_note(adapter: "ModelAdapter", explainer: str | None) -> str:
    """One line about the independent reader of a rationalizer; empty if it has none or another explainer is used."""
    from steadygaze.explainers.rationale import RationaleExplainer
    from steadygaze.explainers.resolve_explainer import default_explainer

    if (explainer or default_explainer(adapter.model)) != "rationale":
        return ""
    if (accuracy := RationaleExplainer().reader_accuracy(adapter.model)) is None:
        return ""
    return (
        f"An independent reader recovers the label from the selected words in {accuracy:.0%} of the validation texts."
    )


def check_pairs(adapter: "ModelAdapter", texts: "Sequence[str]") -> None:
    """Refuse single texts for a model whose labels name a relation between two texts."""
    from steadygaze.core.errors import UserError

    relations = [str(label) for label in adapter.classes if any(word in str(label).lower() for word in RELATIONS)]
    if adapter.pair is None and texts and relations:
        raise UserError(
            f"{adapter.name} predicts {relations[0]!r}, a relation between two texts: give --pair TEXT QUESTION, or "
            "--file FILE --text COLUMN --text COLUMN"
        )


def _resolve(explainer: str | None, adapter: "ModelAdapter", target: str | None = None) -> "str | TextExplainer | None":
    """Return a name, or an explainer fitted to this model.  A name takes precedence over a folder (./lime).

    `target`: the output of a multi-label model that it was fitted to.
    """
    from steadygaze.adapters.text_explainer import load_explainer
    from steadygaze.core.errors import UserError
    from steadygaze.explainers import EXPLAINERS
    from steadygaze.explainers.learned import METHODS

    if explainer is None:
        return None
    if explainer not in EXPLAINERS and Path(explainer).exists():
        return load_explainer(explainer, adapter.for_output(target) if adapter.task == "multi-label" else adapter)
    if explainer in METHODS:
        raise UserError(
            f"{explainer} must be fitted to the model first: "
            f"fit-explainer MODEL --data DATA --explainer {explainer} --out DIR, then --explainer DIR"
        )
    return explainer
