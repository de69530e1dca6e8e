"""The command `certify`."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from steadygaze.cli.application import (
    Common,
    DataOption,
    DropEmpty,
    LabelIfAny,
    Model,
    Split,
    TextColumn,
    app,
    command_help,
    common_options,
    load_model,
    model_option,
    stdout_console,
)
from steadygaze.cli.output_streams import print_json, until_closed

CERTIFICATE_PANEL = "Certificate"
certificate_option = partial(typer.Option, rich_help_panel=CERTIFICATE_PANEL)

Radius = Annotated[float, certificate_option("--radius", help="Largest change of the attention weights.")]
Norm = Annotated[Literal["l2", "linf"], certificate_option("--norm", help="Norm of the change.")]
TopK = Annotated[int, certificate_option("--k", help="Top-k words to certify.")]
Reference = Annotated[
    Path | None, model_option("--reference", metavar="MODEL", help="Model to compare the attention with.")
]
Simplex = Annotated[bool, certificate_option("--simplex", help="Only changes that keep the sum of the weights.")]
LowerBound = Annotated[
    bool, certificate_option("--lower-bound", help="Search for a counterexample where there is no certificate.")
]


@app.command(
    **command_help(
        "certify model/ --data reviews.csv --radius 0.01",
        "certify model/ --data sst2 --radius 0.05 --norm l2 --k 5 --simplex",
        "certify model/ --data reviews.csv --radius 0.01 --reference vanilla/ --json",
    )
)
@common_options
def certify(
    model: Model,
    data: DataOption,
    radius: Radius,
    split: Split = None,
    text: TextColumn = None,
    label: LabelIfAny = None,
    drop_empty: DropEmpty = False,
    reference: Reference = None,
    norm: Norm = "linf",
    k: TopK = 7,
    simplex: Simplex = False,
    lower_bound: LowerBound = False,
    *,
    common: Common,
) -> None:
    """Certify attention against every change of its weights within a radius."""
    from steadygaze.cli import streaming
    from steadygaze.data.corpora import load_corpus

    clf = load_model(model, common)
    other = None if reference is None else load_model(reference, common)
    columns = tuple(text or ("text",))
    corpus = load_corpus(data, text=columns, label=label, data_dir=common.data_dir, drop_empty=drop_empty)
    settings = {"radius": radius, "norm": norm, "k": k, "simplex": simplex, "lower_bound": lower_bound}
    certificates = streaming.certify_corpus(clf, corpus, split, other, common.batch_size, **settings)
    if common.json:
        print_json(certificates.to_dict())
        return
    if common.verbose:
        for certificate in until_closed(certificates):
            print(certificate.line())
    stdout_console().print(certificates)
