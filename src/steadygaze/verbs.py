"""What each verb of the command line does, without parsing and printing."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from steadygaze.corpus import CORPORA, Corpus, stream
from steadygaze.errors import UserError, unknown
from steadygaze.estimator import Granularity, TextClassifier, load
from steadygaze.explanation import Explanation
from steadygaze.order import order
from steadygaze.store import refuse_foreign
from steadygaze.types import Example, Label

CHUNK = 1024
"""Texts read, explained and written at a time: memory does not grow with the file."""


def unfinished(out: Path) -> Path:
    """Where a run is kept until its model is whole."""
    return out.with_name(out.name + ".unfinished")


def train(clf: TextClassifier, corpus: Corpus, out: Path, resume: bool) -> TextClassifier:
    """Fit and save.  Interrupted at any moment, it can be taken up with resume=True and ends in the same bytes."""
    order(clf.get_params())
    refuse_foreign(out)
    run = unfinished(out)
    if run.exists() and not resume:
        raise UserError(f"{run} holds an interrupted run: continue it with --resume, or delete it to start over")
    if resume and not run.exists() and out.exists():
        return load(out, device=clf.device)
    if "train" not in corpus.splits:
        raise UserError(f"{corpus.name} has no split to train on, only {', '.join(corpus.splits)}")
    validation = corpus.splits.get("validation")
    clf.fit(
        *columns(corpus.splits["train"]),
        validation=None if validation is None else columns(validation),
        checkpoint=run,
        resume=resume,
    )
    clf.save(out)
    shutil.rmtree(run, ignore_errors=True)
    return clf


def columns(examples: Sequence[Example]) -> tuple[list[Any], list[Label | None]]:
    """(X, y) as an estimator takes them."""
    return texts(examples), [example.label for example in examples]


def texts(examples: Sequence[Example]) -> list[Any]:
    return [e.text if e.question is None else (e.text, e.question) for e in examples]


def read(
    given: Sequence[str], file: Path | None, text: Sequence[str], pair: bool, drop_empty: bool
) -> Iterator[list[Any]]:
    """Texts of the command line, then those of a file, a chunk at a time."""
    if not given and file is None:
        raise UserError(
            'nothing to read: give a text in quotes, or --file FILE.  For example: predict MODEL "A fine film."'
        )
    if given and pair:
        if len(given) != 2:
            raise UserError(f"this model reads a text and a question about it: give both, found {len(given)}")
        yield [(given[0], given[1])]
    elif given:
        yield list(given)
    if file is not None:
        for examples in stream(file, text=text, drop_empty=drop_empty, chunk=CHUNK):
            yield texts(examples)


def predict(clf: TextClassifier, chunks: Iterator[list[Any]]) -> Iterator[dict[str, Any]]:
    """One record per text, in order."""
    classes = [str(label) for label in clf.classes_]
    for chunk in chunks:
        for item, chances in zip(chunk, clf.predict_proba(chunk).tolist(), strict=True):
            best = max(range(len(chances)), key=chances.__getitem__)
            record = {"text": item} if isinstance(item, str) else {"text": item[0], "question": item[1]}
            label = clf.classes_[best].item()
            yield {**record, "label": label, "probabilities": dict(zip(classes, chances, strict=True))}


def explain(
    clf: TextClassifier, chunks: Iterator[list[Any]], explainer: str, target: str | None, granularity: Granularity
) -> Iterator[Explanation]:
    """One Explanation per text, in order."""
    aim = None if target is None else known_label(clf, target)
    for chunk in chunks:
        yield from clf.explain(chunk, explainer=explainer, target=aim, granularity=granularity)


def known_label(clf: TextClassifier, written: str) -> Label:
    """The label that a word of the command line stands for."""
    labels: dict[str, Label] = {str(label): label.item() for label in clf.classes_}
    if written not in labels:
        raise unknown("label", written, labels)
    return labels[written]


def listing(kind: str) -> list[dict[str, Any]]:
    """What is registered: name, what it is, and its settings."""
    from steadygaze.encode import ENCODERS, TRANSFORMER
    from steadygaze.explain import EXPLAINERS
    from steadygaze.objective import TECHNIQUES

    kinds: Mapping[str, Mapping[str, Any]] = {
        "corpora": {name: corpus.about for name, corpus in CORPORA.items()},
        "encoders": {
            **{name: tower.about for name, tower in ENCODERS.items()},
            f"{TRANSFORMER}NAME": "any Hugging Face encoder: a hub id, a folder, or minilm",
        },
        "techniques": {name: technique.__doc__ for name, technique in TECHNIQUES.items()},
        "explainers": {name: explainer.__doc__ for name, explainer in EXPLAINERS.items()},
    }
    if kind not in kinds:
        raise unknown("kind of thing to list", kind, kinds)
    fields = {name: _fields(technique) for name, technique in TECHNIQUES.items()} if kind == "techniques" else {}
    return [
        {"name": name, "about": (about or "").split("\n")[0], "settings": fields.get(name, [])}
        for name, about in kinds[kind].items()
    ]


def _fields(cls: Any) -> list[dict[str, Any]]:
    described = cls.__pydantic_fields__
    return [{"name": n, "default": field.default, "about": field.description} for n, field in described.items()]
