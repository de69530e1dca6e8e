"""Models of the study: texts, training of a group of models, and saved models for the probes."""

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from steadygaze.adapters.load_and_explain import load
from steadygaze.data import word_vectors
from steadygaze.data.corpora import load_corpus
from steadygaze.data.word_tokenizer import SPECIALS, UNKNOWN, tokenizer_of_words
from steadygaze.estimator.model_folder import SavedModel
from steadygaze.estimator.resumable_training import ClassifierFit, columns, fit_many
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.inference import Model
from steadygaze.perturbations.gradient_ascent import embedding_std
from studies import jobs
from studies.data_folder import data_folder
from studies.stability.ensemble import Ensemble
from studies.stability.plan import SETTINGS, ModelGroup

TRAINING_TABLE = "training.parquet"


@dataclass(frozen=True, kw_only=True)
class ModelOptions(jobs.JobOptions):
    """Paths of inputs and results, and options of the models."""

    glove: Path = field(metadata={"help": "file of word vectors"})
    synonyms: Path = field(metadata={"help": "folder of synonym tables"})
    epochs: int | None = None
    limit: int | None = field(default=None, metadata={"help": "texts per split, for a trial run"})

    def model(self, group: ModelGroup, seed: int) -> Path:
        """The folder of a model."""
        return self.out / "models" / group.model_name(seed)

    def outputs(self, group: ModelGroup, seed: int) -> Path:
        """The file of the attention, probabilities and mask of the test texts."""
        return self.out / "outputs" / f"{group.model_name(seed)}.npz"

    def examples(self, setting: str, split: str) -> list[Any]:
        return list(_splits(SETTINGS[setting][0], self.limit)[split])


@cache
def _splits(corpus: str, limit: int | None) -> dict[str, list[Any]]:
    """The splits; with `limit`, about as many texts, spread over each split."""
    splits = load_corpus(corpus, data_dir=data_folder(corpus)).splits
    return {name: list(texts[:: max(1, len(texts) // limit) if limit else 1]) for name, texts in splits.items()}


def train(options: ModelOptions, group: ModelGroup) -> dict[str, Any]:
    """Train the models of a group, on a GPU as one program, and save them."""
    read_vectors_once()
    fits = [
        ClassifierFit(_classifier(options, group, seed), _teachers(options, group, seed)) for seed in range(group.seeds)
    ]
    train_split, validation = (columns(options.examples(group.setting, split)) for split in ("train", "validation"))
    for seed, clf in enumerate(fit_many(fits, *train_split, validation=validation)):
        if clf is None:
            raise RuntimeError(f"{group.name}: training with seed {seed} diverged")
        clf.save(options.model(group, seed))
    return {"models": group.seeds}


def _classifier(options: ModelOptions, group: ModelGroup, seed: int) -> TextClassifier:
    table = options.synonyms / TRAINING_TABLE
    return TextClassifier(
        SETTINGS[group.setting][1],
        group.technique,
        seed=seed,
        epochs=options.epochs,
        vectors=options.glove,
        settings={**group.config, "synonyms": str(table)},
        synonym_groups=table if group.has_groups else None,
        device=options.device,
        verbose=False,
    )


def _teachers(options: ModelOptions, group: ModelGroup, seed: int) -> list[TextClassifier]:
    if not group.reads_teachers:
        return []
    teachers = group.sibling(group.teachers)
    return [load(options.model(teachers, teacher), device=options.device) for teacher in group.teacher_seeds(seed)]


@dataclass(frozen=True)
class ProbedModel:
    """A model and the vocabulary of its probes."""

    stored: SavedModel
    """Tokenizer and classes."""
    model: Model
    words: int
    """Ids of a vocabulary without groups: probes substitute these words."""
    deviation: float = 1.0
    """σ of the word vectors before `without_groups` over σ after it."""


def probed_model(options: ModelOptions, group: ModelGroup, seed: int) -> ProbedModel:
    if group.row == "ensemble" or group.temperature:
        members = [clf.stored_ for clf in _teachers(options, group, seed)]
        stored = members[0]
        model = Ensemble([member.model for member in members]) if len(members) > 1 else stored.model
        if group.temperature:
            divide_scores(stored.model, group.temperature)
        return ProbedModel(stored, model, stored.tokenizer.size)
    stored = load(options.model(group, seed), device=options.device).stored_
    if not group.has_groups:
        return ProbedModel(stored, stored.model, stored.tokenizer.size)
    plain = load(options.model(group.sibling("vanilla"), 0), device="cpu").stored_.tokenizer.vocabulary
    before = embedding_std(stored.model.vectors)
    stored = without_groups(stored, plain)
    return ProbedModel(stored, stored.model, len(plain), float(before / embedding_std(stored.model.vectors)))


def divide_scores(model: Any, temperature: float) -> None:
    """Divide the attention scores: additive scores are linear in their last weights."""
    with torch.no_grad():
        model.scorer.weigh.weight /= temperature


def without_groups(stored: SavedModel, plain_vocabulary: list[str]) -> SavedModel:
    """The same model with an id for every word of a group, and the vector of the group for each of these ids.

    The first ids are those of a model without groups.  Probes therefore substitute the same words by the same synonyms
    in both, and a substitution inside a group does not change the input of this model.
    """
    groups, ids = stored.tokenizer.synonym_groups, {name: i for i, name in enumerate(stored.tokenizer.vocabulary)}
    assert groups is not None
    known = set(plain_vocabulary)
    further = [word for word, name in groups.representatives.items() if name in ids and word not in known]
    further += [word for word in ids if word not in known and word not in groups.representatives]
    vocabulary = [*plain_vocabulary, *dict.fromkeys(further)]
    unknown = ids[UNKNOWN]
    rows = [ids.get(groups.representatives.get(word, word), unknown) for word in vocabulary]
    model: Any = stored.model
    vectors = model.vectors.detach()[torch.tensor(rows, device=model.vectors.device)]
    model.encoder.embedding = nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=0)  # type: ignore[no-untyped-call]
    words = vocabulary[len(SPECIALS) :]
    return replace(stored, tokenizer=tokenizer_of_words(words, max_length=stored.tokenizer.max_length))


def read_vectors_once() -> None:
    """Parses the file of word vectors once per vocabulary and process, not once per model."""
    parse = word_vectors._text

    def parse_once(path: Path, row_of: dict[str, int]) -> dict[int, Any]:
        key = (path, tuple(row_of))
        if key not in _VECTORS:
            _VECTORS[key] = parse(path, row_of)
        return _VECTORS[key]

    if not _VECTORS:
        word_vectors._text = parse_once


_VECTORS: dict[Any, dict[int, Any]] = {}
