"""AuditOrder and LoadedAudit: a reproducible audit from the command line."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import OURS, ModelAdapter
from steadygaze.audit.audit import check_train, retrain_protocols, run_protocols
from steadygaze.audit.audit_case import silent
from steadygaze.audit.audit_config import ProbeConfig
from steadygaze.audit.audit_config import fingerprint as fingerprint
from steadygaze.audit.audit_report import AuditRequest
from steadygaze.audit.manifest import Manifest
from steadygaze.audit.protocols.interlocking import interlocking_not_applicable
from steadygaze.core.errors import UserError
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Example, Label
from steadygaze.data.corpora import load_corpus
from steadygaze.data.corpus import Corpus
from steadygaze.data.splits import sample_rows
from steadygaze.estimator.inputs import Split, read_split
from steadygaze.estimator.loading import load_classifier as load_model
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.results.report import Report
from steadygaze.techniques.perturbations.word_removal import Removal

SEEN = "These are training texts: the scores are optimistic."
CALLED = "These texts are a training split: if the model was trained on them, the scores are optimistic."


@settings
class AuditOrder:
    """The settings that an audit's numbers depend on, besides versions and hardware."""

    model: str
    data: str
    split: str | None = None
    text: tuple[str, ...] = ("text",)
    label: str | None = None
    """None: the column `label`, if it exists."""
    rationales: str | None = None
    classes: tuple[str, ...] = ()
    explainers: tuple[str, ...] = ()
    other_seeds: tuple[str, ...] = ()
    train: str | None = None
    """Data whose training split a rationalizer is retrained on; None: no retraining."""
    synonyms: str | None = None
    attention: Literal["last", "rollout"] = "last"
    limit: Annotated[int, Field(ge=1)] | None = None
    """Number of texts, drawn with the seed; None: all."""
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
    """Settings that do not change the numbers: data folder, device, batch size and progress."""

    data_dir: Path | None = None
    device: str = "auto"
    batch_size: int | None = None
    watch: Callable[[str, int, int], None] = silent


Retraining = tuple[TextClassifier, tuple[list[Any], list[Any]]]
"""The classifier to retrain, and its training texts and labels."""


@dataclass(frozen=True)
class LoadedAudit:
    """The loaded model, data and settings of an audit."""

    order: AuditOrder
    adapter: ModelAdapter
    others: Sequence[ModelAdapter]
    corpus: Corpus
    split: str
    retraining: Retraining | None = None

    @cached_property
    def examples(self) -> list[Example]:
        return sample_examples(self.corpus.splits[self.split], self.order.limit, self.order.seed)

    @property
    def model(self) -> dict[str, str]:
        """The identity of the model, for the manifest."""
        adapter = self.adapter
        return {
            "name": adapter.name,
            "kind": adapter.kind,
            "fingerprint": adapter.fingerprint,
            "device": adapter.model.device.type,
        }

    @cached_property
    def data(self) -> dict[str, str | int]:
        digest, n = fingerprint(self.examples), len(self.examples)
        train = {} if self.retraining is None else {"train": read_split(*self.retraining[1]).fingerprint()}
        return {"corpus": self.corpus.name, "split": self.split, "fingerprint": digest, "n": n, **train}

    @property
    def folder(self) -> Path | None:
        """The folder of a steadygaze model, which has a model card; else None."""
        return Path(os.path.expanduser(self.order.model)) if self.adapter.kind == OURS else None

    @property
    def notes(self) -> tuple[str, ...]:
        """A warning if the model was, or may have been, trained on these texts."""
        whole, known = self.corpus.splits[self.split], self.adapter.facts.get("trained on")
        labels = [example.label for example in whole if example.label is not None]
        if known and len(labels) == len(whole) and _split(whole, labels).fingerprint().startswith(known):
            return (SEEN,)
        # A single file is always the split "train".
        return (CALLED,) if self.split == "train" and len(self.corpus.splits) > 1 else ()

    @property
    def labelled(self) -> bool:
        return all(example.label is not None for example in self.examples)


def load(order: AuditOrder, machine: Runtime) -> LoadedAudit:
    subject = _subject(order.model, order, machine)
    retraining = None if order.train is None else _retraining(order.train, subject, order, machine)
    others = [_subject(name, order, machine) for name in order.other_seeds]
    corpus = load_corpus(
        order.data,
        text=order.text,
        label=order.label,
        rationales=order.rationales,
        data_dir=machine.data_dir,
        drop_empty=order.drop_empty,
    )
    return LoadedAudit(order, subject, others, corpus, corpus.choose(order.split), retraining)


def run(given: LoadedAudit, machine: Runtime) -> Report:
    order = given.order
    facts = {"corpus": given.corpus.name, "split": given.split, "data": str(given.data["fingerprint"])[:12]}
    request = AuditRequest(order.explainers, order.plan(machine.batch_size), facts, order.synonyms, watch=machine.watch)
    findings = run_protocols(given.adapter, given.examples, request, given.others)
    if given.retraining is not None:
        findings = retrain_protocols(findings, *given.retraining)
    report = findings.report()
    return replace(report, notes=(*report.notes, *given.notes))


def manifest(given: LoadedAudit, report: Report, asked: Mapping[str, Any]) -> Manifest:
    """The manifest of a report; `asked`: its settings, with portable paths."""
    return Manifest(given.model, given.data, asked, tuple(asked["other_seeds"]), report.command, date=report.date)


def _subject(name: str, order: AuditOrder, machine: Runtime) -> ModelAdapter:
    return as_adapter(name, classes=order.classes or None, device=machine.device, attention=order.attention)


def _retraining(data: str, subject: ModelAdapter, order: AuditOrder, machine: Runtime) -> Retraining:
    if why := interlocking_not_applicable(subject.model):
        raise UserError(f"--train needs a rationalizer that selects sentences: {why}")
    options: dict[str, Any] = {"text": order.text, "data_dir": machine.data_dir, "drop_empty": order.drop_empty}
    corpus = load_corpus(data, label=order.label or "label", **options)
    examples = corpus.splits[corpus.choose("train")]
    train = [example.text for example in examples], [example.label for example in examples]
    clf = load_model(os.path.expanduser(order.model), machine.device)
    check_train(clf, train)
    return clf, train


def _split(examples: Sequence[Example], labels: list[Label]) -> Split:
    """Like `read_split`, but a single class is allowed."""
    questions = [example.question for example in examples if example.question is not None]
    return Split([example.text for example in examples], questions or None, labels)


STREAM = 0xA0D1
"""Separates the audit's random stream from that of training with the same seed."""


def sample_examples(examples: Sequence[Example], most: int | None, seed: int) -> list[Example]:
    """At most `most` random examples, in their order."""
    if most is None or most >= len(examples):
        return list(examples)
    return [examples[row] for row in sample_rows(len(examples), most, (seed, STREAM))]
