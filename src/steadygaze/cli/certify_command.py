"""The command `certify`."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
from steadygaze.cli.printing import print_json, print_omissions, print_result, stderr_console, until_closed
from steadygaze.cli.progress_bars import progress_bar
from steadygaze.core.types import Removal
from steadygaze.results.audit_config import (
    CERTIFICATE_PANEL,
    SYNONYM_TABLE,
    SubstitutionConfig,
    check_no_substitutions,
    check_only_soft_stability,
    top_and_added,
)
from steadygaze.results.model_options import ModelOptions

if TYPE_CHECKING:
    from steadygaze.adapters.model_adapter import ModelAdapter

attention_option = partial(typer.Option, rich_help_panel="Attention certificate")
word_option = partial(typer.Option, rich_help_panel=CERTIFICATE_PANEL)
soft_option = partial(typer.Option, rich_help_panel="Soft stability")


@dataclass(frozen=True)
class AttentionOptions:
    """Changes of the attention weights; see ATTENTION_DEFAULTS."""

    radius: Annotated[float | None, attention_option("--radius", help="Largest change of the attention weights.")] = (
        None
    )
    reference: Annotated[
        Path | None, attention_option("--reference", metavar="MODEL", help="Model to compare the attention with.")
    ] = None
    norm: Annotated[Literal["l2", "linf"], attention_option("--norm", help="Norm of the change.")] = "linf"
    simplex: Annotated[bool, attention_option("--simplex", help="Only changes that keep the sum of the weights.")] = (
        False
    )
    lower_bound: Annotated[
        bool, attention_option("--lower-bound", help="Search for a counterexample where there is no certificate.")
    ] = False


@dataclass(frozen=True)
class SoftStabilityOptions:
    """The soft stability, and the explainer that it is about."""

    soft_stability: Annotated[
        str | None,
        soft_option(
            "--soft-stability",
            metavar="K,R",
            help="How often the label of the top K words (or a share, 0.2) stays with up to R other words added.",
        ),
    ] = None
    explainer: shared.FittedExplainer = None
    imports: shared.ExplainerImports = None
    removal: Annotated[Removal, soft_option("--removal", help="How the other words are erased.")] = "delete"

    def check(self, attention: dict[str, Any], substitutions: Path | None, settings: dict[str, Any]) -> None:
        """Refuse a wrong K,R, and options of another certificate."""
        from steadygaze.core.errors import UserError

        if self.soft_stability is not None:
            top_and_added("soft_stability", self.soft_stability)
            others = {**attention, "substitutions": substitutions}
            check_only_soft_stability(others, SubstitutionConfig(**settings))
        elif self.explainer is not None or self.removal != "delete":
            raise UserError("--explainer and --removal are about soft stability: pass --soft-stability K,R")

    def arguments(self, adapter: "ModelAdapter") -> dict[str, Any]:
        """The arguments of `certify`."""
        from steadygaze.adapters.text_explainer import explainer_of

        if self.soft_stability is None:
            return {}
        pair = top_and_added("soft_stability", self.soft_stability)
        return {"soft_stability": pair, "explainer": explainer_of(self.explainer, adapter), "removal": self.removal}


@app.command(
    **command_help(
        "certify model/ --data reviews.csv --radius 0.01",
        "certify model/ --data reviews.csv --substitutions synonyms.jsonl --max-substitutions 3",
        "certify model/ --data reviews.csv --soft-stability 0.2,3 --explainer lime",
    )
)
@common_options()
@options_of("corpus", shared.CorpusOptions)
@options_of("changes", AttentionOptions)
@options_of("soft", SoftStabilityOptions)
@model_options("attention")
@config_options(SubstitutionConfig)
def certify(
    model: shared.AnyModel,
    corpus: shared.CorpusOptions,
    changes: AttentionOptions,
    soft: SoftStabilityOptions,
    split: shared.Split = None,
    substitutions: Annotated[
        Path | None,
        word_option("--substitutions", metavar="FILE", help=f"Substitutions of words to certify. {SYNONYM_TABLE}"),
    ] = None,
    *,
    options: ModelOptions,
    settings: dict[str, Any],
    common: Common,
) -> None:
    """Certify labels and top words against changes of attention weights, or substituted or added words."""
    soft.check(vars(changes), substitutions, settings)
    of_attention = substitutions is None and soft.soft_stability is None
    if of_attention:
        _check_attention_certificate(model, changes.radius, {**options.changed, **settings})
    loaded = corpus.load(common)
    print_omissions(loaded.name, loaded.dropped, common)
    from steadygaze.certificates.certify import certify
    from steadygaze.core.types import texts_of

    texts = texts_of(loaded.splits[loaded.choose(split)])
    subject: Any = load_model(Path(model), common) if of_attention else load_adapter(model, options, common)
    reference = None if changes.reference is None else load_model(changes.reference, common)
    with progress_bar(stderr_console(common)) as on_progress:
        certificates = certify(
            subject,
            texts,
            **{**vars(changes), "reference": reference},
            substitutions=substitutions,
            **settings,
            **soft.arguments(subject),
            seed=common.seed,
            batch_size=common.batch,
            on_progress=on_progress,
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
        raise UserError(
            "pass --radius R (changes of attention weights), --substitutions FILE (changes of words) or "
            "--soft-stability K,R (added words)"
        )
    check_no_substitutions(**{name: value for name, value in options.items() if name != "k"})
    if names_object(model):
        raise UserError(f"{model} has no attention layer to certify: pass --substitutions FILE instead of --radius")
