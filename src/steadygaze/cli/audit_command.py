"""steadygaze audit: how far may this explanation be believed?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from steadygaze.cli.application import (
    DATA,
    Common,
    DropEmpty,
    LabelIfAny,
    RationalesColumn,
    Replace,
    TextColumn,
    app,
    common_options,
    output_file,
)

if TYPE_CHECKING:
    from steadygaze.cli.audit_output import AuditOutputs

MODEL = "A folder made by train, or a Hugging Face sequence classifier: a folder or a hub id."
RULE = 'A requirement, as in "jensen-shannon/noise<=0.02"; exit code 1 where it does not hold.'
AuditedModel = Annotated[str | None, typer.Argument(metavar="MODEL", help=MODEL)]
Maybe = Annotated[str | None, typer.Option("--data", metavar="DATA", help=DATA)]
Bundle = Annotated[
    Path | None,
    typer.Option("--bundle", "-o", metavar="DIR", help="Write an audit bundle: report, rows, policy and manifest."),
]
Page = Annotated[
    Path | None, typer.Option("--html", metavar="PATH", parser=output_file, help="The report as one page.")
]
Require = Annotated[list[str] | None, typer.Option("--require", metavar="RULE", help=RULE)]
PolicyFile = Annotated[Path | None, typer.Option("--policy", help="Requirements in a TOML file.")]
Verify = Annotated[
    Path | None,
    typer.Option("--verify", metavar="BUNDLE", help="Run that audit again and compare everything in the bundle."),
]
Explainers = Annotated[
    list[str] | None, typer.Option("--explainer", help="See: list explainers.  The verdicts are about the first.")
]
OtherSeeds = Annotated[
    list[str] | None,
    typer.Option("--other-seed", metavar="MODEL", help="The same model trained with another seed.  Repeat for more."),
]
Train = Annotated[
    str | None,
    typer.Option(
        "--train", metavar="DATA", help="What a rationaliser was trained on: trains it again, to ask if it would lock."
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(metavar="A,B,…", help="Labels of the data, in the order of the model's outputs.  Default: its names."),
]
Card = Annotated[
    bool, typer.Option("--card/--no-card", help="Whether the card of a model of ours gets the audit's numbers.")
]

Attention = Annotated[
    Literal["last", "rollout"], typer.Option(help="Of a Hugging Face model: which attention is shown.")
]
Sign = Annotated[
    Path | None, typer.Option("--sign", metavar="KEY", help="With --bundle: sign the bundle with this SSH key.")
]
Signers = Annotated[
    Path | None, typer.Option("--signers", metavar="FILE", help="With --verify: SSH keys that may have signed.")
]


@app.command(epilog='Example: steadygaze audit model/ --data sst2 --html audit.html --require "accuracy>=0.8"')
@common_options
def audit(
    model: AuditedModel = None,
    data: Maybe = None,
    bundle: Bundle = None,
    html: Page = None,
    require: Require = None,
    policy: PolicyFile = None,
    verify: Verify = None,
    explainer: Explainers = None,
    other_seed: OtherSeeds = None,
    train: Train = None,
    synonyms: Annotated[Path | None, typer.Option(help="Table of synonyms (.parquet, .jsonl).")] = None,
    split: Annotated[str | None, typer.Option(help="Default: test, or the only one there is.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Texts, drawn at random.  Default: all.")] = None,
    sample: Annotated[int, typer.Option(min=1, help="Texts that expensive questions are asked about.")] = 100,
    thorough: Annotated[bool, typer.Option("--thorough", help="Ask what takes long, too.")] = False,
    radius: Annotated[float, typer.Option(help="How far word vectors move, in standard deviations.")] = 0.1,
    removal: Annotated[Literal["delete", "pad", "zero"], typer.Option(help="How words are erased.")] = "delete",
    k: Annotated[int, typer.Option("--k", min=1, help="How many of the heaviest words are to stay.")] = 7,
    attention: Attention = "last",
    classes: Classes = None,
    text: TextColumn = None,
    label: LabelIfAny = None,
    rationales: RationalesColumn = None,
    drop_empty: DropEmpty = False,
    card: Card = True,
    replace: Replace = False,
    sign: Sign = None,
    signers: Signers = None,
    signer: Annotated[str | None, typer.Option(metavar="NAME", help="With --signers: who must have signed.")] = None,
    *,
    common: Common,
) -> None:
    """Ask of a model how far its explanations may be believed."""
    from steadygaze.cli.audit_output import AuditOutputs as Wanted

    texts = {"data": data, "split": split, "label": label, "rationales": rationales, "drop_empty": drop_empty}
    plan = {"limit": limit, "radius": radius, "removal": removal, "k": k, "sample": sample, "thorough": thorough}
    given = {
        "model": model,
        **texts,
        "text": tuple(text or ("text",)),
        "classes": () if classes is None else tuple(name.strip() for name in classes.split(",")),
        "explainers": tuple(explainer or ()),
        "other_seeds": tuple(other_seed or ()),
        "train": train,
        "synonyms": None if synonyms is None else str(synonyms),
        "attention": attention,
        **plan,
        "seed": common.seed,
    }
    wanted = Wanted(tuple(require or ()), policy, bundle, html, card, replace, sign)
    if verify is None:
        _audit(given, wanted, (signers, signer), common)
    else:
        _verify(verify, given, wanted, (signers, signer), common)


def _audit(
    given: dict[str, Any], wanted: "AuditOutputs", signed: tuple[Path | None, str | None], common: Common
) -> None:
    """`signed`: --signers and --signer, which are for verification alone."""
    from steadygaze.cli.audit_output import run_audit_command as audited
    from steadygaze.core.errors import UserError

    if any(signed):
        raise UserError("--signers and --signer check the signature of a bundle: name it with --verify")
    if given["model"] is None or given["data"] is None:
        raise UserError("audit needs a model and data: steadygaze audit MODEL --data DATA, or --verify BUNDLE")
    audited(given, wanted, common)


def _verify(
    bundle: Path, given: dict[str, Any], wanted: "AuditOutputs", signed: tuple[Path | None, str | None], common: Common
) -> None:
    from steadygaze.audit.reproduction import PASS
    from steadygaze.cli.audit_output import ExpectedBundle as Expected
    from steadygaze.cli.audit_output import run_verify_command as verified
    from steadygaze.core.errors import UserError

    if wanted.out or wanted.html or wanted.sign:
        raise UserError(
            "--verify runs the audit of the bundle again and writes nothing: it takes no --bundle, --html, --sign"
        )
    instead = {name: given[name] for name in PASS if given[name]}
    verified(Expected(bundle, instead, wanted.required, *signed), common)
