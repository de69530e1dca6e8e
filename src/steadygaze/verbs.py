"""What each verb of the command line does, without parsing and printing."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from steadygaze import infer
from steadygaze.audit import certificate
from steadygaze.corpus import Corpus, stream
from steadygaze.errors import UserError, unknown
from steadygaze.estimator import Granularity, TextClassifier, load, references
from steadygaze.explanation import Explanation
from steadygaze.fitting import refuse_other
from steadygaze.inputs import read_split, read_validation
from steadygaze.lanes import lanes_for, side_by_side
from steadygaze.order import order
from steadygaze.report import render, write
from steadygaze.store import refuse_foreign
from steadygaze.types import Example, Label

CHUNK = 1024
"""Texts read, explained and written at a time: memory does not grow with the file."""
SHELF = ".shelf"
"""Where references and teachers are kept, beside the models made from them."""
DRAWN = 1000
"""Texts that a page shows at most; a browser would choke on more."""


def unfinished(out: Path) -> Path:
    """Where a run is kept until its model is whole."""
    whole = out.absolute()
    return whole.with_name(whole.name + ".unfinished")


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


def describe(corpus: Corpus) -> str:
    """One line: how much there is, and what was left out."""
    sizes = ", ".join(f"{size:,} {split}" for split, size in corpus.sizes.items())
    return f"{corpus.name}: {sizes}" + "".join(f"; {why}: {count:,} left out" for why, count in corpus.dropped.items())


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
        "history": clf.history_,
    }


def columns(examples: Sequence[Example]) -> tuple[list[Any], list[Label | None]]:
    """(X, y) as an estimator takes them."""
    return texts(examples), [example.label for example in examples]


def texts(examples: Sequence[Example]) -> list[Any]:
    return [e.text if e.question is None else (e.text, e.question) for e in examples]


def read(
    clf: TextClassifier, given: Sequence[str], file: Path | None, text: Sequence[str], drop_empty: bool
) -> Iterator[list[Any]]:
    """Texts of the command line, then those of a file, a chunk at a time."""
    if not given and file is None:
        raise UserError('nothing to read: give a text in quotes, as in: predict MODEL "A fine film." or --file FILE')
    if given and clf.stored_.description.pair:
        if len(given) != 2:
            raise UserError(f"this model reads a text and a question about it: give both, found {len(given)} texts")
        yield [(given[0], given[1])]
    elif given:
        yield list(given)
    if file is not None:
        for examples in stream(file, text=text, drop_empty=drop_empty, chunk=CHUNK):
            yield texts(examples)


def predict(
    clf: TextClassifier, chunks: Iterator[list[Any]], batch_size: int | None = None
) -> Iterator[dict[str, Any]]:
    """One record per text, in order."""
    classes = [str(label) for label in clf.classes_]
    asked = partial(clf.predict_proba, batch_size=batch_size or infer.BATCH)
    for chunk, rows in _side_by_side(clf, asked, chunks):
        for item, chances in zip(chunk, rows.tolist(), strict=True):
            best = max(range(len(chances)), key=chances.__getitem__)
            record = {"text": item} if isinstance(item, str) else {"text": item[0], "question": item[1]}
            label = clf.classes_[best].item()
            yield {**record, "label": label, "probabilities": dict(zip(classes, chances, strict=True))}


def explain(
    clf: TextClassifier,
    chunks: Iterator[list[Any]],
    explainer: str = "attention",
    target: str | None = None,
    granularity: Granularity = "word",
    batch_size: int | None = None,
) -> Iterator[Explanation]:
    """One Explanation per text, in order."""
    aim = None if target is None else known_label(clf, target)
    asked = partial(
        clf.explain, explainer=explainer, target=aim, granularity=granularity, batch_size=batch_size or infer.BATCH
    )
    for _, explained in _side_by_side(clf, asked, chunks):
        yield from explained


def certify(
    clf: TextClassifier,
    corpus: Corpus,
    split: str | None = None,
    reference: TextClassifier | None = None,
    batch_size: int | None = None,
    **asked: Any,
) -> certificate.Certificates:
    """One Certificate per text of a split: the one named, else the test split, else the only one there is."""
    name = split or ("test" if "test" in corpus.splits or len(corpus.splits) > 1 else next(iter(corpus.splits)))
    if name not in corpus.splits:
        raise UserError(f"{corpus.name} has no split {name!r}, only {', '.join(corpus.splits)}: name one with --split")
    found = texts(corpus.splits[name])
    return certificate.certify(clf, found, reference=reference, batch_size=batch_size or infer.BATCH, **asked)


def _side_by_side(
    clf: TextClassifier, work: Callable[[list[Any]], Any], chunks: Iterator[list[Any]]
) -> Iterator[tuple[list[Any], Any]]:
    """Every chunk and what became of it."""
    model = clf.stored_.model
    with infer.evaluation(model):
        yield from side_by_side(lambda chunk: (chunk, work(chunk)), chunks, lanes_for(next(model.parameters()).device))


def known_label(clf: TextClassifier, written: str) -> Label:
    """The label that a word of the command line stands for."""
    labels: dict[str, Label] = {str(label): label.item() for label in clf.classes_}
    if written not in labels:
        raise unknown("label", written, labels)
    return labels[written]


def write_explanations(path: Path, found: Iterator[Explanation], model: Path) -> dict[str, int]:
    """A page of the first DRAWN texts; the others are counted."""
    drawn = list(islice(found, DRAWN))
    total = len(drawn) + sum(1 for _ in found)
    lead = f"What the model {model.name} predicts, and how much its decoder was given of each word."
    notes = [f"{total - len(drawn):,} more texts were explained and are not drawn here."] if total > len(drawn) else []
    write(path, render("Explanations", lead=lead, explanations=drawn, notes=notes))
    return {"explained": total, "drawn": len(drawn)}
