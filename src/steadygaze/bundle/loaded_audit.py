"""LoadedAudit: load the models and texts that an AuditConfig names, for the command and for the verification.

A bundle stores paths relative to the folder that contains it.  A stored path starts with a dot: ./model or
../data/test.csv.  Hub ids and names of corpora do not start with a dot.
"""

import os
import posixpath
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from steadygaze.adapters.as_adapter import load_named
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.text_explainer import TextExplainer, explainer_of
from steadygaze.auditing.audit import run_audit
from steadygaze.auditing.prepare_case import AuditRequest, compose_request, fingerprint
from steadygaze.bundle.manifest import Manifest
from steadygaze.core.arguments import option_name
from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import resolve
from steadygaze.data.corpora import CORPORA, divided, load_corpus
from steadygaze.data.corpus import Corpus
from steadygaze.estimator.inputs import read_split, read_validation
from steadygaze.properties.retraining import Labeled, read_train, trainable, training_texts
from steadygaze.results.audit_config import AuditConfig, Runtime
from steadygaze.results.note import Note, NoteCode
from steadygaze.results.report import Report

PATHS = ("model", "data", "train", "synonyms", "filler", "other_seeds")
"""Settings that may be a path, or several."""
DATA = ("data", "train")
"""Settings for which the name of a corpus takes precedence over a file."""


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
    def has_fitted(self) -> bool:
        """True if an explainer was fitted to the model."""
        return any(isinstance(explainer, TextExplainer) for explainer in self.request.explainers)

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
        digest, n = fingerprint(self.request.examples), len(self.request.examples)
        train, validation = self.request.train, self.request.validation
        training = {} if train is None else {"train": read_split(*train).fingerprint()}
        training |= {} if validation is None else {"validation": read_validation(validation).fingerprint()}
        return {"corpus": self.corpus.name, "split": self.split, "fingerprint": digest, "n": n, **training}

    def run(self, settings: Mapping[str, Any]) -> Report:
        """`settings`: with portable paths, for the commands in the advice."""
        split = self.split if len(self.corpus.splits) > 1 else "all rows"
        facts = {"corpus": self.corpus.name, "split": split, "data": str(self.data["fingerprint"])[:12]}
        return run_audit(replace(self.request, facts=facts, settings=settings)).report()

    def manifest(self, report: Report, settings: Mapping[str, Any]) -> Manifest:
        """The manifest of a report; `settings` have portable paths."""
        others = tuple(settings["other_seeds"])
        model = self.model if report.health.ok else {**self.model, "health": report.health.sentence}
        return Manifest(model, self.data, settings, others, report.command, date=report.date)


def load_audit(config: AuditConfig, runtime: Runtime) -> LoadedAudit:
    def load(name: str) -> ModelAdapter:
        adapter = load_named(name, config, runtime.device, import_objects=name in runtime.importable)
        if adapter.hosted is not None:
            adapter.hosted.budget.announce = runtime.announce
        return adapter

    adapter = load(config.model)
    train, validation = (None, None) if config.train is None else _train(config, adapter, runtime)
    others = [load(name) for name in config.other_seeds]
    corpus = load_corpus(config.data, **config.columns, data_dir=runtime.data_dir, task=adapter.task)
    split = corpus.choose(config.split)
    request = compose_request(
        [adapter, *others],
        corpus.splits[split],
        config,
        runtime,
        explainers=[explainer_of(name, adapter, config.target) for name in config.explainers],
        synonyms=config.synonyms,
        train=train,
    )
    request = replace(request, validation=validation, notes=_notes(adapter, corpus, split))
    if request.draw is not None and request.draw.by_default:
        config = replace(config, limit=request.draw.size)
    return LoadedAudit(request, corpus, split, config)


def _train(config: AuditConfig, adapter: ModelAdapter, runtime: Runtime) -> tuple[Labeled, Labeled | None]:
    """Training and validation texts with labels, checked before the other data are read."""
    classifier = trainable(adapter)
    options = {**config.labeled_columns, "rationales": None}
    corpus = load_corpus(config.train or "", **options, data_dir=runtime.data_dir)
    train, validation = training_texts(classifier.stored_, corpus)
    return read_train(classifier, train), validation


def _notes(adapter: ModelAdapter, corpus: Corpus, split: str) -> tuple[Note, ...]:
    """A warning if these texts are a training split, and the model does not know its training texts."""
    is_known = adapter.training_overlap([]) is not None
    # A single file is always the split "train".
    return (Note(NoteCode.TRAINING_SPLIT),) if split == "train" and len(corpus.splits) > 1 and not is_known else ()


def portable_path(name: str, base: Path) -> str:
    """The path relative to `base`, if it is below `base` or both are below the working folder; else its name alone."""
    path, base, working_folder = (resolve(os.path.expanduser(item)) for item in (name, base, Path.cwd()))
    if not path.is_relative_to(base) and not (
        path.is_relative_to(working_folder) and base.is_relative_to(working_folder)
    ):
        return f"./{path.name}"
    return _dotted(Path(os.path.relpath(path, base)).as_posix())


def portable_settings(settings: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """The settings of an audit with portable paths."""
    return {**settings, **_with_paths(settings, partial(_portable, base))}


def restored_settings(
    settings: Mapping[str, Any], bundle: Path, passed: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The settings with paths of existing files, next to the bundle or in the working folder.

    `passed`: the settings that the caller has passed, for the command in an error.
    """
    missing: dict[str, list[str]] = {}
    restored = {**settings, **_with_paths(settings, partial(_restored, bundle, missing))}
    if missing:
        raise UserError(_not_found(settings, bundle, missing, passed or {}))
    return restored


def _not_found(
    settings: Mapping[str, Any], bundle: Path, missing: Mapping[str, list[str]], passed: Mapping[str, Any]
) -> str:
    """The files that were not found, and the command with a placeholder for each."""
    words = ["steadygaze", "audit"]
    for name in (name for name in PATHS if name in missing or passed.get(name)):
        option = [] if name == "model" else [option_name(AuditConfig, name)]
        for value in [settings[name]] if isinstance(settings[name], str) else settings[name]:
            prefix, path = _divided(value)
            words += [
                *option,
                f"{prefix}FOLDER/{posixpath.basename(path)}" if value in missing.get(name, ()) else value,
            ]
    files = ", ".join(f"{name} {value}" for name, values in missing.items() for value in values)
    command = shlex.join([*words, "--verify", str(bundle)])
    return (
        f"not found next to the bundle, nor in the working folder: {files}.  "
        f"Put the path in place of FOLDER:  {command}"
    )


def canonical(recorded: Mapping[str, Any], bundle: Path) -> dict[str, Any]:
    """The recorded paths as an audit writes them; a bundle with other paths was changed."""
    return _with_paths(recorded, partial(_canonical, bundle))


def _with_paths(settings: Mapping[str, Any], change: Callable[[str, str], str]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name in PATHS:
        if value := settings.get(name):
            is_list = not isinstance(value, str)
            changed[name] = tuple(change(name, item) for item in value) if is_list else change(name, value)
    return changed


def _portable(base: Path, name: str, value: str) -> str:
    prefix, path = _divided(value)
    corpus = name in DATA and path.partition(":")[0] in CORPORA
    exists = not corpus and Path(os.path.expanduser(path)).exists()
    return prefix + portable_path(path, base) if exists else value


def _restored(bundle: Path, missing: dict[str, list[str]], name: str, value: str) -> str:
    """The path of an existing file; a file that does not exist is added to `missing`."""
    prefix, path = _divided(value)
    if not path.startswith("."):
        return value
    for candidate in (os.path.normpath(base / path) for base in (bundle.absolute().parent, Path.cwd())):
        if os.path.exists(candidate):
            return prefix + candidate
    missing.setdefault(name, []).append(value)
    return value


def _canonical(bundle: Path, name: str, value: str) -> str:
    prefix, path = _divided(value)
    if not path.startswith("."):
        return _portable(bundle.absolute().parent, name, value)
    return prefix + _dotted(posixpath.normpath(path))


def _divided(value: str) -> tuple[str, str]:
    """The prefix of a corpus, with its colon, and the path: biased=0.8:reviews.csv."""
    prefix, path = divided(value)
    return (f"{prefix}:" if prefix else ""), path


def _dotted(path: str) -> str:
    return path if path.startswith("..") else f"./{path}"
