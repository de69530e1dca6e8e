"""steadygaze predict and explain: what a model makes of texts."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from steadygaze.cli.app import app, as_json, as_lines, loaded
from steadygaze.options import Common, DropEmpty, File, Model, Text, TextColumn, everywhere


@app.command(epilog='Example: steadygaze predict model/ "A gorgeous, witty, seductive movie."')
@everywhere
def predict(
    model: Model,
    given: Text = None,
    file: File = None,
    text: TextColumn = None,
    drop_empty: DropEmpty = False,
    *,
    common: Common,
) -> None:
    """Say the label of texts.  With --json: one JSON object per line."""
    from steadygaze import verbs
    from steadygaze.highlight import printable

    clf = loaded(model, common)
    chunks = verbs.read(clf, given or [], file, text or ["text"], drop_empty)
    records = verbs.predict(clf, chunks, common.batch_size)
    if common.json:
        as_lines(json.dumps(record, ensure_ascii=False).encode(errors="replace") for record in records)
        return
    for record in records:
        chance = record["probabilities"][str(record["label"])]
        print(printable(f"{record['label']}\t{chance:.3f}\t{' '.join(record['text'].split())}"))


@app.command(epilog='Example: steadygaze explain model/ "A gorgeous, witty, seductive movie." --html why.html')
@everywhere
def explain(
    model: Model,
    given: Text = None,
    file: File = None,
    explainer: Annotated[str, typer.Option(help="See: list explainers.")] = "attention",
    target: Annotated[str | None, typer.Option(help="Explain this label instead of the predicted one.")] = None,
    granularity: Annotated[Literal["word", "piece"], typer.Option(help="Words, or a transformer's pieces.")] = "word",
    html: Annotated[Path | None, typer.Option(help="Write a page of highlighted texts.")] = None,
    text: TextColumn = None,
    drop_empty: DropEmpty = False,
    *,
    common: Common,
) -> None:
    """Show how much each word weighs in a prediction.  With --json: one JSON object per line."""
    from steadygaze import verbs

    clf = loaded(model, common)
    chunks = verbs.read(clf, given or [], file, text or ["text"], drop_empty)
    found = verbs.explain(clf, chunks, explainer, target, granularity, common.batch_size)
    if html is not None:
        shown = verbs.write_explanations(html, found, model)
        if common.json:
            as_json({"html": str(html), **shown})
        else:
            print(f"{shown['explained']:,} texts explained, {shown['drawn']:,} of them drawn in {html}")
    elif common.json:
        as_lines(one.to_json() for one in found)
    else:
        from rich.console import Console

        console = Console()
        for one in found:
            console.print(one, end="\n\n")
