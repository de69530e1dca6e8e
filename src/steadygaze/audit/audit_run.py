"""An audit as the command line asks for it: everything it depends on is one record, so that it can be run again."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.audit.audit import check_train, retrain_protocols, run_protocols
from steadygaze.audit.audit_case import silent
from steadygaze.audit.audit_config import ProbeConfig, Removal
from steadygaze.audit.audit_config import fingerprint as fingerprint
from steadygaze.audit.audit_report import AuditRequest
from steadygaze.audit.manifest import Manifest
from steadygaze.audit.protocols.interlocking import interlocking_not_applicable
from steadygaze.core.errors import UserError
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Example, Label
from steadygaze.data.corpora import load_corpus
from steadygaze.data.corpus import Corpus
from steadygaze.estimator.inputs import Split, read_split
from steadygaze.estimator.loading import load_classifier as load_model
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.classifier import Classifier
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.results.report import Report

SEEN = "These are the texts that the model was trained on: the numbers say too much good."
CALLED = (
    "The data call these texts the training split: if the model was trained on them, the numbers say too much good."
)


@settings
class AuditOrder:
    """What an audit's numbers depend on, besides versions and hardware."""

    model: str
    data: str
    split: str | None = None
    text: tuple[str, ...] = ("text",)
    label: str | None = None
    """None: `label`, where there is such a column."""
    rationales: str | None = None
    classes: tuple[str, ...] = ()
    explainers: tuple[str, ...] = ()
    other_seeds: tuple[str, ...] = ()
    train: str | None = None
    """Data on whose training split a rationaliser is trained again; None: it is not."""
    synonyms: str | None = None
    attention: Literal["last", "rollout"] = "last"
    limit: Annotated[int, Field(ge=1)] | None = None
    """Texts, drawn by the seed; None: all."""
    radius: Annotated[float, Field(gt=0, le=10)] = 0.1
    removal: Removal = "delete"
    k: Annotated[int, Field(ge=1)] = 7
    sample: Annotated[int, Field(ge=1)] = 100
    thorough: bool = False
    seed: Annotated[int, Field(ge=0)] = 0
    drop_empty: bool = False

    def plan(self, batch_size: int | None) -> ProbeConfig:
        own: dict[str, Any] = {
            name: getattr(self, name) for name in ("radius", "removal", "k", "sample", "thorough", "seed")
        }
        return ProbeConfig(**own) if batch_size is None else ProbeConfig(**own, batch_size=batch_size)


@dataclass(frozen=True)
class Runtime:
    """What an audit does not depend on: where data lie, what computes, how much at once, who watches."""

    data_dir: Path | None = None
    device: str = "auto"
    batch_size: int | None = None
    watch: Callable[[str, int, int], None] = silent


Again = tuple[TextClassifier, tuple[list[Any], list[Any]]]
"""What is to be trained again, and the texts and labels for it."""


@dataclass(frozen=True)
class LoadedAudit:
    """What is to be audited, read and not yet asked anything."""

    order: AuditOrder
    adapter: ModelAdapter
    others: Sequence[ModelAdapter]
    corpus: Corpus
    split: str
    retraining: Again | None = None

    @cached_property
    def examples(self) -> list[Example]:
        return sample_examples(self.corpus.splits[self.split], self.order.limit, self.order.seed)

    @property
    def model(self) -> dict[str, str]:
        """What identifies it."""
        one = self.adapter
        return {"name": one.name, "kind": one.kind, "fingerprint": one.fingerprint, "device": one.model.device.type}

    @cached_property
    def data(self) -> dict[str, str | int]:
        digest, n = fingerprint(self.examples), len(self.examples)
        again = {} if self.retraining is None else {"train": read_split(*self.retraining[1]).fingerprint()}
        return {"corpus": self.corpus.name, "split": self.split, "fingerprint": digest, "n": n, **again}

    @property
    def folder(self) -> Path | None:
        """Of a model of ours, which has a card to write in."""
        return (
            Path(os.path.expanduser(self.order.model))
            if isinstance(self.adapter.model, Classifier | Rationalizer)
            else None
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether the model has seen these texts in training, as far as can be told."""
        whole, known = self.corpus.splits[self.split], self.adapter.facts.get("trained on")
        labels = [example.label for example in whole if example.label is not None]
        if known and len(labels) == len(whole) and _split(whole, labels).fingerprint().startswith(known):
            return (SEEN,)
        # a file of the user's own is all "train": that says nothing
        return (CALLED,) if self.split == "train" and len(self.corpus.splits) > 1 else ()

    @property
    def labelled(self) -> bool:
        return all(example.label is not None for example in self.examples)


def load(order: AuditOrder, machine: Runtime) -> LoadedAudit:
    subject = _subject(order.model, order, machine)
    again = None if order.train is None else _again(order.train, subject, order, machine)
    others = [_subject(name, order, machine) for name in order.other_seeds]
    corpus = load_corpus(
        order.data,
        text=order.text,
        label=order.label,
        rationales=order.rationales,
        data_dir=machine.data_dir,
        drop_empty=order.drop_empty,
    )
    return LoadedAudit(order, subject, others, corpus, corpus.choose(order.split), again)


def run(given: LoadedAudit, machine: Runtime) -> Report:
    order = given.order
    known = {"corpus": given.corpus.name, "split": given.split, "data": str(given.data["fingerprint"])[:12]}
    asked = AuditRequest(order.explainers, order.plan(machine.batch_size), known, order.synonyms, watch=machine.watch)
    found = run_protocols(given.adapter, given.examples, asked, given.others)
    if given.retraining is not None:
        found = retrain_protocols(found, *given.retraining)
    report = found.report()
    return replace(report, notes=(*report.notes, *given.notes))


def manifest(given: LoadedAudit, report: Report, asked: Mapping[str, Any]) -> Manifest:
    """What made a report; `asked`: its settings, paths as they are recorded."""
    return Manifest(given.model, given.data, asked, tuple(asked["other_seeds"]), report.command, date=report.date)


def _subject(name: str, order: AuditOrder, machine: Runtime) -> ModelAdapter:
    return as_adapter(name, classes=order.classes or None, device=machine.device, attention=order.attention)


def _again(data: str, subject: ModelAdapter, order: AuditOrder, machine: Runtime) -> Again:
    """Refused of a model that cannot lock, before anything is read."""
    if why := interlocking_not_applicable(subject.model):
        raise UserError(f"--train asks whether a model that selects sentences would lock: {why}")
    how: dict[str, Any] = {"text": order.text, "data_dir": machine.data_dir, "drop_empty": order.drop_empty}
    corpus = load_corpus(data, label=order.label or "label", **how)
    examples = corpus.splits[corpus.choose("train")]
    train = [example.text for example in examples], [example.label for example in examples]
    clf = load_model(os.path.expanduser(order.model), machine.device)
    check_train(clf, train)
    return clf, train


def _split(examples: Sequence[Example], labels: list[Label]) -> Split:
    """As `read_split` has it, of one class too."""
    questions = [example.question for example in examples if example.question is not None]
    return Split([example.text for example in examples], questions or None, labels)


STREAM = 0xA0D1
"""Keeps what the audit draws apart from what training drew with the same seed."""


def sample_examples(examples: Sequence[Example], most: int | None, seed: int) -> list[Example]:
    """At most so many of them, in their order; not the texts that training held out with the same seed."""
    if most is None or most >= len(examples):
        return list(examples)
    places = np.random.default_rng((seed, STREAM)).permutation(len(examples))[:most]
    return [examples[i] for i in np.sort(places)]
