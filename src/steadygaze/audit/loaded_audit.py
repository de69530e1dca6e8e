"""LoadedAudit: load the models and texts that an AuditConfig names, for the command and for the verification."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.two_class_models import two_class_models
from steadygaze.audit.audit import check_train, run_audit, trainable
from steadygaze.audit.manifest import Manifest
from steadygaze.audit.prepare_case import AuditRequest, draw_texts, fingerprint
from steadygaze.core.types import Example, Label, texts_of
from steadygaze.data.corpora import load_corpus
from steadygaze.data.corpus import Corpus
from steadygaze.estimator.inputs import read_split
from steadygaze.estimator.resumable_training import columns
from steadygaze.results.audit_config import AuditConfig, Runtime
from steadygaze.results.report import Report

if TYPE_CHECKING:
    from steadygaze.adapters.prompt import Prompt

TRAINING_SPLIT = "These texts are a training split: if the model was trained on them, the scores are optimistic."


@dataclass(frozen=True)
class LoadedAudit:
    """The request of an audit, and the corpus that its texts come from."""

    request: AuditRequest
    corpus: Corpus
    split: str
    config: AuditConfig
    """The settings, with the limit that was used."""

    @property
    def labeled(self) -> bool:
        return all(example.label is not None for example in self.request.examples)

    @property
    def model(self) -> dict[str, str]:
        """The identity of the model, for the manifest."""
        adapter = self.request.adapter
        return {
            "name": adapter.name,
            "kind": adapter.kind,
            "fingerprint": adapter.fingerprint,
            "device": adapter.model.device.type,
        }

    @cached_property
    def data(self) -> dict[str, str | int]:
        """The identity of the texts, for the manifest."""
        digest, n, train = fingerprint(self.request.examples), len(self.request.examples), self.request.train
        training = {} if train is None else {"train": read_split(*train).fingerprint()}
        return {"corpus": self.corpus.name, "split": self.split, "fingerprint": digest, "n": n, **training}

    def run(self) -> Report:
        split = self.split if len(self.corpus.splits) > 1 else "all rows"
        facts = {"corpus": self.corpus.name, "split": split, "data": str(self.data["fingerprint"])[:12]}
        return run_audit(replace(self.request, facts=facts)).report()

    def manifest(self, report: Report, settings: Mapping[str, Any]) -> Manifest:
        """The manifest of a report; `settings` have portable paths."""
        others = tuple(settings["other_seeds"])
        return Manifest(self.model, self.data, settings, others, report.command, date=report.date)


def load_audit(config: AuditConfig, runtime: Runtime) -> LoadedAudit:
    options: dict[str, Any] = {
        "classes": config.classes or None,
        "attention": config.attention,
        "device": runtime.device,
        "import_objects": runtime.import_objects,
        "prompt": _prompt(config),
    }
    adapter = as_adapter(config.model, **options)
    train = None if config.train is None else _train(config, adapter, runtime)
    others = [as_adapter(name, **options) for name in config.other_seeds]
    corpus = load_corpus(config.data, **config.columns, data_dir=runtime.data_dir, task=adapter.task)
    split = corpus.choose(config.split)
    draw = draw_texts(len(corpus.splits[split]), config.limit, config.seed, adapter)
    examples = draw.select(corpus.splits[split])
    (adapter, *others), examples = one_output([adapter, *others], examples, config.target, config.threshold)
    request = AuditRequest(
        adapter,
        examples,
        config,
        config.explainers,
        others,
        config.synonyms,
        train,
        notes=_notes(adapter, corpus, split),
        runtime=runtime,
        draw=draw,
    )
    return LoadedAudit(request, corpus, split, replace(config, limit=draw.size) if draw.by_default else config)


def _prompt(config: AuditConfig) -> "Prompt | None":
    if config.prompt is None and not config.label_words:
        return None
    from steadygaze.adapters.prompt import parse_label_words, read_prompt  # for language models

    return read_prompt(config.prompt, parse_label_words(config.label_words))


def one_output(
    adapters: Sequence[ModelAdapter], examples: list[Example], target: Label | None, threshold: float | None
) -> tuple[list[ModelAdapter], list[Example]]:
    """The models and texts for one output of a multi-label or regression model."""
    if adapters[0].task == "classification" and target is None and threshold is None:
        return list(adapters), examples
    models, convert = two_class_models(adapters, texts_of(examples), target, threshold)
    if any(example.label is None for example in examples):
        return models, examples
    labels = convert(example.label for example in examples)
    return models, [replace(example, label=label) for example, label in zip(examples, labels, strict=True)]


def _train(config: AuditConfig, adapter: ModelAdapter, runtime: Runtime) -> tuple[Any, Any]:
    """The training texts and labels, checked before the other data are read."""
    classifier = trainable(adapter)
    options = {**config.labeled_columns, "rationales": None}
    corpus = load_corpus(config.train or "", **options, data_dir=runtime.data_dir)
    train = columns(corpus.splits[corpus.choose("train")])
    check_train(classifier, train)
    return train


def _notes(adapter: ModelAdapter, corpus: Corpus, split: str) -> tuple[str, ...]:
    """A warning if these texts are a training split, and the model does not know its training texts."""
    is_known = adapter.training_overlap([]) is not None
    # A single file is always the split "train".
    return (TRAINING_SPLIT,) if split == "train" and len(corpus.splits) > 1 and not is_known else ()
