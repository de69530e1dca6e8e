"""The training and audit texts of a comparison, and the record of everything that its scores depend on."""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadygaze.auditing.prepare_case import draw_texts, fingerprint
from steadygaze.core.errors import UserError
from steadygaze.core.settings import field_names
from steadygaze.core.types import Example
from steadygaze.core.untrusted_files import digest_file, digest_json
from steadygaze.data.corpora import load_corpus
from steadygaze.data.corpus import Corpus
from steadygaze.data.splits import hold_out, sample_rows
from steadygaze.data.synonym_formats import table_files
from steadygaze.models.encoders import TRANSFORMER
from steadygaze.models.inference import best_device
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.study.code_version import code_version, explainer_source, property_sources, technique_source
from steadygaze.study.compare_config import CompareConfig
from steadygaze.study.tune_config import TuneConfig

OnCorpus = Callable[[Corpus], None]
KEPT_OUT = 5
"""One text in so many of every class is held out if no split is left to audit."""
MODEL_FILES = (".safetensors", ".json", ".txt", ".model")
"""Files of a transformer: weights, configuration, tokenizer."""
HELD_OUT = "held-out"
"""Name of the held-out texts."""


@dataclass(frozen=True)
class StudyData:
    corpus: Corpus
    """Training and validation texts; the audited texts are not among the training texts."""
    split: str
    """Name of the audited split."""
    examples: list[Example]
    """Audited texts."""
    data: str
    """SHA-256 of all data."""

    @property
    def known(self) -> dict[str, str]:
        """Settings of every score."""
        return {"corpus": self.corpus.name, "split": self.split, "data": fingerprint(self.examples)[:12]}


def load_study_data(
    config: CompareConfig, data_dir: Path | None = None, on_corpus: OnCorpus = lambda corpus: None
) -> StudyData:
    """Read and split the texts; `on_corpus` receives them first."""
    corpus = load_corpus(config.data, **config.labeled_columns, data_dir=data_dir)
    on_corpus(corpus)
    splits = {"train": limit_training(corpus.training, config.train_limit)}
    if "validation" in corpus.splits:
        splits["validation"] = corpus.splits["validation"]
    split = config.split or ("test" if "test" in corpus.splits else HELD_OUT)
    if split == HELD_OUT and split not in corpus.splits:
        splits["train"], audited = hold_out_audit_texts(splits["train"])
    else:
        audited = _named(corpus, split)
    trained = Corpus(corpus.name, splits, corpus.dropped, corpus.source)
    draw = draw_texts(len(audited), config.limit, config.seed)
    return StudyData(trained, split, draw.select(audited), corpus.fingerprint)


def limit_training(examples: list[Example], limit: int | None) -> list[Example]:
    """At most `limit` training texts, drawn with a fixed seed; None: all."""
    return examples if limit is None else [examples[row] for row in sample_rows(len(examples), limit, 0)]


def hold_out_audit_texts(examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """Split into training texts and texts to audit: one in KEPT_OUT of every class, with a fixed seed."""
    train, held_out = hold_out(len(examples), [example.label for example in examples], interval=KEPT_OUT)
    if not held_out:
        raise UserError(
            f"there is no split to audit with, and {len(examples)} texts are too few to hold any out: "
            "give a folder with a test file"
        )
    return [examples[row] for row in sorted(train)], [examples[row] for row in sorted(held_out)]


def _named(corpus: Corpus, split: str) -> list[Example]:
    corpus.choose(split)
    if split == "train":
        raise UserError("models are trained on the split 'train': they cannot be audited with it; leave out --split")
    if not corpus.splits[split]:
        raise UserError(f"the split {split!r} of {corpus.name} has no texts to audit: name another with --split")
    return corpus.splits[split]


def identity(config: CompareConfig, material: StudyData, device: str) -> dict[str, Any]:
    return {
        **_common_inputs(config, material, device),
        "techniques": list(config.techniques),
        "seeds": list(config.numbers),
        "shared": shared(config),
        "own": {name: own(config, name) for name in config.techniques},
        "explainers": {name: config.explains(name) for name in config.techniques},
        "audit": {"explainer": explainers(config), **_audit_inputs(config)},
    }


def must_equal(stored: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parts of two identities that must be equal in one folder.

    Further techniques and seeds are cells of their own.  The settings of a technique must be equal if both have it.
    """
    both = [name for name in new["techniques"] if name in stored["techniques"]]

    def part(settings: Mapping[str, Any]) -> dict[str, Any]:
        names = ("techniques", "seeds", "shared", "own", "explainers", "audit")
        audit = {key: value for key, value in settings["audit"].items() if key != "explainer"}
        return {
            **{key: value for key, value in settings.items() if key not in names},
            "own": {name: {**settings["shared"], **settings["own"][name]} for name in both},
            "explainer": {name: settings["explainers"][name] for name in both},
            "audit": audit,
        }

    return part(stored), part(new)


def cell_inputs(config: CompareConfig, material: StudyData, device: str, technique: str, seed: int) -> dict[str, Any]:
    """Everything that the scores of one model depend on."""
    return {
        **_common_inputs(config, material, device),
        "technique": {
            "name": technique,
            **dataclasses.asdict(config.training(technique).technique),
            **technique_source(technique),
        },
        "settings": training_settings(config, technique),
        "seed": seed,
        "audit": {
            "explainer": config.explains(technique),
            **explainer_source(config.explains(technique)),
            **property_sources(),
            **_audit_inputs(config),
        },
    }


def _common_inputs(config: CompareConfig, material: StudyData, device: str) -> dict[str, Any]:
    data = {**material.known, "read": material.data, "texts": len(material.examples)}
    data |= {} if config.train_limit is None else {"train_limit": config.train_limit}
    return {**training_inputs(config, device), "data": data}


def training_inputs(config: CompareConfig | TuneConfig, device: str) -> dict[str, Any]:
    """Versions, hardware and files that every model of a study depends on."""
    return {
        "code": code_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "device": best_device(device).type,
        "encoder": encoder(config),
        **_transformer_inputs(config),
        "vectors": file_digest(config.vectors),
        "synonym_groups": file_digest(config.synonym_groups),
    }


def _transformer_inputs(config: CompareConfig | TuneConfig) -> dict[str, Any]:
    """The libraries of a transformer, and the digest of a local one: its name alone does not determine its weights."""
    if not config.encoder.startswith(TRANSFORMER):
        return {}
    versions = {name: version(name) for name in ("transformers", "tokenizers")}
    folder = Path(os.path.expanduser(config.encoder.removeprefix(TRANSFORMER)))
    if not folder.is_dir():
        return versions
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.suffix in MODEL_FILES]
    return {**versions, "encoder_files": _digest_files(tuple((path, path.stat().st_mtime_ns) for path in files))}


@cache
def _digest_files(files: tuple[tuple[Path, int], ...]) -> str:
    """The digest of the names and contents of files; once for each time of change."""
    return digest_json([[path.name, digest_file(path)] for path, _ in files])


def _audit_inputs(config: CompareConfig) -> dict[str, Any]:
    chosen = {"measures": list(config.measures)} if config.measures else {}
    return {
        "synonyms": synonyms(config),
        **chosen,
        **{name: getattr(config, name) for name in field_names(ProbeConfig)},
    }


def shared(config: CompareConfig) -> dict[str, Any]:
    """Training settings that all techniques share."""
    return shared_values([training_settings(config, name) for name in config.techniques])


def own(config: CompareConfig, technique: str) -> dict[str, Any]:
    """Settings of a technique alone."""
    common = shared(config)
    differing = {key: value for key, value in training_settings(config, technique).items() if key not in common}
    return {**dataclasses.asdict(config.training(technique).technique), **differing}


def shared_values(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The settings with the same value in all mappings."""
    return {key: value for key, value in settings[0].items() if all(key in s and s[key] == value for s in settings[1:])}


def encoder(config: CompareConfig | TuneConfig) -> str:
    """The encoder without a local path."""
    kind, colon, place = config.encoder.partition(":")
    folder = Path(os.path.expanduser(place))
    return f"{kind}:{folder.name}" if colon and folder.is_dir() else config.encoder


def explainers(config: CompareConfig) -> str:
    """One explainer, or the explainer of each technique."""
    explainer_by_technique = {name: config.explains(name) for name in config.techniques}
    if len(set(explainer_by_technique.values())) == 1:
        return config.explains(config.baseline)
    return ", ".join(f"{explainer} of {name}" for name, explainer in explainer_by_technique.items())


def synonyms(config: CompareConfig) -> str | None:
    """The synonym table, for signatures."""
    return file_digest(config.synonyms)


def training_settings(config: CompareConfig, technique: str) -> dict[str, Any]:
    """The settings of a technique's training, before those for small datasets are applied."""
    training = config.training(technique)
    text = {**dataclasses.asdict(training.text), "synonyms": file_digest(training.text.synonyms)}
    return {**dataclasses.asdict(training.architecture), **dataclasses.asdict(training.training), **text}


def file_digest(source: str | dict[str, list[str]] | None) -> str | None:
    """The name and digest of a file, of the files of a folder or of a mapping; other values are unchanged."""
    if isinstance(source, dict):
        return f"given in Python, {digest_json([source], sort_keys=True)[:12]}"
    if source is None or not Path(source).exists():
        return source
    digests = [digest_file(file) for file in table_files(Path(source))]
    return f"{Path(source).name}, {(digests[0] if Path(source).is_file() else digest_json(digests))[:12]}"
