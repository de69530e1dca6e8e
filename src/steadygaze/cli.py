"""The command line: parse, call, print.  What the verbs do is in `verbs`; nothing heavy is imported until a verb runs.

Results go to standard output, everything else to standard error.  Exit codes: 0 done, 1 a requirement was not met,
2 the input is wrong, 70 our own fault, 130 interrupted.
"""

import gc
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import steadygaze
from steadygaze.errors import RequirementNotMet, UserError
from steadygaze.options import (
    DATA,
    Common,
    Data,
    DropEmpty,
    EvidenceColumn,
    File,
    LabelColumn,
    Model,
    Out,
    Text,
    TextColumn,
    everywhere,
)

if TYPE_CHECKING:
    from rich.console import Console

    from steadygaze.estimator import TextClassifier

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=steadygaze.__doc__.split("\n")[0],
    epilog="Start with: [bold]steadygaze demo[/bold]",
)


def _version(asked: bool) -> None:
    if asked:
        print(f"steadygaze {steadygaze.__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


@app.command(epilog="Example: steadygaze train reviews.csv --text review --label stars --out model/")
@everywhere
def train(
    data: Data,
    out: Out,
    encoder: Annotated[str, typer.Option(help="See: list encoders.")] = "bilstm",
    technique: Annotated[str, typer.Option(help="See: list techniques.")] = "vanilla",
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any other setting.")] = None,
    vectors: Annotated[str | None, typer.Option(help="Word vectors: a GloVe file (.txt, .gz), or glove-50d.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Times the texts are read.")] = None,
    max_length: Annotated[int | None, typer.Option(min=1, help="Tokens read of a text.")] = None,
    balanced: Annotated[bool, typer.Option("--balanced", help="Weigh every class alike.")] = False,
    start: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="MODEL", help="A trained reference; once for each teacher of a consensus."),
    ] = None,
    teachers: Annotated[
        Path | None, typer.Option(help="Where references and teachers are kept.  Default: teachers, beside --out.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Take up an interrupted run.")] = False,
    text: TextColumn = None,
    label: LabelColumn = "label",
    evidence: EvidenceColumn = None,
    drop_empty: DropEmpty = False,
    *,
    common: Common,
) -> None:
    """Train a classifier and save it as a folder."""
    from steadygaze import verbs
    from steadygaze.config import parse
    from steadygaze.corpus import load_corpus
    from steadygaze.estimator import TextClassifier, load

    clf = TextClassifier(
        encoder,
        technique,
        seed=common.seed,
        epochs=epochs,
        vectors=vectors,
        settings=parse(settings or []),
        batch_size=common.batch_size,
        max_length=max_length,
        class_weight="balanced" if balanced else None,
        device=common.device,
        verbose=not common.quiet,
    )
    verbs.check_train(clf, out, resume)
    reference = [load(folder, common.device) for folder in start or []]
    corpus = load_corpus(
        data,
        text=text or ["text"],
        label=label,
        evidence=evidence,
        data_dir=common.data_dir,
        drop_empty=drop_empty,
    )
    say = _console(common)
    say.print(verbs.describe(corpus), highlight=False, markup=False)
    try:
        clf = verbs.train(clf, corpus, out, resume, reference, teachers)
    except KeyboardInterrupt:
        kept = verbs.unfinished(out)
        say.print(f"interrupted; {kept} keeps what is done: the same command with --resume goes on", markup=False)
        raise
    result = verbs.summary(clf, corpus, out)
    if common.json:
        _json(result)
    else:
        print(f"saved in {out}: validation macro-F1 {result['macro-f1']:.3f} (epoch {result['best_epoch']})")
        say.print(f'next:  steadygaze explain {out} "a text of your own"', highlight=False, markup=False)


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

    clf = _load(model, common)
    chunks = verbs.read(clf, given or [], file, text or ["text"], drop_empty)
    records = verbs.predict(clf, chunks, common.batch_size)
    if common.json:
        _lines(json.dumps(record, ensure_ascii=False).encode(errors="replace") for record in records)
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

    clf = _load(model, common)
    chunks = verbs.read(clf, given or [], file, text or ["text"], drop_empty)
    found = verbs.explain(clf, chunks, explainer, target, granularity, common.batch_size)
    if html is not None:
        shown = verbs.write_explanations(html, found, model)
        if common.json:
            _json({"html": str(html), **shown})
        else:
            print(f"{shown['explained']:,} texts explained, {shown['drawn']:,} of them drawn in {html}")
    elif common.json:
        _lines(one.to_json() for one in found)
    else:
        from rich.console import Console

        console = Console()
        for one in found:
            console.print(one, end="\n\n")


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
    label: LabelColumn = "label",
    drop_empty: DropEmpty = False,
    *,
    common: Common,
) -> None:
    """Certify what no change of the attention weights can do.  With --json: summary and one row per text."""
    from rich.console import Console

    from steadygaze import verbs
    from steadygaze.corpus import load_corpus

    clf = _load(model, common)
    other = None if reference is None else _load(reference, common)
    columns = tuple(text or ("text",))
    corpus = load_corpus(data, text=columns, label=label, data_dir=common.data_dir, drop_empty=drop_empty)
    asked = {"radius": radius, "norm": norm, "k": k, "simplex": simplex, "lower_bound": lower_bound}
    found = verbs.certify(clf, corpus, split, other, common.batch_size, **asked)
    if common.json:
        _json(found.to_dict())
    else:
        Console().print(found)


@app.command("list", epilog="Example: steadygaze list techniques")
@everywhere
def list_(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="corpora, encoders, techniques or explainers.")],
    *,
    common: Common,
) -> None:
    """List what there is to choose from."""
    from rich.console import Console
    from rich.table import Table

    from steadygaze import verbs

    rows = verbs.listing(kind)
    if common.json:
        _json(rows)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(kind, no_wrap=True)
    table.add_column("")
    for row in rows:
        table.add_row(row["name"], row["about"])
        for field in row["settings"]:
            table.add_row(f"  --set {field['name']}={field['default']}", field["about"] or "", style="dim")
    Console().print(table)


@app.command(epilog="Example: steadygaze demo --out runs/demo")
@everywhere
def demo(out: Out = Path("runs/demo"), *, common: Common) -> None:
    """The whole story on a built-in corpus: train, explain, and a report to open in a browser."""
    from steadygaze.demo import tell

    result = tell(out, common.device, common.seed, _console(common))
    if common.json:
        _json(result)


def _load(model: Path, common: Common) -> "TextClassifier":
    from steadygaze.estimator import load

    clf = load(model, common.device)
    gc.collect()
    gc.freeze()  # what is loaded stays: the collector need not look through it again after every few texts
    gc.set_threshold(50_000, 20, 100)  # what is made of a text holds no cycles
    return clf


def _console(common: Common) -> "Console":
    """For people: standard error, so that standard output holds the result alone."""
    from rich.console import Console

    return Console(stderr=True, quiet=common.quiet)


def _json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=1))


def _lines(lines: Iterable[bytes]) -> None:
    for line in lines:
        sys.stdout.buffer.write(line + b"\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: every way a run can end, as an exit code."""
    try:
        app(arguments)
    except UserError as error:
        _stop(f"error: {error}", 2)
    except RequirementNotMet as error:
        _stop(f"requirement not met: {error}", 1)
    except KeyboardInterrupt:
        _stop("", 130)
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:  # no permission, no room, a folder where a file should be
        _stop(f"error: {error}", 2)
    except Exception:
        with tempfile.NamedTemporaryFile("w", prefix="steadygaze-", suffix=".log", delete=False) as log:
            traceback.print_exc(file=log)
        _stop(f"this is our own fault, not yours; please report it with the file {log.name}", 70)


def _stop(message: str, code: int) -> None:
    if message:
        print(message, file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
