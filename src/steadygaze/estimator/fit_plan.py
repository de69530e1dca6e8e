"""The plan of a fit: description, vocabulary, vectors and initial weights, and the identity of a run."""

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
from steadygaze.core.random_key import derive_seed
from steadygaze.core.rounding import percent
from steadygaze.core.types import Label
from steadygaze.core.untrusted_files import digest_file, resolve
from steadygaze.data.batches import Data, given_sentences
from steadygaze.data.label_vectors import label_vectors
from steadygaze.data.substitutable_pairs import substitutable_pairs
from steadygaze.data.subword_tokenizer import PieceTokenizer, load_subword_tokenizer, text_limit
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.synonym_tables import read_synonyms
from steadygaze.data.text_tokenizer import TextTokenizer
from steadygaze.data.vocabulary_lexicon import representative_table, vocabulary_lexicon
from steadygaze.data.word_tokenizer import SPECIALS, build_word_tokenizer
from steadygaze.data.word_vectors import Vectors, read_group_vectors
from steadygaze.estimator.inputs import Split
from steadygaze.estimator.model_config import (
    ModelConfig,
    build_model,
    make_encoder,
    make_windows,
    token_roles,
    window_problem,
)
from steadygaze.estimator.model_folder import SavedModel, matches_layout
from steadygaze.estimator.synonym_encoding import read_unknown_words, resolve_groups
from steadygaze.estimator.train_config import MOST_TOKENS, TrainConfig
from steadygaze.models.encoders import TRANSFORMER
from steadygaze.models.encoders.pretrained import read_config, weight_files
from steadygaze.models.encoders.transformer import from_folder, limit, locate
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_substitution import MAX_SYNONYMS, Synonyms, without_synonyms
from steadygaze.techniques.technique import Technique
from steadygaze.training.progress import Watcher
from steadygaze.training.training_run import RESULT

TRAINED_WITH = ("dropout", "train_vectors", "word_dropout")
"""Fields of an architecture that affect training only, not predictions."""


def named_references(config: TrainConfig, references: Sequence[SavedModel]) -> dict[str, SavedModel]:
    """Trained references and teachers, by their names in the technique."""
    names = list(dict.fromkeys(s.model for s in config.technique.stages(config.seed) if s.model != RESULT))
    if references and len(references) != len(names):
        requirement = f"takes {len(names)}" if names else "takes none"
        count = len(references)
        advice = (
            f"; for {count}, set teachers={count}: --set teachers={count}"
            if hasattr(config.technique, "teachers")
            else ""
        )
        raise UserError(f"{config.technique_name} {requirement} as reference or teachers, found {count}{advice}")
    return dict(zip(names, references, strict=False))


def check_reference(name: str, reference: SavedModel, config: ModelConfig, tokenizer: TextTokenizer) -> None:
    """Raise an error if a reference has other labels, another vocabulary or another architecture."""
    other_config = reference.description
    if other_config.classes != config.classes:
        raise UserError(
            f"the {name} has the labels {other_config.classes!r:.80}, the data {config.classes!r:.80}; "
            "use the same labels"
        )
    if reference.tokenizer.synonym_groups != tokenizer.synonym_groups:
        raise UserError(f"the {name} has other synonym groups: train both with the same synonym_groups")
    if reference.tokenizer.to_json() != tokenizer.to_json():
        raise UserError(
            f"the {name} has another vocabulary ({reference.tokenizer.size:,} entries, here {tokenizer.size:,}): "
            "train both on the same texts, with the same min_df and max_length"
        )
    other_shape, shape = _shape(other_config), _shape(config)
    for field in shape:
        if other_shape[field] != shape[field]:
            raise UserError(
                f"the {name} has another {field}: {other_shape[field]!r:.80}, here {shape[field]!r:.80}; "
                "train both on the same kind of texts, with the same encoder and settings"
            )


def _shape(config: ModelConfig) -> dict[str, Any]:
    architecture = dataclasses.asdict(config.architecture)
    fields = {key: value for key, value in architecture.items() if key not in TRAINED_WITH}
    return {"encoder": config.encoder, "pair": config.pair, "network": config.network, **fields}


def stage_identity(identity: dict[str, Any]) -> dict[str, Any]:
    """The identity of a stage with its own technique: without the outer technique and its seed."""
    excluded = ("technique", "technique_settings", "seed", "references", "history", "best_epoch")
    text = {key: value for key, value in identity["text"].items() if key != "synonyms"}
    return {key: value for key, value in identity.items() if key not in excluded} | {"text": text}


BESIDE_VECTORS = 0.3
"""Scale of label vectors beside pre-trained vectors."""
MAX_LENGTH = 512
"""Default number of tokens per text."""
WINDOW = 256
"""Proposed number of pieces per window."""
SEPARATORS = 3
"""Fewest positions that are kept for special tokens, as in [CLS] text [SEP] question [SEP]."""


@dataclass(frozen=True)
class FitPlan:
    """Everything that is fixed before the first step."""

    description: ModelConfig
    tokenizer: TextTokenizer
    make_model: Callable[[], Model]
    vectors: Tensor | None = None
    coverage: Vectors | None = None
    """Which words have a pre-trained vector."""
    files: tuple[Path, ...] = ()
    """Files of a pre-trained network, which determine the weights."""
    table: str | None = None
    """A file of synonyms."""
    reads_sentences: bool = False
    """True if the technique reads the given sentences of texts."""

    def vocabulary_for(self, technique: Technique, watcher: Watcher) -> Synonyms | None:
        """Vocabulary data of a technique: synonyms, special tokens only, or None."""
        if not technique.reads_vocabulary:
            return None
        lexicon = vocabulary_lexicon(self.tokenizer.vocabulary, self.tokenizer.kind)
        continues, words, special = map(torch.from_numpy, (lexicon.continues, lexicon.words, lexicon.special))
        synonyms = without_synonyms(self.tokenizer.size, continues, words, special)
        if not technique.substitutes_words:
            return synonyms
        if self.table is not None:
            pairs = read_synonyms(self.table, folded=self.tokenizer.kind == "words")
            # Without the rule about word classes, which audits apply: the stability study was trained this way.  The
            # rule would drop 23 % of its training pairs and invalidate docs/results/stability.md.
            pairs = substitutable_pairs(pairs, classes=False)
            grouped = representative_table(pairs, self.tokenizer.synonym_groups)
            ids, count = lexicon.table(grouped, MAX_SYNONYMS)
            table = {"table": torch.from_numpy(ids), "count": torch.from_numpy(count)}
            synonyms = dataclasses.replace(synonyms, **table, origin="table")
        if synonyms.origin == "none":
            watcher.warn(
                f"there is no table of synonyms: {self.description.technique} trains without substituted words.  "
                "Pass one with the setting synonyms=FILE (--set synonyms=FILE); steadygaze synonyms build writes one"
            )
        elif not synonyms.count.any():
            watcher.warn("no word of the vocabulary has a synonym: none will be substituted in training")
        else:
            watcher.say(f"synonyms: {int((synonyms.count > 0).sum()):,} of {self.tokenizer.size:,} words have some")
        return synonyms

    def identity(self, device: torch.device, further_files: tuple[Path, ...] = ()) -> dict[str, Any]:
        """Everything that determines the weights; files count by content, not by path."""
        return {
            **dataclasses.asdict(self.description),
            "device": device.type,
            "torch": torch.__version__,
            "vectors": None if self.vectors is None else hashlib.sha256(self.vectors.numpy().tobytes()).hexdigest(),
            "files": [digest_file(file) for file in (*self.files, *further_files)],
        }

    def token_coverage(self, data: Data) -> float | None:
        """Share of the tokens with a pre-trained vector; None without vectors."""
        if self.coverage is None:
            return None
        parts = [part for part in (data.text, data.question) if part is not None]
        ids = np.concatenate([part.ids[part.words] for part in parts])
        return self.coverage.token_coverage(ids, specials=len(SPECIALS))

    def encode(self, split: Split, weight: NDArray[np.float32] | None = None) -> Data:
        """Encode texts as ids."""
        index = {label: i for i, label in enumerate(self.description.classes)}
        for label in split.labels:
            if label not in index:
                raise unknown("validation label", label, index)
        questions = None if split.questions is None else self.tokenizer.encode(split.questions, question=True)
        labels = np.array([index[label] for label in split.labels], dtype=np.int64)
        if split.sentences is None or not self.reads_sentences:
            return Data(self.tokenizer.encode(split.texts), questions, labels, weight)
        placed = self.tokenizer.place(split.texts)
        return Data(placed.ragged, questions, labels, weight, sentences=given_sentences(placed, split.sentences))


def make_plan(
    config: TrainConfig,
    train: Split,
    validation: Split,
    corpus: str,
    watcher: Watcher,
    tokenizer: TextTokenizer | None = None,
) -> FitPlan:
    """`corpus`: fingerprint of the texts and labels; `tokenizer`: of a plan with the same texts and text settings."""
    pair = train.questions is not None
    classes = sorted(set(train.labels), key=_rank)
    if problem := config.technique.validate(config.architecture, len(classes)):
        raise UserError(problem)
    if problem := window_problem(config.architecture, config.encoder, pair):
        raise UserError(problem)
    if pair and not config.technique.reads_pairs:
        raise UserError(f"{config.technique_name} selects from single texts: it cannot be trained on pairs")
    description = ModelConfig(
        classes=classes,
        pair=pair,
        encoder=_portable(config.encoder),
        architecture=config.architecture,
        kind="words",
        max_length=config.max_length or MAX_LENGTH,
        technique=config.technique_name,
        technique_settings=_settings(config.technique),
        training=dataclasses.asdict(config.training),
        text=dataclasses.asdict(config.text) | {"synonyms": _name(config.text.synonyms)},
        class_weight=_class_weight(config.class_weight),
        vectors=_name(config.vectors),
        seed=config.seed,
        corpus=corpus,
        history=[],
    )
    groups = resolve_groups(config, train, validation, watcher) if tokenizer is None else tokenizer.synonym_groups
    if groups is not None:
        description = dataclasses.replace(description, synonym_groups=groups.summary)
    transformer = config.encoder.startswith(TRANSFORMER)
    plan = (
        _transformer_plan(config, description, groups)
        if transformer
        else _word_plan(config, description, train, groups, watcher, tokenizer)
    )
    is_split = config.technique.reads_sentences and (train.sentences is None or None in train.sentences)
    if is_split and (problem := config.technique.sentence_problem(token_roles(plan.tokenizer))):
        raise UserError(problem)
    return dataclasses.replace(plan, reads_sentences=config.technique.reads_sentences)


def _settings(technique: Technique) -> dict[str, Any]:
    """Settings that a user can change."""
    return {name: value for name, value in dataclasses.asdict(technique).items() if name not in technique.filled}


def _word_plan(
    config: TrainConfig,
    description: ModelConfig,
    train: Split,
    groups: SynonymGroups | None,
    watcher: Watcher,
    tokenizer: TextTokenizer | None = None,
) -> FitPlan:
    """Vocabulary of the training texts, with pre-trained vectors if requested."""
    if tokenizer is None:
        words = build_word_tokenizer(
            train.all_texts, min_df=config.text.min_df, max_length=description.max_length, synonym_groups=groups
        )
        tokenizer = read_unknown_words(config, words, watcher)
        groups = tokenizer.synonym_groups
        if groups is not None:
            description = dataclasses.replace(description, synonym_groups=groups.summary)
    if tokenizer.size == len(SPECIALS):
        raise UserError(f"no word occurs in {config.text.min_df} training texts: use a smaller min_df")
    vectors = pretrained = None
    if config.vectors is not None:
        pretrained = read_group_vectors(
            config.vectors, tokenizer.vocabulary, groups, mean=config.text.group_vectors == "mean", seed=config.seed
        )
        coverage = pretrained.coverage(specials=len(SPECIALS))
        watcher.say(f"vectors: {percent(coverage, 1)} of {tokenizer.size:,} words found in {description.vectors}")
        vectors = torch.from_numpy(pretrained.matrix)
        description = dataclasses.replace(description, coverage=coverage)
    if config.text.label_vectors:
        vectors = _with_label_vectors(vectors, config, tokenizer, train)
    if vectors is not None:
        architecture = dataclasses.replace(description.architecture, dimension=vectors.shape[1])
        description = dataclasses.replace(description, architecture=architecture)
    encoder = partial(make_encoder, description, tokenizer, vectors)
    make = partial(build_model, description, tokenizer, config.technique, encoder)
    return FitPlan(description, tokenizer, make, vectors, pretrained, table=config.text.synonyms)


def _with_label_vectors(vectors: Tensor | None, config: TrainConfig, tokenizer: TextTokenizer, train: Split) -> Tensor:
    """Word vectors, or random numbers, and label vectors; `dimension` counts both.  (V,E)"""
    weights = train.weighted(config.class_weight)
    labels = torch.from_numpy(
        label_vectors(tokenizer.encode(train.texts), tokenizer.size, list(map(str, train.labels)), weights)
    )
    if vectors is None:
        columns = max(config.architecture.dimension - labels.shape[1], labels.shape[1])
        generator = torch.Generator().manual_seed(derive_seed(config.seed, 0))
        vectors = torch.randn((tokenizer.size, columns), generator=generator) * columns**-0.5
        return torch.cat([vectors, labels], 1)
    return torch.cat([vectors, BESIDE_VECTORS * labels], 1)


def _transformer_plan(train: TrainConfig, description: ModelConfig, groups: SynonymGroups | None) -> FitPlan:
    """A pre-trained network with its own subwords."""
    if train.vectors is not None:
        raise UserError(f"{train.encoder} has its own vectors; remove vectors={str(train.vectors)!r}")
    folder = locate(train.encoder.removeprefix(TRANSFORMER))
    network_config = read_config(folder)
    tokenizer = load_subword_tokenizer(folder, max_length=MOST_TOKENS, synonym_groups=groups)
    tokenizer.max_length = _piece_limit(train, tokenizer, limit(network_config), description.pair)
    matches_layout(tokenizer.size, getattr(network_config, "vocab_size", None), folder)
    network: dict[str, Any] = json.loads(network_config.to_json_string(use_diff=False))
    network.pop("_name_or_path", None)
    windows = make_windows(train.architecture, tokenizer)
    description = dataclasses.replace(description, kind="pieces", max_length=tokenizer.max_length, network=network)
    return FitPlan(
        description,
        tokenizer,
        partial(build_model, description, tokenizer, train.technique, partial(from_folder, folder, windows)),
        files=(*weight_files(folder), folder / "tokenizer.json"),
        table=train.text.synonyms,
    )


def _piece_limit(train: TrainConfig, tokenizer: PieceTokenizer, positions: int, pair: bool) -> int:
    """Most pieces of a text: all of them with windows, else the limit of the network."""
    if train.architecture.window is not None:
        return train.max_length or MOST_TOKENS
    before, after = tokenizer.special_counts
    token_limit = text_limit(positions, max(SEPARATORS, before + 2 * after)) // (2 if pair else 1)
    if train.max_length is not None and train.max_length > token_limit:
        raise UserError(
            f"{train.encoder} reads at most {token_limit} tokens of a text here; max_length is {train.max_length}.  "
            f"To read whole texts, use the setting window={min(token_limit, WINDOW)}"
        )
    return train.max_length or min(token_limit, MAX_LENGTH)


def _portable(encoder: str) -> str:
    """The encoder's name without a local path."""
    path = encoder.removeprefix(TRANSFORMER)
    if path == encoder or not (folder := Path(os.path.expanduser(path))).is_dir():
        return encoder
    return TRANSFORMER + resolve(folder).name


def _rank(label: Label) -> tuple[bool, Label]:
    return isinstance(label, str), label


def _class_weight(class_weight: str | Mapping[Label, float] | None) -> Any:
    """Class weights as a JSON list: keys of a JSON object would all become strings."""
    if isinstance(class_weight, str | None):
        return class_weight
    items = ((label.item() if isinstance(label, np.generic) else label, float(w)) for label, w in class_weight.items())
    return sorted(items, key=lambda item: _rank(item[0]))


def _name(file: str | Path | None) -> str | None:
    """File name without a local path."""
    return None if file is None else Path(file).name
