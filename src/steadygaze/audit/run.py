"""An audit as the command line asks for it: everything it depends on is one record, so that it can be run again."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from steadygaze.audit.audit import Asked, examine
from steadygaze.audit.case import Plan, silent
from steadygaze.audit.probe.erase import Removal
from steadygaze.config import Field, settings
from steadygaze.corpus import Corpus, load_corpus
from steadygaze.errors import UserError
from steadygaze.report.report import Report
from steadygaze.subject import Subject, as_subject
from steadygaze.types import Example

TRAINED_ON = (
    "The texts are all that the data hold, and are called the training split: of texts the model was trained on, "
    "these numbers say too much good."
)


@settings
class Order:
    """What an audit's numbers depend on, besides versions and hardware."""

    model: str
    data: str
    split: str | None = None
    text: tuple[str, ...] = ("text",)
    label: str = "label"
    evidence: str | None = None
    classes: tuple[str, ...] = ()
    explainers: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    synonyms: str | None = None
    attention: Literal["last", "rollout"] = "last"
    most: Annotated[int, Field(ge=1)] | None = None
    """Texts, drawn by the seed; None: all."""
    radius: Annotated[float, Field(gt=0, le=10)] = 0.1
    removal: Removal = "delete"
    k: Annotated[int, Field(ge=1)] = 7
    sample: Annotated[int, Field(ge=1)] = 100
    thorough: bool = False
    seed: Annotated[int, Field(ge=0)] = 0
    drop_empty: bool = False

    def plan(self, batch_size: int | None) -> Plan:
        own: dict[str, Any] = {
            name: getattr(self, name) for name in ("radius", "removal", "k", "sample", "thorough", "seed")
        }
        return Plan(**own) if batch_size is None else Plan(**own, batch_size=batch_size)


@dataclass(frozen=True)
class Machine:
    """What an audit does not depend on: where data lie, what computes, how much at once, who watches."""

    data_dir: Path | None = None
    device: str = "auto"
    batch_size: int | None = None
    watch: Callable[[str, int, int], None] = silent


@dataclass(frozen=True)
class Done:
    """A report, and what identifies what it is about."""

    report: Report
    model: Mapping[str, str]
    data: Mapping[str, str | int]


def run(order: Order, machine: Machine) -> Done:
    subject = _subject(order.model, order, machine)
    others = [_subject(name, order, machine) for name in order.seeds]
    corpus = load_corpus(
        order.data,
        text=order.text,
        label=order.label,
        evidence=order.evidence,
        data_dir=machine.data_dir,
        drop_empty=order.drop_empty,
    )
    split = _split(corpus, order.split)
    examples = _drawn(corpus.splits[split], order)
    digest = fingerprint(examples)
    known = {"corpus": corpus.name, "split": split, "data": digest[:12]}
    asked = Asked(order.explainers, order.plan(machine.batch_size), known, order.synonyms, watch=machine.watch)
    report = examine(subject, examples, asked, others).report()
    if split == "train":
        report = replace(report, notes=(*report.notes, TRAINED_ON))
    return Done(
        report,
        {
            "name": subject.name,
            "kind": subject.kind,
            "fingerprint": subject.fingerprint,
            "device": subject.model.device.type,
        },
        {"corpus": corpus.name, "split": split, "fingerprint": digest, "n": len(examples)},
    )


def fingerprint(examples: Sequence[Example]) -> str:
    """SHA-256 of everything in them, in order."""
    digest = hashlib.sha256()
    for one in examples:
        digest.update(json.dumps([one.text, one.question, one.label, one.evidence, one.sentences]).encode())
    return digest.hexdigest()


def _subject(name: str, order: Order, machine: Machine) -> Subject:
    return as_subject(name, classes=order.classes or None, device=machine.device, attention=order.attention)


def _split(corpus: Corpus, asked: str | None) -> str:
    """The one named, else the test split, else the only one there is."""
    name = asked or ("test" if "test" in corpus.splits or len(corpus.splits) > 1 else next(iter(corpus.splits)))
    if name not in corpus.splits:
        raise UserError(f"{corpus.name} has no split {name!r}, only {', '.join(corpus.splits)}: name one with --split")
    return name


def _drawn(examples: Sequence[Example], order: Order) -> list[Example]:
    if order.most is None or order.most >= len(examples):
        return list(examples)
    places = np.random.default_rng(order.seed).permutation(len(examples))[: order.most]
    return [examples[i] for i in np.sort(places)]
