"""steadygaze audit: how far may this explanation be believed?"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from steadygaze.cli.app import app, as_json, console
from steadygaze.options import DATA, Common, DropEmpty, EvidenceColumn, LabelColumn, TextColumn, everywhere

if TYPE_CHECKING:
    from steadygaze.audit.run import Done, Order
    from steadygaze.report.policy import Policy

MODEL = "A folder made by train, or a Hugging Face sequence classifier: a folder or a hub id."
RULE = 'A requirement, as in "jensen-shannon/noise<=0.02"; exit code 1 where it does not hold.'
Subject = Annotated[str | None, typer.Argument(metavar="MODEL", help=MODEL)]
Maybe = Annotated[str | None, typer.Option("--data", metavar="DATA", help=DATA)]
Evidence = Annotated[
    Path | None, typer.Option("--out", "-o", help="Evidence folder: page, numbers, policy, and what made them.")
]
Page = Annotated[Path | None, typer.Option("--html", help="The report as one page.")]
Require = Annotated[list[str] | None, typer.Option("--require", metavar="RULE", help=RULE)]
PolicyFile = Annotated[Path | None, typer.Option("--policy", help="Requirements in a TOML file.")]
Verify = Annotated[
    Path | None, typer.Option("--verify", metavar="EVIDENCE", help="Run that audit again and say what differs.")
]
Explainers = Annotated[
    list[str] | None, typer.Option("--explainer", help="See: list explainers.  The verdicts are about the first.")
]
Seeds = Annotated[
    list[str] | None,
    typer.Option("--seeds", metavar="MODEL", help="A model trained alike with another seed; again for more."),
]
Classes = Annotated[
    str | None, typer.Option(metavar="A,B,…", help="Names of the classes, in the order of the model's.")
]


@app.command(epilog='Example: steadygaze audit model/ --data sst2 --html audit.html --require "accuracy>=0.8"')
@everywhere
def audit(
    model: Subject = None,
    data: Maybe = None,
    out: Evidence = None,
    html: Page = None,
    require: Require = None,
    policy: PolicyFile = None,
    verify: Verify = None,
    explainer: Explainers = None,
    seeds: Seeds = None,
    synonyms: Annotated[Path | None, typer.Option(help="Table of synonyms (.parquet, .jsonl).")] = None,
    split: Annotated[str | None, typer.Option(help="Default: test, or the only one there is.")] = None,
    most: Annotated[int | None, typer.Option(min=1, help="Texts, drawn at random.  Default: all.")] = None,
    sample: Annotated[int, typer.Option(min=1, help="Texts that expensive questions are asked about.")] = 100,
    thorough: Annotated[bool, typer.Option("--thorough", help="Ask what takes long, too.")] = False,
    radius: Annotated[float, typer.Option(help="How far word vectors move, in standard deviations.")] = 0.1,
    removal: Annotated[Literal["delete", "pad", "zero"], typer.Option(help="How words are erased.")] = "delete",
    attention: Annotated[
        Literal["last", "rollout"], typer.Option(help="Of a Hugging Face model: which attention is shown.")
    ] = "last",
    classes: Classes = None,
    text: TextColumn = None,
    label: LabelColumn = "label",
    evidence: EvidenceColumn = None,
    drop_empty: DropEmpty = False,
    *,
    common: Common,
) -> None:
    """Ask of a model how far its explanations may be believed."""
    from steadygaze.errors import UserError

    given = {
        "model": model,
        "data": data,
        "split": split,
        "text": tuple(text or ("text",)),
        "label": label,
        "evidence": evidence,
        "classes": tuple(classes.split(",")) if classes else (),
        "explainers": tuple(explainer or ()),
        "seeds": tuple(seeds or ()),
        "synonyms": None if synonyms is None else str(synonyms),
        "attention": attention,
        "most": most,
        "radius": radius,
        "removal": removal,
        "sample": sample,
        "thorough": thorough,
        "seed": common.seed,
        "drop_empty": drop_empty,
    }
    if verify is not None and (out or html or require or policy):
        raise UserError(
            "--verify runs the audit of the evidence again: it takes no --out, --html, --require or --policy"
        )
    if verify is not None:
        _verify(verify, {name: given[name] for name in ("model", "data") if given[name]}, common)
    elif model is None or data is None:
        raise UserError("audit needs a model and data: steadygaze audit MODEL --data DATA, or --verify EVIDENCE")
    else:
        _audit(given, (require or [], policy), (out, html), common)


def _audit(
    given: dict[str, Any],
    rules: tuple[Sequence[str], Path | None],
    places: tuple[Path | None, Path | None],
    common: Common,
) -> None:
    from steadygaze.audit import evidence
    from steadygaze.audit.run import Order
    from steadygaze.config import build
    from steadygaze.errors import UserError

    order, policy, (out, html) = build(Order, given), _policy(*rules), places
    if out is not None:
        evidence.check_free(out)
    if html is not None and html.is_dir():
        raise UserError(f"{html} is a folder; --html takes a file")
    done = _run(order, common)
    if out is not None:
        sealed = evidence.write(out, done.report, _manifest(done, order), policy)
        console(common).print(f"seal (SHA-256 of the manifest): {sealed.seal}", highlight=False, soft_wrap=True)
    if html is not None:
        done.report.to_html(html)
    _show(done, [place for place in places if place is not None], common)
    if policy is not None:
        _gate(done, policy)


def _verify(folder: Path, instead: dict[str, Any], common: Common) -> None:
    """The same audit again, of the model and data named now where they lie elsewhere."""
    from steadygaze.audit import evidence
    from steadygaze.audit.run import Order
    from steadygaze.config import build
    from steadygaze.errors import RequirementNotMet
    from steadygaze.record import to_jsonl

    old = evidence.read(folder)
    order = build(Order, {**old.manifest.settings, **instead})
    done = _run(order, common)
    found = [*evidence.changes(old.manifest, _manifest(done, build(Order, dict(old.manifest.settings))))]
    found += [line for line in evidence.differences(old.report, done.report) if line not in found]
    made = {"report.html": old.report.to_html(), "rows.jsonl": to_jsonl(old.report.rows)}
    found += [
        f"{name} is not what report.json makes: it was changed, or made with other packages"
        for name, text in made.items()
        if (folder / name).read_bytes() != text.encode(errors="replace")
    ]
    if common.json:
        as_json({"evidence": str(folder), "seal": old.seal, "differences": found})
    else:
        print("\n".join(found) or f"{folder} holds: run again, every number is the same")
        print(f"seal (SHA-256 of the manifest): {old.seal}")
    if found:
        raise RequirementNotMet(f"{folder} and the same audit now differ in {len(found)} ways")


def _policy(rules: Sequence[str], file: Path | None) -> "Policy | None":
    """Both together; refused before anything is read where a measure is unknown."""
    from steadygaze.audit.catalogue import MEASURES
    from steadygaze.audit.verdict import QUESTIONS
    from steadygaze.errors import unknown
    from steadygaze.report.policy import Policy, as_policy

    parts = [as_policy(list(rules)), *([as_policy(file)] if file is not None else [])]
    policy = Policy(
        tuple(one for part in parts for one in part.requirements), tuple(one for part in parts for one in part.verdicts)
    )
    for required in policy.requirements:
        if required.measure.partition("/")[0] not in MEASURES:
            raise unknown("measure", required.measure, MEASURES)
    known = [name for question in QUESTIONS for name in (question.key, question.asks)]
    for wanted in policy.verdicts:
        if wanted.question not in known:
            raise unknown("question", wanted.question, known)
    return policy if policy.requirements or policy.verdicts else None


def _run(order: "Order", common: Common) -> "Done":
    from dataclasses import replace

    from steadygaze.audit.evidence import versions
    from steadygaze.audit.run import Machine, run

    with _watching(common) as watch:
        done = run(order, Machine(common.data_dir, common.device, common.batch_size, watch))
    report = replace(done.report, command=("steadygaze", *sys.argv[1:]), versions=versions())
    return replace(done, report=report)


def _manifest(done: "Done", order: "Order") -> Any:
    from dataclasses import asdict

    from steadygaze.audit.manifest import Manifest

    return Manifest(done.model, done.data, asdict(order), order.seeds, done.report.command)


@contextmanager
def _watching(common: Common) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for what is being asked now."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    say = console(common)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=say, transient=True, disable=not say.is_terminal or common.quiet) as bar:
        task = bar.add_task("reading", total=None)

        def watch(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield watch


def _gate(done: "Done", policy: "Policy") -> None:
    from steadygaze.errors import RequirementNotMet

    if failures := done.report.failing(policy):
        raise RequirementNotMet("\n".join(map(str, failures)))
    many = len(policy.requirements) + len(policy.verdicts)
    print(f"{many} requirements met" if many > 1 else "the requirement is met", file=sys.stderr)


def _show(done: "Done", places: Sequence[Path], common: Common) -> None:
    if common.json:
        as_json(done.report.to_dict())
        return
    from rich.console import Console

    Console().print(done.report)
    for place in places:
        console(common).print(f"written: {place}", highlight=False, markup=False, soft_wrap=True)
