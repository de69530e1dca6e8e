"""Where a model comes from: which finished models it may be held against, and all that determines its weights.

What an order and the training texts fix before the first step: description, vocabulary, vectors, fresh weights.
"""

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.types import Label
from steadygaze.core.untrusted_files import open_file, resolve
from steadygaze.data.batches import Data
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.data.synonyms import read_synonyms, substitutable_pairs, vocabulary_lexicon
from steadygaze.data.text_tokenizer import TextTokenizer
from steadygaze.data.word_tokenizer import SPECIALS, build_word_tokenizer
from steadygaze.data.word_vectors import Vectors, read_vectors
from steadygaze.estimator.inputs import Split
from steadygaze.estimator.model_config import ModelConfig, build_model, make_encoder
from steadygaze.estimator.model_folder import SavedModel, matches_layout
from steadygaze.estimator.train_config import TrainConfig
from steadygaze.models.encoders import TRANSFORMER
from steadygaze.models.encoders.pretrained import read_config, weight_files
from steadygaze.models.encoders.transformer import from_folder, limit, locate
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.perturbations.word_substitution import MOST, Synonyms, without_synonyms
from steadygaze.techniques.technique import Technique
from steadygaze.training.progress import Watcher
from steadygaze.training.training_run import RESULT

TRAINED_WITH = ("dropout", "train_vectors")
"""Of an architecture: what matters in training alone, not for what a model says."""


def named_references(order: TrainConfig, given: Sequence[SavedModel]) -> dict[str, SavedModel]:
    """The models that were given, by the names under which the technique asks for them."""
    wanted = list(dict.fromkeys(s.model for s in order.technique.stages(order.seed) if s.model != RESULT))
    if given and len(given) != len(wanted):
        takes = f"takes {len(wanted)}" if wanted else "takes none"
        raise UserError(f"{order.technique_name} {takes} as reference or teachers, found {len(given)}")
    return dict(zip(wanted, given, strict=False))


def check_reference(name: str, one: SavedModel, here: ModelConfig, tokenizer: TextTokenizer) -> None:
    """A reference must read the same tokens and know the same labels, or what it says cannot be held against."""
    there = one.description
    if there.classes != here.classes:
        raise UserError(f"the {name} given knows the labels {there.classes!r:.80}, the data {here.classes!r:.80}")
    if one.tokenizer.to_json() != tokenizer.to_json():
        raise UserError(
            f"the {name} given has another vocabulary ({one.tokenizer.size:,} entries, here {tokenizer.size:,}): "
            "train both on the same texts, with the same min_df and max_length"
        )
    theirs, ours = _shape(there), _shape(here)
    for what in ours:
        if theirs[what] != ours[what]:
            raise UserError(f"the {name} given has another {what}: {theirs[what]!r:.80}, here {ours[what]!r:.80}")


def _shape(of: ModelConfig) -> dict[str, Any]:
    architecture = dataclasses.asdict(of.architecture)
    kept = {key: value for key, value in architecture.items() if key not in TRAINED_WITH}
    return {"encoder": of.encoder, "pair": of.pair, "network": of.network, **kept}


def identity(
    description: ModelConfig, device: torch.device, vectors: Tensor | None, files: Sequence[Path]
) -> dict[str, Any]:
    """All that determines the weights; of files what is in them, not where they lie."""
    return {
        **dataclasses.asdict(description),
        "device": device.type,
        "torch": torch.__version__,
        "vectors": None if vectors is None else hashlib.sha256(vectors.numpy().tobytes()).hexdigest(),
        "files": [_digest(file) for file in files],
    }


def stage_identity(whole: dict[str, Any]) -> dict[str, Any]:
    """What is the same for every stage of a technique of its own: not the technique that asks for it, nor its seed."""
    own = ("technique", "technique_settings", "seed", "references", "history", "best_epoch")
    reading = {key: value for key, value in whole["reading"].items() if key != "synonyms"}
    return {key: value for key, value in whole.items() if key not in own} | {"reading": reading}


def _digest(file: Path) -> str:
    with open_file(file) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


MAX_LENGTH = 512
"""Tokens read of a text by default."""
SEPARATORS = 3
"""[CLS] text [SEP] question [SEP]: places of a transformer that hold no word."""


@dataclass(frozen=True)
class FitPlan:
    """What is fixed before the first step."""

    description: ModelConfig
    tokenizer: TextTokenizer
    make_model: Callable[[], Model]
    vectors: Tensor | None = None
    coverage: Vectors | None = None
    """Which words have a pre-trained vector."""
    files: tuple[Path, ...] = ()
    """What else the weights depend on: those of a pre-trained network."""
    table: str | None = None
    """A file of synonyms."""

    def vocabulary_for(self, technique: Technique, watcher: Watcher) -> Synonyms | None:
        """What a technique is told about the ids: synonyms, special tokens only, or nothing."""
        if technique.substitutes_words:
            return self.synonyms(watcher)
        return self._unrelated() if technique.reads_vocabulary else None

    def _unrelated(self) -> Synonyms:
        """The vocabulary without synonyms."""
        known = vocabulary_lexicon(self.tokenizer.vocabulary, self.tokenizer.kind)
        continues, words, special = map(torch.from_numpy, (known.continues, known.words, known.special))
        return without_synonyms(self.tokenizer.size, continues, words, special)

    def synonyms(self, watcher: Watcher) -> Synonyms:
        """From the table; without one, no word has any: neighbors of a vector are not synonyms."""
        found = self._unrelated()
        if self.table is not None:
            known = vocabulary_lexicon(self.tokenizer.vocabulary, self.tokenizer.kind)
            given = read_synonyms(self.table, folded=self.tokenizer.kind == "words")
            # Without the rule about word classes, which audits follow: the stability study trained so.  The rule would
            # drop 23 % of its training pairs, so that docs/results/stability.md would describe another technique.
            ids, count = known.table(substitutable_pairs(given, classes=False), MOST)
            table = {"table": torch.from_numpy(ids), "count": torch.from_numpy(count)}
            found = dataclasses.replace(found, **table, origin="table")
        if found.origin == "none":
            watcher.warn(
                f"no table of synonyms was given: {self.description.technique} trains without substituted words.  "
                "The setting synonyms=FILE (--set synonyms=FILE) gives one"
            )
        elif not found.count.any():
            watcher.warn("no word of the vocabulary has a synonym: none will be substituted in training")
        else:
            watcher.say(f"synonyms: {int((found.count > 0).sum()):,} of {self.tokenizer.size:,} words have some")
        return found

    def identity(self, device: torch.device, more: tuple[Path, ...] = ()) -> dict[str, Any]:
        """All that determines the weights."""
        return identity(self.description, device, self.vectors, (*self.files, *more))

    def token_coverage(self, data: Data) -> float | None:
        """The share of the running tokens that have a pre-trained vector; None without vectors."""
        if self.coverage is None:
            return None
        parts = [part for part in (data.text, data.question) if part is not None]
        ids = np.concatenate([part.ids[part.words] for part in parts])
        return self.coverage.token_coverage(ids, specials=len(SPECIALS))

    def encode(self, split: Split, weight: NDArray[np.float32] | None = None) -> Data:
        """Texts as ids, once and for all epochs."""
        place = {label: i for i, label in enumerate(self.description.classes)}
        for label in split.labels:
            if label not in place:
                raise unknown("validation label", label, place)
        asked = None if split.questions is None else self.tokenizer.encode(split.questions, question=True)
        places = np.array([place[label] for label in split.labels], dtype=np.int64)
        return Data(self.tokenizer.encode(split.texts), asked, places, weight)


def make_plan(order: TrainConfig, train: Split, corpus: str, watcher: Watcher) -> FitPlan:
    """`corpus` is the fingerprint of all that was given."""
    pair = train.questions is not None
    classes = sorted(set(train.labels), key=_rank)
    if why := order.technique.validate(order.architecture, len(classes)):
        raise UserError(why)
    if pair and not order.technique.reads_pairs:
        raise UserError(f"{order.technique_name} selects from single texts: it cannot be trained on pairs")
    description = ModelConfig(
        classes=classes,
        pair=pair,
        encoder=_portable(order.encoder),
        architecture=order.architecture,
        kind="words",
        max_length=order.max_length or MAX_LENGTH,
        technique=order.technique_name,
        technique_settings=_settings(order.technique),
        training=dataclasses.asdict(order.training),
        reading=dataclasses.asdict(order.reading) | {"synonyms": _name(order.reading.synonyms)},
        class_weight=_class_weight(order.class_weight),
        vectors=_name(order.vectors),
        seed=order.seed,
        corpus=corpus,
        history=[],
    )
    if order.encoder.startswith(TRANSFORMER):
        return _transformer_plan(order, description)
    return _word_plan(order, description, train, watcher)


def _settings(technique: Technique) -> dict[str, Any]:
    """All that a user could have set."""
    return {name: value for name, value in dataclasses.asdict(technique).items() if name not in technique.filled}


def _word_plan(order: TrainConfig, description: ModelConfig, train: Split, watcher: Watcher) -> FitPlan:
    """A vocabulary of the training texts' words, with vectors where they were given."""
    read = [*train.texts, *(train.questions or [])]
    tokenizer = build_word_tokenizer(read, min_df=order.reading.min_df, max_length=description.max_length)
    if tokenizer.size == len(SPECIALS):
        raise UserError(f"no word occurs in {order.reading.min_df} training texts: a smaller min_df is needed")
    vectors = found = None
    if order.vectors is not None:
        found = read_vectors(order.vectors, tokenizer.vocabulary, seed=order.seed)
        coverage = found.coverage(specials=len(SPECIALS))
        watcher.say(f"vectors: {coverage:.1%} of {tokenizer.size:,} words found in {description.vectors}")
        vectors = torch.from_numpy(found.matrix)
        architecture = dataclasses.replace(description.architecture, dimension=vectors.shape[1])
        description = dataclasses.replace(description, architecture=architecture, coverage=coverage)
    encoder = partial(make_encoder, description, tokenizer.size, vectors)
    make = partial(build_model, description, tokenizer, order.technique, encoder)
    return FitPlan(description, tokenizer, make, vectors, found, table=order.reading.synonyms)


def _transformer_plan(order: TrainConfig, description: ModelConfig) -> FitPlan:
    """A pre-trained network, with its own pieces of words."""
    if order.vectors is not None:
        raise UserError(f"{order.encoder} brings its own vectors; leave out vectors={str(order.vectors)!r}")
    folder = locate(order.encoder.removeprefix(TRANSFORMER))
    config = read_config(folder)
    most = (limit(config) - SEPARATORS) // (2 if description.pair else 1)
    if order.max_length is not None and order.max_length > most:
        raise UserError(f"{order.encoder} reads at most {most} tokens of a text here; max_length is {order.max_length}")
    tokenizer = load_subword_tokenizer(folder, max_length=order.max_length or min(most, MAX_LENGTH))
    matches_layout(tokenizer.size, getattr(config, "vocab_size", None), folder)
    network: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    network.pop("_name_or_path", None)
    description = dataclasses.replace(description, kind="pieces", max_length=tokenizer.max_length, network=network)
    return FitPlan(
        description,
        tokenizer,
        partial(build_model, description, tokenizer, order.technique, partial(from_folder, folder)),
        files=(*weight_files(folder), folder / "tokenizer.json"),
        table=order.reading.synonyms,
    )


def _portable(encoder: str) -> str:
    """Its name without the path of this machine."""
    place = encoder.removeprefix(TRANSFORMER)
    if place == encoder or not (folder := Path(os.path.expanduser(place))).is_dir():
        return encoder
    return TRANSFORMER + resolve(folder).name


def _rank(label: Label) -> tuple[bool, Label]:
    return isinstance(label, str), label


def _class_weight(given: str | Mapping[Label, float] | None) -> Any:
    """As JSON can hold it: an object's keys would all become strings."""
    if isinstance(given, str | None):
        return given
    items = ((label.item() if isinstance(label, np.generic) else label, float(w)) for label, w in given.items())
    return sorted(items, key=lambda item: _rank(item[0]))


def _name(file: str | Path | None) -> str | None:
    """Without the path of this machine."""
    return None if file is None else Path(file).name
