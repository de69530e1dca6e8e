"""The command `certify`."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import (
    Common,
    command_help,
    common_options,
    config_options,
    model_options,
    options_of,
)
from steadygaze.cli.load_models import load_adapter, load_model
from steadygaze.cli.printing import print_json, print_omissions, print_result, until_closed
from steadygaze.results.audit_config import CERTIFICATE_PANEL, SYNONYM_TABLE, SubstitutionConfig, check_no_substitutions
from steadygaze.results.model_options import ModelOptions

attention_option = partial(typer.Option, rich_help_panel="Attention certificate")
word_option = partial(typer.Option, rich_help_panel=CERTIFICATE_PANEL)


@app.command(
    **command_help(
        "certify model/ --data reviews.csv --radius 0.01",
        "certify model/ --data sst2 --radius 0.05 --norm l2 --k 5 --simplex",
        "certify model/ --data reviews.csv --substitutions synonyms.jsonl --max-substitutions 3",
    )
)
@common_options()
@options_of("corpus", shared.CorpusOptions)
@model_options("attention")
@config_options(SubstitutionConfig)
def certify(
    model: shared.AnyModel,
    corpus: shared.CorpusOptions,
    radius: Annotated[
        float | None, attention_option("--radius", help="Largest change of the attention weights.")
    ] = None,
    split: shared.Split = None,
    reference: Annotated[
        Path | None, attention_option("--reference", metavar="MODEL", help="Model to compare the attention with.")
    ] = None,
    norm: Annotated[Literal["l2", "linf"], attention_option("--norm", help="Norm of the change.")] = "linf",
    simplex: Annotated[
        bool, attention_option("--simplex", help="Only changes that keep the sum of the weights.")
    ] = False,
    lower_bound: Annotated[
        bool, attention_option("--lower-bound", help="Search for a counterexample where there is no certificate.")
    ] = False,
    substitutions: Annotated[
        Path | None,
        word_option("--substitutions", metavar="FILE", help=f"Substitutions of words to certify. {SYNONYM_TABLE}"),
    ] = None,
    *,
    options: ModelOptions,
    settings: dict[str, Any],
    common: Common,
) -> None:
    """Certify labels and top words against changes of attention weights, or substitutions of words."""
    if substitutions is None:
        _check_attention_certificate(model, radius, {**options.changed, **settings})
    loaded = corpus.load(common)
    print_omissions(loaded.name, loaded.dropped, common)
    from steadygaze.certificates.certify import certify
    from steadygaze.core.types import texts_of

    subject: Any
    subject = load_model(Path(model), common) if substitutions is None else load_adapter(model, options, common)
    certificates = certify(
        subject,
        texts_of(loaded.splits[loaded.choose(split)]),
        radius,
        norm,
        simplex=simplex,
        reference=None if reference is None else load_model(reference, common),
        lower_bound=lower_bound,
        substitutions=substitutions,
        **settings,
        seed=common.seed,
        batch_size=common.batch,
    )
    if common.json:
        print_json(certificates.to_dict())
        return
    if common.verbose:
        rows: tuple[Any, ...] = certificates.rows
        for certificate in until_closed(rows):
            print(certificate.line())
    print_result(certificates, subject.health)


def _check_attention_certificate(model: str, radius: float | None, options: dict[str, Any]) -> None:
    """Refuse options and models that need --substitutions."""
    from steadygaze.core.arguments import names_object
    from steadygaze.core.errors import UserError

    if radius is None:
        raise UserError("pass --radius R (changes of attention weights) or --substitutions FILE (changes of words)")
    check_no_substitutions(**{name: value for name, value in options.items() if name != "k"})
    if names_object(model):
        raise UserError(f"{model} has no attention layer to certify: pass --substitutions FILE instead of --radius")
