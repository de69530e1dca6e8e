"""The training and audit texts of a comparison, and the record of everything that its scores depend on."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from steadygaze.audit.audit_config import ProbeConfig, fingerprint
from steadygaze.audit.audit_run import sample_examples
from steadygaze.core import __version__
from steadygaze.core.digests import digest_file, digest_json
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.corpora import load_corpus
from steadygaze.data.corpus import Corpus
from steadygaze.data.splits import hold_out
from steadygaze.study.compare_config import CompareConfig
from steadygaze.training.device import best_device

KEPT_OUT = 5
"""One text in so many of every class is held out if there is no split to audit."""
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


def load_study_data(order: CompareConfig, data_dir: Path | None = None) -> StudyData:
    corpus = load_corpus(
        order.data,
        text=order.text,
        label=order.label,
        rationales=order.rationales,
        data_dir=data_dir,
        drop_empty=order.drop_empty,
    )
    if "train" not in corpus.splits:
        raise UserError(f"{corpus.name} has no split to train on, only {', '.join(corpus.splits)}")
    splits: dict[str, list[Example]] = {
        name: corpus.splits[name] for name in ("train", "validation") if name in corpus.splits
    }
    split = order.split or ("test" if "test" in corpus.splits else HELD_OUT)
    if split == HELD_OUT and split not in corpus.splits:
        splits["train"], audited = hold_out_test(splits["train"])
    else:
        audited = _named(corpus, split)
    trained = Corpus(corpus.name, splits, corpus.dropped, corpus.source)
    return StudyData(trained, split, sample_examples(audited, order.limit, order.seed), corpus.fingerprint)


def hold_out_test(examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """Split into training and held-out texts, stratified, with a fixed seed."""
    train, held_out = hold_out(len(examples), [example.label for example in examples], every=KEPT_OUT)
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
        raise UserError(f"the split {split!r} of {corpus.name} has no texts to audit with")
    return corpus.splits[split]


def identity(order: CompareConfig, material: StudyData, device: str) -> dict[str, Any]:
    return {
        "steadygaze": __version__,
        "torch": torch.__version__,
        "device": best_device(device).type,
        "data": {**material.known, "read": material.data, "texts": len(material.examples)},
        "techniques": list(order.techniques),
        "seeds": list(order.numbers),
        "encoder": encoder(order),
        "vectors": _file(order.vectors),
        "shared": shared(order),
        "own": {name: own(order, name) for name in order.techniques},
        "audit": {
            "explainer": explainers(order),
            "synonyms": synonyms(order),
            **{key: value for key, value in dataclasses.asdict(plan(order)).items() if key != "synonyms"},
        },
    }


def plan(order: CompareConfig) -> ProbeConfig:
    """Settings of every audit."""
    return ProbeConfig(seed=order.seed)


def shared(order: CompareConfig) -> dict[str, Any]:
    """Training settings that all techniques share."""
    parts = [_parts(order, name) for name in order.techniques]
    return {key: value for key, value in parts[0].items() if all(part[key] == value for part in parts)}


def own(order: CompareConfig, technique: str) -> dict[str, Any]:
    """Settings of a technique alone."""
    same = shared(order)
    other = {key: value for key, value in _parts(order, technique).items() if key not in same}
    return {**dataclasses.asdict(order.training(technique).technique), **other}


def encoder(order: CompareConfig) -> str:
    """The encoder without a local path."""
    kind, colon, place = order.encoder.partition(":")
    return f"{kind}:{Path(place).name}" if colon and Path(place).is_dir() else order.encoder


def explainers(order: CompareConfig) -> str:
    """One explainer, or the explainer of each technique."""
    each = {name: order.explains(name) for name in order.techniques}
    if len(set(each.values())) == 1:
        return order.explains(order.baseline)
    return ", ".join(f"{explainer} of {name}" for name, explainer in each.items())


def synonyms(order: CompareConfig) -> str | None:
    """The synonym table, for signatures."""
    if isinstance(order.synonyms, dict):
        return f"given in Python, {digest_json([order.synonyms], sort_keys=True)[:12]}"
    return _file(order.synonyms)


def _parts(order: CompareConfig, technique: str) -> dict[str, Any]:
    config = order.training(technique)
    text = {**dataclasses.asdict(config.text), "synonyms": _file(config.text.synonyms)}
    return {**dataclasses.asdict(config.architecture), **dataclasses.asdict(config.training), **text}


def _file(path: str | None) -> str | None:
    """The name and digest of a file; other values are unchanged."""
    if path is None or not Path(path).is_file():
        return path
    return f"{Path(path).name}, {digest_file(path)[:12]}"
