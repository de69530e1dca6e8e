"""steadygaze predict and explain: what a model makes of texts."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from steadygaze.cli.app import app, as_json, as_lines, console, loaded, screen, settled, show, while_read
from steadygaze.cli.watching import line
from steadygaze.escape import one_line, printable
from steadygaze.options import Common, DropEmpty, File, Model, Pair, Replace, Text, TextColumn, everywhere, output_file

if TYPE_CHECKING:
    from steadygaze.explanation import Explanation
    from steadygaze.subject import Subject
    from steadygaze.text_explainer import TextExplainer

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
@everywhere
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
    from steadygaze import verbs
    from steadygaze.explanation import LABEL

    clf = loaded(model, common)
    chunks = verbs.read(clf.stored_.description.pair, given or [], file, text or ["text"], drop_empty, pair)
    say = console(common)
    records = verbs.predict(clf, chunks, common.batch_size, lambda sentence: line(say, f"! {sentence}."))
    if common.json:
        as_lines(json.dumps(record, ensure_ascii=False).encode(errors="replace") for record in records)
        return
    for record in while_read(records):
        chance = record["probabilities"][str(record["label"])]
        label, written = one_line(record["label"], LABEL), printable(" ".join(record["text"].split()))
        print(f"{label}\t{chance:.3f}\t{written}")


@app.command(epilog='Example: steadygaze explain model/ "A gorgeous, witty, seductive movie." --html why.html')
@everywhere
def explain(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=WHOSE)],
    given: Text = None,
    file: File = None,
    explainer: Annotated[
        str | None, typer.Option(help="See: list explainers; or a folder made by explain-fit.  Default: what it shows.")
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
    from steadygaze import verbs
    from steadygaze.config import parse
    from steadygaze.errors import UserError

    if eraser is not None and (file is None or given or html is not None):
        raise UserError("--eraser writes the rationales of the texts of a file: give --file alone, and no --html")
    asked = {"target": target, "granularity": granularity, "settings": parse(settings or [])}
    ask, notes = _explained(model, explainer, asked, common)
    found = ask(given or [], file, text or ["text"], drop_empty, pair)
    if eraser is not None and file is not None:
        from steadygaze.corpus.predictions import names, write_predictions

        written = write_predictions(eraser, found, names(file, text or ["text"], drop_empty), share)
        if common.json:
            as_json({"eraser": str(eraser), "explained": written})
        else:
            show(f"{written:,} rationales written to {eraser}")
    elif html is not None:
        from steadygaze.report.words import counted

        shown = verbs.write_explanations(html, found, Path(model), notes, replace)
        if common.json:
            as_json({"html": str(html), **shown})
        else:
            show(f"{counted(shown['explained'], 'text')} explained, {shown['drawn']:,} drawn in {html}")
    elif common.json:
        as_lines(one.to_json() for one in found)
    else:
        drawn = screen()
        for one in while_read(found):
            drawn.print(one, end="\n\n")


def _explained(
    model: str, explainer: str | None, asked: dict[str, Any], common: Common
) -> "tuple[Callable[..., Iterator[Explanation]], list[str]]":
    """What reads texts and explains them, whoever's model it is; and what must be known before that is believed."""
    from steadygaze import verbs
    from steadygaze.highlight import printable
    from steadygaze.report.warned import reading
    from steadygaze.subject import as_subject

    subject = as_subject(model, device=common.device)
    way = _way(explainer, subject)
    notes = [] if isinstance(way, str | None) else way.warnings
    subject = subject if isinstance(way, str | None) else way.subject  # which knows whether it was fitted to pairs
    for sentence in notes:
        line(console(common), f"! {sentence}")
    known = of_rationalizer(subject, way) if isinstance(way, str | None) else reading(way.rows)
    if known:
        line(console(common), printable(known))
        notes = [*notes, known]
    settled()

    def ask(*given: Any) -> "Iterator[Explanation]":
        refuse_single(subject, given[0])
        chunks = verbs.read(bool(subject.pair), *given)
        return verbs.explain(subject, chunks, way, batch_size=common.batch_size, seed=common.seed, **asked)

    return ask, notes


def of_rationalizer(subject: "Subject", explainer: str | None) -> str:
    """One line about the independent reader of a model that selects; '' where it has none, or is not what is shown."""
    from steadygaze.explain.chosen import own
    from steadygaze.explain.rationale import Selection

    if (explainer or own(subject.model)) != "rationale":
        return ""
    if (accuracy := Selection().reader_accuracy(subject.model)) is None:
        return ""
    return (
        f"An independent reader recovers the label from the selected words in {accuracy:.0%} of the validation texts."
    )


def refuse_single(subject: "Subject", given: "Sequence[str]") -> None:
    """Texts in quotes are single texts; a model whose labels name relations between two texts needs pairs."""
    from steadygaze.errors import UserError

    named = [str(label) for label in subject.classes if any(word in str(label).lower() for word in RELATIONS)]
    if subject.pair is None and given and named:
        raise UserError(
            f'{subject.name} predicts {named[0]!r}, a relation between two texts: give --pair "TEXT" "QUESTION", or '
            "--file FILE --text COLUMN --text COLUMN"
        )


def _way(explainer: str | None, subject: "Subject") -> "str | TextExplainer | None":
    """A name, or an explainer that was fitted to this model.  A name wins over a folder of that name (./lime)."""
    from steadygaze.errors import UserError
    from steadygaze.explain import EXPLAINERS
    from steadygaze.explain.learned import METHODS
    from steadygaze.text_explainer import load_explainer

    if explainer is None:
        return None
    if explainer not in EXPLAINERS and Path(explainer).exists():
        return load_explainer(explainer, subject)
    if explainer in METHODS:
        raise UserError(
            f"{explainer} must be fitted to the model first: "
            f"explain-fit MODEL --data DATA --explainer {explainer} --out DIR, then --explainer DIR"
        )
    return explainer
