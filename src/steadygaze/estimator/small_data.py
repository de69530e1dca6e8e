"""Settings for small datasets, chosen at fit time from the number of texts.

A recurrent network with random word vectors learns little from a few hundred texts, and a held-out tenth of them is too
small to select an epoch.  From 100 to 1,999 texts the defaults therefore change:

    label_vectors = true      word vectors contain the weights of a TF-IDF logistic regression
    train_vectors = false     word vectors are fixed
    min_df = 1                all words of the training texts are known
    word_dropout = 0.3        hidden words train the vector of unknown words
    schedule = linear         the learning rate decays to zero
    select = last             the last epoch that is not degenerate is selected
    vectors = glove-50d       if the extra `glove` is installed and has 80 % of the words; not with small_data=True

With fewer than 600 texts, training is also four to eight times faster at the same macro-F1:

    hidden = 64               units of the encoder, instead of 128
    batch_size = 8            instead of 32: 300 steps read the texts a quarter as often

An explicit setting overrides these.  `small_data=False` turns all of them off; `small_data=True` applies them to a
dataset of any size.  They apply to classifiers of single texts with a word encoder.  Transformers, pairs and
rationalizers keep the usual defaults.  Measured by studies/small_data; results in docs/results/small-data.md.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steadygaze.core.errors import UserError
from steadygaze.data.word_tokenizer import document_frequency
from steadygaze.data.word_vectors import LOW_COVERAGE, PACKAGED, packaged_coverage
from steadygaze.estimator.inputs import Split
from steadygaze.estimator.train_config import TrainConfig
from steadygaze.models.classifier import Classifier
from steadygaze.models.encoders import TRANSFORMER
from steadygaze.training.progress import Watcher

LEAST, SMALL = 100, 2000
"""The settings apply from LEAST texts to fewer than SMALL.  They were measured on 200 to 1,000 texts."""
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "architecture": {"train_vectors": False, "word_dropout": 0.3},
    "training": {"schedule": "linear", "select": "last"},
    "text": {"min_df": 1, "label_vectors": True},
}
FEW = 600
"""Below this number of texts, FEW_SETTINGS apply too; with 1,000 texts they lower macro-F1."""
FEW_SETTINGS: Mapping[str, Mapping[str, Any]] = {"architecture": {"hidden": 64}, "training": {"batch_size": 8}}
NAMES = frozenset(name for part in (SETTINGS, FEW_SETTINGS) for values in part.values() for name in values)
"""Names of these settings.  A saved model has explicit values of them, so that a loaded one repeats its training."""
NEAR = 0.1
"""Macro-F1 above a guess that counts as near it."""
TOO_FEW_TO_SELECT = "the validation texts are too few to select an epoch"


def resolve(config: TrainConfig, train: Split) -> TrainConfig:
    """The configuration with the settings for small datasets, if they apply to these texts."""
    if not _applies(config, train):
        return config
    parts = {
        part: dataclasses.replace(
            getattr(config, part), **{name: value for name, value in values.items() if name not in config.chosen}
        )
        for part, values in _settings(len(train.texts)).items()
    }
    parts["text"] = dataclasses.replace(parts["text"], small_data=True)
    vectors = _vectors(config, train)
    return dataclasses.replace(config, **parts, vectors=vectors, default_vectors=vectors != config.vectors)


def _settings(texts: int) -> dict[str, dict[str, Any]]:
    """The settings for this number of texts, by part of the configuration."""
    return {
        part: {**values, **(FEW_SETTINGS.get(part, {}) if texts < FEW else {})} for part, values in SETTINGS.items()
    }


def _vectors(config: TrainConfig, train: Split) -> str | Path | None:
    """The user's vectors; without any, the installed package if it has the words of the texts."""
    if config.vectors is not None or config.text.small_data is not None or "dimension" in config.chosen:
        return config.vectors
    return PACKAGED if packaged_coverage(document_frequency(train.texts)) >= LOW_COVERAGE else None


def _applies(config: TrainConfig, train: Split) -> bool:
    obstacle = _obstacle(config, train)
    if config.text.small_data and obstacle is not None:
        raise UserError(f"small_data=true does not support {obstacle}: remove the setting")
    automatic = config.text.small_data is None and LEAST <= len(train.texts) < SMALL
    return obstacle is None and (automatic or config.text.small_data is True)


def _obstacle(config: TrainConfig, train: Split) -> str | None:
    if config.encoder.startswith(TRANSFORMER):
        return f"the encoder {config.encoder}"
    if train.questions is not None:
        return "pairs"
    return None if config.technique.kind is Classifier else f"the technique {config.technique_name}"


def announce(config: TrainConfig, train: Split, watcher: Watcher) -> None:
    """Show that the settings for small datasets apply, and their values with -v."""
    if not config.text.small_data:
        return
    few = f"fewer than {SMALL:,} texts: " if len(train.texts) < SMALL else ""
    watcher.say(
        f"{few}training uses the settings for small datasets (-v lists them; --set small_data=false turns them off)"
    )
    if config.training.select == "last":
        watcher.say(f"the model of the last epoch is saved, if it is not degenerate: {TOO_FEW_TO_SELECT}")
    if config.vectors == PACKAGED and config.default_vectors:
        watcher.say(
            f"word vectors: {PACKAGED}, because the extra glove is installed "
            "(--set small_data=true trains without them)"
        )
    names = [f"vectors={config.vectors}"]
    settings = _settings(len(train.texts))
    names += [f"{name}={getattr(getattr(config, part), name)}" for part, values in settings.items() for name in values]
    watcher.detail(f"settings for small datasets: {', '.join(names)}")


def advice(config: TrainConfig, validation: Split, score: float, classes: int, stalled: bool = False) -> str | None:
    """Advice if macro-F1 is near that of a guess; else None.  `stalled`: the training loss hardly changed."""
    if len(validation.texts) < LEAST // 10:  # too few for a score
        return None
    _, counts = np.unique(np.asarray(validation.labels), return_counts=True)
    share = counts.max() / counts.sum()
    constant = 2 * share / (1 + share) / len(counts)  # macro-F1 of the most frequent label
    guess = max(constant, 1 / classes)
    pretrained = config.encoder.startswith(TRANSFORMER)
    if score >= guess + NEAR or (pretrained and not stalled):
        return None
    remark = f"the validation macro-F1 of {score:.2f} is near that of a guess, {guess:.2f}."
    if stalled:
        name = f"{'encoder_' if pretrained else ''}learning_rate"
        return f"{remark}  The training loss hardly changed: try a higher {name} (--set) or more --epochs."
    vectors = (
        f"  Or use word vectors: pip install 'steadygaze[glove]'; training with {LEAST} to {SMALL - 1:,} texts then "
        f"uses them by default, other trainings with --vectors {PACKAGED}."
    )
    return (
        f"{remark}  For English texts, train a pre-trained encoder: pip install 'steadygaze[minilm]', then add "
        f"--encoder transformer:minilm.{vectors if config.vectors is None else ''}"
    )
