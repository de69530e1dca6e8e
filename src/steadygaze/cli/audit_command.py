"""The command `audit`."""

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import (
    Common,
    command_help,
    common_options,
    config_options,
    data_option,
    file_option,
    output_option,
)
from steadygaze.cli.exit_codes import AUDIT_EXIT_CODES
from steadygaze.results.audit_config import AuditConfig

if TYPE_CHECKING:
    from steadygaze.cli.audit_and_verify import AuditOutputs

audit_option = partial(typer.Option, rich_help_panel="Audit")


@app.command(
    **command_help(
        "audit model/ --data sst2 --html audit.html",
        'audit model/ --data reviews.csv --synonyms table.jsonl --require "accuracy>=0.8"',
        "audit --verify bundle/",
        exit_codes=AUDIT_EXIT_CODES,
    )
)
@common_options()
@config_options(AuditConfig, limit="all; 100 if the model is not of train")
def audit(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help=shared.CLASSIFIER, show_default=False)] = None,
    data: Annotated[str | None, data_option("--data", metavar="DATA", help=shared.DATA)] = None,
    *,
    settings: dict[str, Any],
    imports: shared.Imports = None,
    require: Annotated[
        list[str] | None,
        audit_option(
            "--require", metavar="RULE", help='Requirement, such as "jensen-shannon/noise<=0.02"; repeatable.'
        ),
    ] = None,
    policy: Annotated[
        Path | None, audit_option("--policy", metavar="FILE", help="Requirements in a TOML file.")
    ] = None,
    verify: Annotated[
        Path | None,
        audit_option(
            "--verify", metavar="BUNDLE", help="Rerun the audit of a bundle with its settings, and compare everything."
        ),
    ] = None,
    signers: Annotated[
        Path | None, audit_option("--signers", metavar="FILE", help="With --verify: allowed signers (SSH keys).")
    ] = None,
    signer: Annotated[
        str | None, audit_option("--signer", metavar="NAME", help="With --signers: the required signer.")
    ] = None,
    bundle: Annotated[
        Path | None,
        output_option("--bundle", "-o", metavar="DIR", help="Audit bundle: report, rows, policy and manifest."),
    ] = None,
    html: Annotated[Path | None, file_option("--html", help="Report as one HTML page.")] = None,
    card: Annotated[
        bool, output_option("--card", help="Write the verdicts into README.md of a model of train.")
    ] = False,
    replace: shared.Replace = False,
    sign: Annotated[
        Path | None, output_option("--sign", metavar="KEY", help="Sign the bundle with this SSH key.")
    ] = None,
    common: Common,
) -> None:
    """Measure how far the explanations of a model can be trusted."""
    settings = {"model": model, "data": data, **settings, "imports": tuple(imports or ()), "seed": common.seed}
    config = _check_settings(settings, (signers, signer)) if verify is None else None
    from steadygaze.cli.audit_and_verify import AuditOutputs, run_audit_command

    outputs = AuditOutputs(tuple(require or ()), policy, bundle, html, card, replace, sign)
    if config is not None:
        run_audit_command(config, outputs, common)
    elif verify is not None:
        _verify(verify, settings, outputs, (signers, signer), common)


def _check_settings(settings: dict[str, Any], signature: tuple[Path | None, str | None]) -> AuditConfig:
    """Check settings and columns before torch is imported; `signature`: --signers and --signer."""
    from steadygaze.cli.load_models import check_label_values
    from steadygaze.core.errors import UserError
    from steadygaze.core.settings import build
    from steadygaze.data.corpora import check_columns

    if any(signature):
        raise UserError("--signers and --signer check the signature of a bundle: name it with --verify")
    if settings["model"] is None or settings["data"] is None:
        raise UserError("audit needs a model and data: steadygaze audit MODEL --data DATA, or --verify BUNDLE")
    config = build(AuditConfig, settings)
    columns = {name: getattr(config, name) for name in ("text", "label", "rationales", "sentences")}
    check_columns(config.data, **columns)
    if config.train is not None:
        check_columns(config.train, text=config.text, label=config.label or "label")
    if config.train is None:
        check_label_values(config.model, config, config.data, config.text, config.label, config.drop_empty)
    return config


def _verify(
    bundle: Path,
    settings: dict[str, Any],
    outputs: "AuditOutputs",
    signature: tuple[Path | None, str | None],
    common: Common,
) -> None:
    from steadygaze.bundle.loaded_audit import PATHS
    from steadygaze.cli.audit_and_verify import ExpectedBundle, run_verify_command
    from steadygaze.core.arguments import option_name
    from steadygaze.core.errors import UserError

    if outputs.out or outputs.html or outputs.sign or outputs.card:
        raise UserError(
            "--verify runs the audit of the bundle again and writes nothing: it takes no --bundle, --html, --sign, "
            "--card"
        )
    defaults = {field.name: field.default for field in fields(AuditConfig) if field.name not in (*PATHS, "imports")}
    if changed := [option_name(AuditConfig, name) for name in defaults if settings[name] != defaults[name]]:
        raise UserError(f"--verify uses the settings of the bundle: leave out {', '.join(changed)}")
    instead = {name: settings[name] for name in PATHS if settings[name]}
    run_verify_command(ExpectedBundle(bundle, instead, outputs.required, *signature), common)
