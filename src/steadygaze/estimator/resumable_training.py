"""Training that can be resumed: fit and save classifiers, with an unfinished run in a separate folder."""

import dataclasses
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadygaze.core.atomic_files import exclusive, recover_folder, remove_folder, remove_leftovers
from steadygaze.core.errors import UserError
from steadygaze.core.output_paths import check_separate
from steadygaze.core.types import Example, Label, inputs_of
from steadygaze.data.corpus import Corpus
from steadygaze.estimator.fit import NO_FILES, CheckpointConfig, FitRequest, check_same_run, fit_models
from steadygaze.estimator.held_out_test import measure
from steadygaze.estimator.inputs import read_split, read_validation, validation_size
from steadygaze.estimator.model_folder import check_free_folder, check_model_folder
from steadygaze.estimator.text_classifier import TextClassifier, load_classifier, references
from steadygaze.estimator.train_config import train_config
from steadygaze.training.checkpoint import has_run
from steadygaze.training.progress import OnEpoch, TrainingDiverged
from steadygaze.training.teacher_cache import check_teacher_cache


@dataclass(frozen=True)
class ClassifierFit:
    """A classifier to fit, with the arguments of its own `fit`."""

    classifier: TextClassifier
    reference: Sequence[TextClassifier] = ()
    files: CheckpointConfig = NO_FILES
    on_epoch: OnEpoch | None = None


def fit_many(
    fits: Sequence[ClassifierFit],
    X: Any,
    y: Any,
    *,
    validation: tuple[Any, Any] | None = None,
) -> list[TextClassifier | None]:
    """Fit classifiers in place; each equals its own fit, to rounding on a GPU.

    On a GPU, one program trains the classifiers of one technique and architecture.  They may differ in seed, in
    learning rate, clipping and weight decay, and in the numbers of the technique that its `stacked_settings` name.

    Returns
    -------
    list
        The classifiers in order; None for a model that diverged, if another did not, or that its `on_epoch` stopped.
    """
    for item in fits:
        if item.classifier.n_seeds != 1:
            raise UserError("fit_many takes classifiers with n_seeds=1: pass one classifier for each seed")
    requests = [
        FitRequest(train_config(fit.classifier.get_params(False)), fit.files, references(fit.reference), fit.on_epoch)
        for fit in fits
    ]
    held_out = None if validation is None else read_validation(validation)
    models = fit_models(requests, read_split(X, y), held_out, fits[0].classifier._watcher())
    return [None if model is None else item.classifier._take(model) for item, model in zip(fits, models, strict=True)]


def unfinished_folder(out: Path) -> Path:
    """Folder of an unfinished run."""
    path = out.absolute()
    return path.with_name(path.name + ".unfinished")


def describe(corpus: Corpus, *, training: bool = False) -> str:
    """One line: size of each split, and dropped examples.

    `training`: with the validation texts that training holds out, if the corpus has none.
    """
    sizes: dict[str, int] = dict(corpus.sizes)
    held_out = ""
    if training and "validation" not in sizes:
        sizes["validation"] = validation_size([example.label for example in corpus.training])
        sizes["train"] -= sizes["validation"]
        held_out = " (a tenth of the training texts)" if sizes["validation"] else " (too few texts)"
    order = sorted(sizes, key=lambda name: (*SPLITS, name).index(name))
    parts = [f"{sizes[name]:,} {name}{held_out if name == 'validation' else ''}" for name in order]
    return "; ".join(filter(None, [f"{corpus.name}: {', '.join(parts)}", corpus.omissions]))


def columns(examples: Sequence[Example]) -> tuple[list[Any], list[Label | None]]:
    """(X, y) for an estimator."""
    return inputs_of(examples), [example.label for example in examples]


SPLITS = ("train", "validation", "test")
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


@dataclass(frozen=True)
class ModelTraining:
    """A model to train and its folder; `reference`: trained references or teachers."""

    clf: TextClassifier
    out: Path
    reference: Sequence[TextClassifier] = ()
    on_epoch: OnEpoch | None = None
    """Receives the record of each epoch; `TrainingStopped` ends the training, and leaves the unfinished run."""


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

    `measure_test`: measure the finished model on the split `test`; its scores are saved with it.  With `replace`, an
    interrupted run that is not resumed is discarded; with `resume` as well, also a model of another training.
    """
    (model,) = train_many([ModelTraining(clf, out, reference)], corpus, resume, teacher_cache, replace, measure_test)
    assert model is not None  # one model that diverges is an error
    return model


def train_many(
    trainings: Sequence[ModelTraining],
    corpus: Corpus,
    resume: bool,
    teacher_cache: Path | None = None,
    replace: bool = False,
    measure_test: bool = False,
) -> list[TextClassifier | None]:
    """Do the same for several models, which a GPU trains at the same time where possible; finished ones are loaded.

    None: the model diverged, but another did not; or its `on_epoch` stopped it.
    """
    models: dict[int, TextClassifier | None] = {}
    with ExitStack() as locks:
        fits: dict[int, ClassifierFit] = {}
        for number, item in enumerate(trainings):
            finished = _finished(item, corpus, replace) if resume else None
            if finished is not None:
                models[number] = finished
                continue
            run = _start_run(item.out, replace and not resume, locks)
            files = CheckpointConfig(run, resume, teacher_cache or item.out.absolute().parent / TEACHER_CACHE)
            fits[number] = ClassifierFit(item.clf, item.reference, files, item.on_epoch)
        if fits:
            try:
                fitted = _fit_among(list(fits.values()), corpus, several=bool(models))
            except Exception:
                for number in fits:
                    with suppress(OSError):  # fails if it contains an epoch
                        unfinished_folder(trainings[number].out).rmdir()
                raise
            models |= zip(fits, fitted, strict=True)
        for number in fits:
            if (clf := models[number]) is not None:
                _save(clf, trainings[number].out, corpus, measure_test)
    return [models[number] for number in range(len(trainings))]


def _fit_among(fits: Sequence[ClassifierFit], corpus: Corpus, several: bool) -> list[TextClassifier | None]:
    """Fit classifiers; `several`: others are finished, so that it is not an error if all of these diverge."""
    try:
        return fit_many(fits, *columns(corpus.training), validation=_validation(corpus))
    except TrainingDiverged as error:
        if not several:
            raise
        seeds = ", ".join(str(item.classifier.seed) for item in fits)
        fits[0].classifier._watcher().warn(f"seed {seeds}: {error}  The other models are finished.")
        return [None] * len(fits)


def _validation(corpus: Corpus) -> tuple[list[Any], list[Label | None]] | None:
    return columns(corpus.splits["validation"]) if "validation" in corpus.splits else None


def _finished(item: ModelTraining, corpus: Corpus, replace: bool) -> TextClassifier | None:
    """Load the model if its run is finished; raise if it was trained in another way, unless it is replaced."""
    remove_leftovers(item.out)
    remove_leftovers(unfinished_folder(item.out))
    if unfinished_folder(item.out).exists() or not item.out.exists():
        return None
    finished, held_out = load_classifier(item.out, device=item.clf.device), _validation(corpus)
    validation = None if held_out is None else read_validation(held_out)
    config, data = train_config(item.clf.get_params()), read_split(*columns(corpus.training))
    try:
        check_same_run(config, data, validation, finished.stored_, references(item.reference))
    except UserError:
        if not replace:
            raise
        return None
    return finished


def _start_run(out: Path, discard: bool, locks: ExitStack) -> Path:
    """Return the locked folder of a run that can be resumed, even before its first epoch ends."""
    run = unfinished_folder(out)
    remove_leftovers(out)
    remove_leftovers(run)
    if run.exists() and discard:
        with exclusive(run, "training"):
            remove_folder(run)
    run.mkdir(parents=True, exist_ok=True)
    locks.enter_context(exclusive(run, "training"))
    return run


def _save(clf: TextClassifier, out: Path, corpus: Corpus, measure_test: bool) -> None:
    """Save a trained model and remove its run."""
    if measure_test:
        scores = measure(clf, *columns(corpus.splits["test"]))
        description = dataclasses.replace(clf.stored_.description, test_scores=scores)
        clf.stored_ = dataclasses.replace(clf.stored_, description=description)
    clf.save(out)
    remove_folder(unfinished_folder(out))


def summary(clf: TextClassifier, corpus: Corpus, out: Path) -> dict[str, Any]:
    """The result of a training run."""
    best_epoch = clf.stored_.description.best_epoch
    return {
        "health": clf.health.to_list(),
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
        "synonym_groups": clf.stored_.description.synonym_groups,
        "history": clf.history_,
    }
