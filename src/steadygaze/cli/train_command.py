"""steadygaze train."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from steadygaze.cli.application import (
    Common,
    Data,
    DropEmpty,
    LabelColumn,
    Out,
    RationalesColumn,
    TextColumn,
    app,
    as_json,
    common_options,
    print_line,
    show,
    stderr_console,
)

Epochs = Annotated[int | None, typer.Option(min=1, help="Times the texts are read.  Default: 8; few texts oftener.")]
Start = Annotated[
    list[Path] | None,
    typer.Option("--from", metavar="MODEL", help="A trained reference; once for each teacher of a consensus."),
]
TeacherCacheFolder = Annotated[
    Path | None,
    typer.Option(
        help="Where references and teachers are kept for the next run.  Default: .teacher_cache, beside --out."
    ),
]


@app.command(epilog="Example: steadygaze train reviews.csv --text review --label stars --out model/")
@common_options
def train(
    data: Data,
    out: Out,
    encoder: Annotated[str, typer.Option(help="See: list encoders.")] = "bilstm",
    technique: Annotated[str, typer.Option(help="See: list techniques.")] = "vanilla",
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any other setting.")] = None,
    vectors: Annotated[str | None, typer.Option(help="Word vectors: a GloVe file (.txt, .gz), or glove-50d.")] = None,
    epochs: Epochs = None,
    max_length: Annotated[int | None, typer.Option(min=1, help="Tokens read of a text.")] = None,
    balanced: Annotated[bool, typer.Option("--balanced", help="Weigh every class alike.")] = False,
    start: Start = None,
    teacher_cache: TeacherCacheFolder = None,
    resume: Annotated[bool, typer.Option("--resume", help="Take up an interrupted run.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Put the new model in the place of one in --out.")] = False,
    text: TextColumn = None,
    label: LabelColumn = "label",
    rationales: RationalesColumn = None,
    drop_empty: DropEmpty = False,
    *,
    common: Common,
) -> None:
    """Train a classifier and save it as a folder."""
    from steadygaze.core.settings import parse
    from steadygaze.data.corpora import load_corpus
    from steadygaze.estimator import resumable_training
    from steadygaze.estimator.loading import load_classifier as load
    from steadygaze.estimator.model_folder import check_free_folder as refuse_occupied
    from steadygaze.estimator.text_classifier import TextClassifier

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
    resumable_training.check_train(clf, out, resume, teacher_cache, replace)
    if not (resume or replace):
        refuse_occupied(out)
    reference = [load(folder, common.device) for folder in start or []]
    columns: dict[str, Any] = {"text": text or ["text"], "label": label, "rationales": rationales}
    corpus = load_corpus(data, **columns, data_dir=common.data_dir, drop_empty=drop_empty)
    print_line(stderr_console(common), resumable_training.describe(corpus))
    with _resumable(out, common):
        clf = resumable_training.train(clf, corpus, out, resume, reference, teacher_cache, replace)
    always = clf.stored_.description.constant_label
    _show({**resumable_training.summary(clf, corpus, out), "constant_label": always}, out, common)


@contextmanager
def _resumable(out: Path, common: Common) -> Iterator[None]:
    """An interrupted training names the folder that keeps it, and how to go on."""
    from steadygaze.estimator import resumable_training

    try:
        yield
    except KeyboardInterrupt:
        kept = resumable_training.unfinished_folder(out)
        print_line(
            stderr_console(common), f"interrupted; {kept} keeps what is done: the same command with --resume goes on"
        )
        raise


def _show(result: dict[str, Any], out: Path, common: Common) -> None:
    from steadygaze.data.word_vectors import FEW

    if common.json:
        as_json(result)
        return
    show(f"saved in {out}: validation macro-F1 {result['macro-f1']:.3f} (epoch {result['best_epoch']})")
    if (covered := result["token_coverage"]) is not None:
        few = ": few; the others started from random vectors" if covered < FEW else ""
        show(f"{covered:.1%} of the tokens in the training texts have a vector{few}")
    if result["constant_label"] is not None:
        show(f"this model gives every text the same label: {result['constant_label']}.  It has learnt nothing")
    print_line(stderr_console(common), f'next:  steadygaze explain {out} "a text of your own"')
