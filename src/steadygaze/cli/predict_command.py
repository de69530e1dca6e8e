"""steadygaze predict and explain: what a model makes of texts.

steadygaze certify: what no change of the attention weights can do.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from steadygaze.cli.application import (
    DATA,
    Common,
    DropEmpty,
    File,
    LabelIfAny,
    Model,
    Pair,
    Replace,
    Text,
    TextColumn,
    app,
    as_json,
    as_lines,
    common_options,
    load_models,
    output_file,
    parse_settings,
    print_line,
    show,
    stderr_console,
    stdout_console,
    while_read,
)
from steadygaze.core.errors import one_line, printable

if TYPE_CHECKING:
    from steadygaze.adapters.model_adapter import ModelAdapter
    from steadygaze.adapters.text_explainer import TextExplainer
    from steadygaze.results.explanation import Explanation

SETTING = "A setting of the explainer, such as samples or steps; again for more.  See: list explainers."
RELATIONS = ("entail", "contradict", "paraphrase", "duplicate")
"""Labels of models that read pairs have one of these in them."""
WHOSE = "A folder made by train, or a Hugging Face sequence classifier: a folder or a hub id."


Page = Annotated[
    Path | None, typer.Option(metavar="PATH", parser=output_file, help="Write a page of highlighted texts.")
]
Eraser = Annotated[
    Path | None,
    typer.Option(metavar="PATH", parser=output_file, help="Write rationales as ERASER's predictions (.jsonl)."),
]


@app.command(epilog='Example: steadygaze predict model/ "A gorgeous, witty, seductive movie."')
@common_options
def predict(
    model: Model,
    given: Text = None,
    file: File = None,
    text: TextColumn = None,
    drop_empty: DropEmpty = False,
    pair: Pair = None,
    *,
    common: Common,
) -> None:
    """Say the label of texts.  With --json: one JSON object per line."""
    from steadygaze.cli import streaming
    from steadygaze.results.explanation import LABEL

    clf = load_models(model, common)
    chunks = streaming.read(clf.stored_.description.pair, given or [], file, text or ["text"], drop_empty, pair)
    say = stderr_console(common)
    records = streaming.predict(clf, chunks, common.batch_size, lambda sentence: print_line(say, f"! {sentence}."))
    if common.json:
        as_lines(json.dumps(record, ensure_ascii=False).encode(errors="replace") for record in records)
        return
    for record in while_read(records):
        chance = record["probabilities"][str(record["label"])]
        label, written = one_line(record["label"], LABEL), printable(" ".join(record["text"].split()))
        print(f"{label}\t{chance:.3f}\t{written}")


@app.command(epilog='Example: steadygaze explain model/ "A gorgeous, witty, seductive movie." --html why.html')
@common_options
def explain(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=WHOSE)],
    given: Text = None,
    file: File = None,
    explainer: Annotated[
        str | None,
        typer.Option(help="See: list explainers; or a folder made by fit-explainer.  Default: what it shows."),
    ] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=SETTING)] = None,
    target: Annotated[str | None, typer.Option(help="Explain this label instead of the predicted one.")] = None,
    granularity: Annotated[Literal["word", "piece"], typer.Option(help="Words, or a transformer's pieces.")] = "word",
    html: Page = None,
    eraser: Eraser = None,
    replace: Replace = False,
    share: Annotated[float, typer.Option(help="With --eraser: share of the words that is the hard rationale.")] = 0.2,
    text: TextColumn = None,
    drop_empty: DropEmpty = False,
    pair: Pair = None,
    *,
    common: Common,
) -> None:
    """Show how much each word weighs in a prediction.  With --json: one JSON object per line."""
    from steadygaze.cli import streaming
    from steadygaze.core.errors import UserError
    from steadygaze.core.settings import parse

    if eraser is not None and (file is None or given or html is not None):
        raise UserError("--eraser writes the rationales of the texts of a file: give --file alone, and no --html")
    asked = {"target": target, "granularity": granularity, "settings": parse(settings or [])}
    ask, notes = _explained(model, explainer, asked, common)
    found = ask(given or [], file, text or ["text"], drop_empty, pair)
    if eraser is not None and file is not None:
        from steadygaze.results.eraser_predictions import names, write_predictions

        written = write_predictions(eraser, found, names(file, text or ["text"], drop_empty), share)
        if common.json:
            as_json({"eraser": str(eraser), "explained": written})
        else:
            show(f"{written:,} rationales written to {eraser}")
    elif html is not None:
        from steadygaze.results.formatting import count_text as counted

        shown = streaming.write_explanations(html, found, Path(model), notes, replace)
        if common.json:
            as_json({"html": str(html), **shown})
        else:
            show(f"{counted(shown['explained'], 'text')} explained, {shown['drawn']:,} drawn in {html}")
    elif common.json:
        as_lines(one.to_json() for one in found)
    else:
        drawn = stdout_console()
        for one in while_read(found):
            drawn.print(one, end="\n\n")


def _explained(
    model: str, explainer: str | None, asked: dict[str, Any], common: Common
) -> "tuple[Callable[..., Iterator[Explanation]], list[str]]":
    """What reads texts and explains them, whoever's model it is; and what must be known before that is believed."""
    from steadygaze.adapters.as_adapter import as_adapter as as_subject
    from steadygaze.cli import streaming
    from steadygaze.core.errors import printable
    from steadygaze.results.leakage_warnings import read_sentence as reading

    subject = as_subject(model, device=common.device)
    way = _way(explainer, subject)
    notes = [] if isinstance(way, str | None) else way.warnings
    subject = subject if isinstance(way, str | None) else way.adapter  # which knows whether it was fitted to pairs
    for sentence in notes:
        print_line(stderr_console(common), f"! {sentence}")
    known = of_rationalizer(subject, way) if isinstance(way, str | None) else reading(way.rows)
    if known:
        print_line(stderr_console(common), printable(known))
        notes = [*notes, known]
    parse_settings()

    def ask(*given: Any) -> "Iterator[Explanation]":
        refuse_single(subject, given[0])
        chunks = streaming.read(bool(subject.pair), *given)
        return streaming.explain(subject, chunks, way, batch_size=common.batch_size, seed=common.seed, **asked)

    return ask, notes


def of_rationalizer(subject: "ModelAdapter", explainer: str | None) -> str:
    """One line about the independent reader of a model that selects; '' where it has none, or is not what is shown."""
    from steadygaze.explainers.rationale import RationaleExplainer as Selection
    from steadygaze.explainers.resolve import default_explainer as own

    if (explainer or own(subject.model)) != "rationale":
        return ""
    if (accuracy := Selection().reader_accuracy(subject.model)) is None:
        return ""
    return (
        f"An independent reader recovers the label from the selected words in {accuracy:.0%} of the validation texts."
    )


def refuse_single(subject: "ModelAdapter", given: "Sequence[str]") -> None:
    """Texts in quotes are single texts; a model whose labels name relations between two texts needs pairs."""
    from steadygaze.core.errors import UserError

    named = [str(label) for label in subject.classes if any(word in str(label).lower() for word in RELATIONS)]
    if subject.pair is None and given and named:
        raise UserError(
            f'{subject.name} predicts {named[0]!r}, a relation between two texts: give --pair "TEXT" "QUESTION", or '
            "--file FILE --text COLUMN --text COLUMN"
        )


def _way(explainer: str | None, subject: "ModelAdapter") -> "str | TextExplainer | None":
    """A name, or an explainer that was fitted to this model.  A name wins over a folder of that name (./lime)."""
    from steadygaze.adapters.text_explainer import load_explainer
    from steadygaze.core.errors import UserError
    from steadygaze.explainers import EXPLAINERS
    from steadygaze.explainers.learned import METHODS

    if explainer is None:
        return None
    if explainer not in EXPLAINERS and Path(explainer).exists():
        return load_explainer(explainer, subject)
    if explainer in METHODS:
        raise UserError(
            f"{explainer} must be fitted to the model first: "
            f"fit-explainer MODEL --data DATA --explainer {explainer} --out DIR, then --explainer DIR"
        )
    return explainer


@app.command(epilog="Example: steadygaze certify model/ --data reviews.csv --radius 0.01 --norm linf --k 7")
@common_options
def certify(
    model: Model,
    data: Annotated[str, typer.Option("--data", metavar="DATA", help=DATA)],
    radius: Annotated[float, typer.Option(help="How far the attention weights may change.")],
    norm: Annotated[Literal["l2", "linf"], typer.Option(help="How a change is measured.")] = "linf",
    k: Annotated[int, typer.Option("--k", help="How many of the heaviest words must stay.")] = 7,
    split: Annotated[str | None, typer.Option(help="Default: test, or the only one there is.")] = None,
    reference: Annotated[Path | None, typer.Option(metavar="MODEL", help="A model to compare attention with.")] = None,
    simplex: Annotated[bool, typer.Option("--simplex", help="Only changes that keep the sum of the weights.")] = False,
    lower_bound: Annotated[bool, typer.Option("--lower-bound", help="Search where nothing can be certified.")] = False,
    text: TextColumn = None,
    label: LabelIfAny = None,
    drop_empty: DropEmpty = False,
    *,
    common: Common,
) -> None:
    """Certify what no change of the attention weights can do.  With --json: summary and one row per text."""
    from steadygaze.cli import streaming
    from steadygaze.data.corpora import load_corpus

    clf = load_models(model, common)
    other = None if reference is None else load_models(reference, common)
    columns = tuple(text or ("text",))
    corpus = load_corpus(data, text=columns, label=label, data_dir=common.data_dir, drop_empty=drop_empty)
    asked = {"radius": radius, "norm": norm, "k": k, "simplex": simplex, "lower_bound": lower_bound}
    found = streaming.certify(clf, corpus, split, other, common.batch_size, **asked)
    if common.json:
        as_json(found.to_dict())
    else:
        stdout_console().print(found)
