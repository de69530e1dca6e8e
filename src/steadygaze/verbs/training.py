"""Training, kept until it is whole."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from steadygaze.corpus import Corpus
from steadygaze.errors import UserError
from steadygaze.estimator import TextClassifier, load, references
from steadygaze.fitting import refuse_other
from steadygaze.inputs import read_split, read_validation
from steadygaze.order import order
from steadygaze.store import refuse_foreign
from steadygaze.verbs.given import columns, unfinished

SHELF = ".shelf"
"""Where references and teachers are kept, beside the models made from them."""


def check_train(clf: TextClassifier, out: Path, resume: bool, shelf: Path | None = None) -> None:
    """All that can be refused before the data are read."""
    order(clf.get_params())
    refuse_foreign(out)
    if shelf is not None and shelf.exists() and not shelf.is_dir():
        raise UserError(f"--shelf {shelf} is a file; it must be a folder, or not be there yet")
    if shelf is not None and shelf.absolute() in (out.absolute(), unfinished(out)):
        raise UserError(f"--shelf {shelf} is where the model is to be written; name another folder")
    if unfinished(out).exists() and not resume:
        raise UserError(
            f"{unfinished(out)} holds an interrupted run: continue it with --resume, or delete it to start over"
        )


def train(
    clf: TextClassifier,
    corpus: Corpus,
    out: Path,
    resume: bool,
    reference: Sequence[TextClassifier] = (),
    shelf: Path | None = None,
) -> TextClassifier:
    """Fit and save.  Interrupted at any moment, it can be taken up with resume=True and ends in the same bytes."""
    if "train" not in corpus.splits:
        raise UserError(f"{corpus.name} has no split to train on, only {', '.join(corpus.splits)}")
    run, given = unfinished(out), columns(corpus.splits["train"])
    validation = columns(corpus.splits["validation"]) if "validation" in corpus.splits else None
    if resume and not run.exists() and out.exists():  # it was finished after all
        done = load(out, device=clf.device)
        held_out = None if validation is None else read_validation(validation)
        refuse_other(order(clf.get_params()), read_split(*given), held_out, done.stored_, references(reference))
        _sweep(out)
        return done
    run.mkdir(parents=True, exist_ok=True)  # from here on there is a run to resume, even before its first epoch ends
    try:
        kept = shelf or out.absolute().parent / SHELF
        known = {"validation": validation, "reference": reference, "shelf": kept}
        clf.fit(*given, checkpoint=run, resume=resume, **known)  # type: ignore[arg-type]
    except UserError:
        with suppress(OSError):  # it holds an epoch: that is kept
            run.rmdir()
        raise
    clf.save(out)
    _remove(run)
    _sweep(out)
    return clf


def _remove(folder: Path) -> None:
    """At once, by a rename: a run half deleted would look like one to resume."""
    gone = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(gone, ignore_errors=True)
    os.replace(folder, gone)
    shutil.rmtree(gone, ignore_errors=True)


def _sweep(out: Path) -> None:
    """What a kill while saving or deleting may have left beside a model that is whole now."""
    whole = out.absolute()
    for left in (*whole.parent.glob(f".{whole.name}.????????.tmp"), whole.with_name(f".{whole.name}.unfinished.old")):
        shutil.rmtree(left, ignore_errors=True)


def summary(clf: TextClassifier, corpus: Corpus, out: Path) -> dict[str, Any]:
    """What came of a training, for people and programs."""
    kept = clf.stored_.description.kept
    return {
        "model": str(out),
        "corpus": corpus.name,
        "fingerprint": corpus.fingerprint,
        "dropped": corpus.dropped,
        "classes": [label.item() for label in clf.classes_],
        "epochs": len(clf.history_),
        "best_epoch": kept["epoch"],
        "macro-f1": kept["macro-f1"],
        "token_coverage": clf.stored_.description.token_coverage,
        "history": clf.history_,
    }
