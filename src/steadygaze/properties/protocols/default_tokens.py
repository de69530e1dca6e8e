"""Default tokens: retrain the model with four tokens without content in front of every text.

Bai et al., "Why Attentions May Not Be Interpretable?", KDD 2021 (arXiv:2006.05656), §3.2 and Table 1.

    a b c d  the film was a bore …          attention is limited to the four and the first five words of the text

    default-mass/default-tokens    share of the attention on the four tokens
    class-gap/default-tokens       distance between the class-mean attentions, over the four tokens and five words

The architecture, technique and settings stay the same.  A class gap means that the label can be predicted from the
attention positions.  Both measures use the training texts.

Departs from the paper: the paper builds a model for this test, here it is the user's own.  With a contextual encoder,
the hidden state of a default token depends on the text, so mass on it is not a shortcut in itself.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.core.ragged import TokenArray
from steadygaze.core.types import OnProgress, no_progress
from steadygaze.data.batches import Data
from steadygaze.estimator import fit, small_data
from steadygaze.estimator.inputs import Split, read_split, read_validation
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.estimator.train_config import train_config
from steadygaze.models import inference
from steadygaze.models.inference import Model
from steadygaze.properties.audit_case import Finding, TrainingTask
from steadygaze.properties.measures.shortcut_measures import class_gap, default_mass
from steadygaze.results.intervals import bootstrap_statistic
from steadygaze.results.note import Note, NoteCode
from steadygaze.training.device import accelerator
from steadygaze.training.progress import QuietWatcher
from steadygaze.training.technique_loop import TrainingJob
from steadygaze.training.training_run import TrainingRun

DEFAULTS = ("a", "b", "c", "d")
WORDS = 5
"""Words of the text that attention is limited to."""
PLACES = len(DEFAULTS) + WORDS


def with_default_tokens(texts: Iterable[str]) -> list[str]:
    """Prepend the default tokens to each text."""
    return [f"{' '.join(DEFAULTS)} {text}" for text in texts]


def default_token_mask(read: TokenArray, places: int = PLACES) -> TokenArray:
    """Limit attention to the first `places` words of each text; the encoder reads all."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(read.words)])  # words before each token
    position = before[:-1] - np.repeat(before[read.starts[:-1]], read.lengths)
    return replace(read, words=read.words & (position < places))


def default_token_positions(weights: Tensor, mask: Tensor, places: int = PLACES) -> tuple[Tensor, Tensor]:
    """Weights and mask of the first `places` words.  (N,T), (N,T) -> (N,places) twice"""
    weights, mask = (pad(values, (0, max(0, places - mask.shape[1]))) for values in (weights, mask))
    order = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices[:, :places]
    present = mask.gather(-1, order)
    return weights.gather(-1, order).masked_fill(~present, 0.0), present


DEFAULT_TOKEN_MEASURES = ("default-mass/default-tokens", "class-gap/default-tokens")
CONTEXT_FREE = "average"
"""The encoder whose hidden states do not depend on other words."""
SETTINGS: dict[str, str | int | float] = {"defaults": " ".join(DEFAULTS), "words": WORDS}


def default_tokens(
    clf: TextClassifier,
    train: tuple[Any, Any],
    validation: tuple[Any, Any] | None = None,
    on_progress: OnProgress = no_progress,
) -> Iterator[Finding]:
    """`train` and `validation`: texts and labels, as `fit` takes them, that `clf` was trained with."""
    held_out = None if validation is None else read_validation(validation)
    on_progress(TrainingTask.DEFAULT_TOKENS, 0, 1)
    model, data = retrain_with_default_tokens(clf, read_split(*train), held_out)
    weights, mask = default_token_attention(model, data)
    blank = torch.arange(PLACES).expand_as(mask) < len(DEFAULTS)
    mass, label = default_mass(weights, blank, mask), torch.from_numpy(np.asarray(data.label))
    yield _finding("default-mass/default-tokens", lambda draws: mass[draws].mean(-1).numpy(), clf, len(data))

    def class_gaps(draws: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.array([class_gap(weights[rows], label[rows], mask[rows]) for rows in draws])

    yield _finding("class-gap/default-tokens", class_gaps, clf, len(data))


def retrain_with_default_tokens(
    clf: TextClassifier, train: Split, validation: Split | None = None
) -> tuple[Model, Data]:
    """Train a model like `clf` on texts with default tokens; returns the model and its data."""
    config, watcher = small_data.resolve(train_config(clf.get_params(deep=False)), train), QuietWatcher()
    prefixed = None if validation is None else _prefixed(validation)
    plan, train, held_out = fit.prepare(config, _prefixed(train), prefixed, watcher)
    data = _restricted(plan.encode(train, train.weighted(config.class_weight)))
    held_out_data = _restricted(plan.encode(held_out))
    with accelerator(config.device, config.training.precision) as accelerate:
        table = plan.vocabulary_for(config.technique, watcher)
        synonyms = None if table is None else table.to(accelerate.device)
        job = TrainingJob(data, held_out_data, config.training, accelerate, watcher, synonyms)
        return TrainingRun(config.technique, plan.make_model, job, config.seed).execute(), data


def default_token_attention(model: Model, data: Data) -> tuple[Tensor, Tensor]:
    """The attention on each of the nine positions, and their mask.  (N,9), (N,9)"""
    outputs = inference.split_outputs(model, data, widest=2 * PLACES)  # no special token is between words
    return default_token_positions(outputs.weights.double(), outputs.mask)


def _finding(
    name: str, statistic: Callable[[NDArray[np.int64]], NDArray[np.float64]], clf: TextClassifier, texts: int
) -> Finding:
    value = float(statistic(np.arange(texts)[None])[0])
    interval = bootstrap_statistic(statistic, texts, seed=clf.seed)
    notes = () if clf.encoder == CONTEXT_FREE else (Note(NoteCode.CONTEXTUAL_DEFAULT_TOKENS),)
    return Finding(name, None, "attention", SETTINGS, notes, value=value, interval=interval, n=texts)


def _prefixed(split: Split) -> Split:
    return replace(split, texts=with_default_tokens(split.texts), sentences=None)


def _restricted(data: Data) -> Data:
    return replace(data, text=default_token_mask(data.text))
