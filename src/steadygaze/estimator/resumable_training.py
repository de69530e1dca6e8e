"""Training that can be resumed: fit and save, with an unfinished run in a separate folder."""

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from steadygaze.core.atomic_files import exclusive, recover_folder, remove_folder, remove_leftovers
from steadygaze.core.errors import UserError
from steadygaze.core.output_paths import check_separate
from steadygaze.core.types import Example, Label
from steadygaze.data.corpus import Corpus
from steadygaze.estimator.fit import check_same_run
from steadygaze.estimator.held_out_test import measure
from steadygaze.estimator.inputs import read_split, read_validation, texts_of
from steadygaze.estimator.model_folder import check_free_folder, check_model_folder
from steadygaze.estimator.text_classifier import TextClassifier, load_classifier, references
from steadygaze.estimator.train_config import train_config
from steadygaze.training.checkpoint import has_run
from steadygaze.training.teacher_cache import check_teacher_cache


def unfinished_folder(out: Path) -> Path:
    """Folder of an unfinished run."""
    path = out.absolute()
    return path.with_name(path.name + ".unfinished")


def describe(corpus: Corpus) -> str:
    """One line: size of each split, and dropped examples."""
    sizes = ", ".join(f"{size:,} {split}" for split, size in corpus.sizes.items())
    return f"{corpus.name}: {sizes}" + "".join(
        f"; {reason}: {count:,} left out" for reason, count in corpus.dropped.items()
    )


def columns(examples: Sequence[Example]) -> tuple[list[Any], list[Label | None]]:
    """(X, y) for an estimator."""
    return texts_of(examples), [example.label for example in examples]


TEACHER_CACHE = ".teacher-cache"
"""Folder of teachers and references, next to the trained models."""


def check_train(
    clf: TextClassifier, out: Path, resume: bool, teacher_cache: Path | None = None, replace: bool = False
) -> None:
    """Checks before the data are read."""
    train_config(clf.get_params())
    check_place(out)
    run = unfinished_folder(out)
    if teacher_cache is not None:
        check_separate({"--teacher-cache": teacher_cache, "the run of --out": run})
        check_teacher_cache(teacher_cache)
    if run.exists():
        with exclusive(run, "training"):  # an interrupted run is not locked
            pass
    if run.exists() and not (resume or replace):
        raise UserError(f"{run} contains an interrupted run: resume it with --resume, or start over with --replace")
    if not (resume or replace):
        check_free_folder(out)


def check_place(out: Path) -> None:
    """Raise an error if a model or its run would overwrite other files."""
    recover_folder(out)
    check_model_folder(out)
    run = unfinished_folder(out)
    if run.is_symlink() or (run.exists() and not has_run(run)):
        raise UserError(f"{run} contains other files than an interrupted run; choose another folder than {out}")


def train(
    clf: TextClassifier,
    corpus: Corpus,
    out: Path,
    resume: bool,
    reference: Sequence[TextClassifier] = (),
    teacher_cache: Path | None = None,
    replace: bool = False,
    measure_test: bool = False,
) -> TextClassifier:
    """Fit and save.  An interrupted run can be resumed with resume=True, with the same result to the byte.

    `measure_test`: measure the finished model on the split `test`; its scores are saved with it.
    `replace` discards an interrupted run that is not resumed, and with `resume` a model of another training.
    """
    run, data = unfinished_folder(out), columns(corpus.training)
    validation = columns(corpus.splits["validation"]) if "validation" in corpus.splits else None
    remove_leftovers(out)
    remove_leftovers(run)
    if resume and not run.exists() and out.exists():  # the run is already finished
        finished = load_classifier(out, device=clf.device)
        held_out = None if validation is None else read_validation(validation)
        try:
            check_same_run(
                train_config(clf.get_params()), read_split(*data), held_out, finished.stored_, references(reference)
            )
        except UserError:
            if not replace:
                raise
        else:
            return finished
    if run.exists() and replace and not resume:
        with exclusive(run, "training"):
            remove_folder(run)
    run.mkdir(parents=True, exist_ok=True)  # a run that can be resumed, even before its first epoch ends
    with exclusive(run, "training"):
        try:
            cache = teacher_cache or out.absolute().parent / TEACHER_CACHE
            options = {"validation": validation, "reference": reference, "teacher_cache": cache}
            clf.fit(*data, checkpoint=run, resume=resume, **options)  # type: ignore[arg-type]
        except Exception:
            with suppress(OSError):  # fails if it contains an epoch
                run.rmdir()
            raise
        if measure_test:
            scores = measure(clf, *columns(corpus.splits["test"]))
            description = dataclasses.replace(clf.stored_.description, test_scores=scores)
            clf.stored_ = dataclasses.replace(clf.stored_, description=description)
        clf.save(out)
        remove_folder(run)
    return clf


def summary(clf: TextClassifier, corpus: Corpus, out: Path) -> dict[str, Any]:
    """The result of a training run."""
    best_epoch = clf.stored_.description.best_epoch
    return {
        "model": str(out),
        "corpus": corpus.name,
        "fingerprint": corpus.fingerprint,
        "dropped": corpus.dropped,
        "classes": [label.item() for label in clf.classes_],
        "epochs": len(clf.history_),
        "best_epoch": best_epoch["epoch"],
        "macro-f1": best_epoch["macro-f1"],
        "test": {name: dataclasses.asdict(score) for name, score in clf.stored_.description.test_scores.items()},
        "token_coverage": clf.stored_.description.token_coverage,
        "constant_label": clf.stored_.description.constant_label,
        "synonym_groups": clf.stored_.description.synonym_groups,
        "history": clf.history_,
    }
