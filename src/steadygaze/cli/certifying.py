"""steadygaze certify: what no change of the attention weights can do."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from steadygaze.cli.app import app, as_json, loaded, screen
from steadygaze.options import DATA, Common, DropEmpty, LabelIfAny, Model, TextColumn, everywhere


@app.command(epilog="Example: steadygaze certify model/ --data reviews.csv --radius 0.01 --norm linf --k 7")
@everywhere
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
    from steadygaze import verbs
    from steadygaze.corpus import load_corpus

    clf = loaded(model, common)
    other = None if reference is None else loaded(reference, common)
    columns = tuple(text or ("text",))
    corpus = load_corpus(data, text=columns, label=label, data_dir=common.data_dir, drop_empty=drop_empty)
    asked = {"radius": radius, "norm": norm, "k": k, "simplex": simplex, "lower_bound": lower_bound}
    found = verbs.certify(clf, corpus, split, other, common.batch_size, **asked)
    if common.json:
        as_json(found.to_dict())
    else:
        screen().print(found)
