"""Default tokens: four that stand before every text and say nothing of it.

Bai et al., "Why Attentions May Not Be Interpretable?", KDD 2021 (arXiv:2006.05656), §3.2.

    a b c d  the film was a bore …          attention may look at the four, and at the first five words of the text

Whoever looks there looks at nothing; who looks at another of them for each label has made a code of them.

Would this attention talk in code?  The model once more, trained where it could.

Bai et al., "Why Attentions May Not Be Interpretable?", KDD 2021 (arXiv:2006.05656), §3.2 and Table 1.

    default-mass/default-tokens    which part of the attention lies on four tokens that are the same in every text
    class-gap/default-tokens       how far the mean attentions of the classes are apart, over the four and five words

A model of the same shape is trained by the same technique and settings; four default tokens stand before every text,
and attention may look at these and the first five words (probe/default_tokens.py).  Mass on them is attention to
nothing; a gap says that the label can be read off where it looks.  Both are of the texts it was trained on: it is about
how the data are fitted.

Departs from the paper: the user's own model, where the paper has one built for this; in a model whose hidden states
know their neighbours a default token's holds some of the text, and mass there is no code by itself.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.audit.finding import Finding
from steadygaze.audit.measure_names import probe_names
from steadygaze.audit.measures.shortcut_measures import class_gap, default_mass
from steadygaze.core.ragged import TokenArray
from steadygaze.data.batches import Data
from steadygaze.estimator import fit
from steadygaze.estimator.inputs import Split, read_split
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.estimator.train_config import train_config
from steadygaze.models import inference
from steadygaze.models.model_protocol import Model
from steadygaze.results.row import bootstrap_rows
from steadygaze.training.device import accelerator
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.training_loop import TrainingJob
from steadygaze.training.training_run import TrainingRun

DEFAULTS = ("a", "b", "c", "d")
WORDS = 5
"""Of the text, that may be looked at."""
PLACES = len(DEFAULTS) + WORDS


def with_default_tokens(texts: Iterable[str]) -> list[str]:
    """The texts, the default tokens before each."""
    return [f"{' '.join(DEFAULTS)} {text}" for text in texts]


def default_token_mask(read: TokenArray, places: int = PLACES) -> TokenArray:
    """Only the first so many words of each text may be looked at; all are read."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(read.words)])  # words before each token
    place = before[:-1] - np.repeat(before[read.starts[:-1]], read.lengths)
    return replace(read, words=read.words & (place < places))


def default_token_positions(weights: Tensor, mask: Tensor, places: int = PLACES) -> tuple[Tensor, Tensor]:
    """Weights and mask of the words that may be looked at, in their order.  (N,T), (N,T) -> (N,places) twice"""
    weights, mask = (pad(one, (0, max(0, places - mask.shape[1]))) for one in (weights, mask))
    order = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices[:, :places]
    kept = mask.gather(-1, order)
    return weights.gather(-1, order).masked_fill(~kept, 0.0), kept


CODED = probe_names("default-tokens")
UNCODED = "it takes a training: in Python, train= gives the texts and labels for it"
CONTEXT_FREE = "average"
"""The encoder whose hidden states know of no neighbour."""
NEIGHBOURS = "a default token's hidden state holds some of its neighbours: mass there is not code by itself"
HOW: dict[str, str | int | float] = {"defaults": " ".join(DEFAULTS), "words": WORDS}


class QuietWatcher(SilentWatcher):
    """That attention says little where it may look at nine places is what is measured."""

    def warn(self, message: str) -> None: ...


def default_tokens(clf: TextClassifier, train: tuple[Any, Any]) -> Iterator[Finding]:
    """`train`: texts and labels, as `fit` takes them, that `clf` was trained with."""
    model, data = retrain_with_default_tokens(clf, read_split(*train))
    weights, mask = default_token_attention(model, data)
    blank = torch.arange(PLACES).expand_as(mask) < len(DEFAULTS)
    mass, label = default_mass(weights, blank, mask), torch.from_numpy(np.asarray(data.label))
    yield _found("default-mass", lambda rows: float(mass[rows].mean()), clf, len(data))
    yield _found("class-gap", lambda rows: class_gap(weights[rows], label[rows], mask[rows]), clf, len(data))


def retrain_with_default_tokens(clf: TextClassifier, train: Split) -> tuple[Model, Data]:
    """As `clf` was trained, but for the default tokens; and what it was trained on."""
    ordered, watcher = train_config(clf.get_params(deep=False)), QuietWatcher()
    plan, train, held_out = fit.prepare(ordered, replace(train, texts=with_default_tokens(train.texts)), None, watcher)
    data = _restricted(plan.encode(train, train.weighted(ordered.class_weight)))
    validation = _restricted(plan.encode(held_out))
    with accelerator(ordered.device, ordered.training.precision) as accelerate:
        known = plan.vocabulary_for(ordered.technique, watcher)
        synonyms = None if known is None else known.to(accelerate.device)
        job = TrainingJob(data, validation, ordered.training, accelerate, watcher, synonyms)
        return TrainingRun(ordered.technique, plan.make_model, job, ordered.seed).execute(), data


def default_token_attention(model: Model, data: Data) -> tuple[Tensor, Tensor]:
    """How much attention each of the nine places gets, and which are there.  (N,9), (N,9)"""
    read = inference.split_outputs(model, data, widest=2 * PLACES)  # no special token stands between words
    return default_token_positions(read.weights.double(), read.mask)


def _found(name: str, of: Callable[[NDArray[np.int64]], float], clf: TextClassifier, many: int) -> Finding:
    value, interval = of(np.arange(many)), bootstrap_rows(of, many, seed=clf.seed)
    note = "" if clf.encoder == CONTEXT_FREE else NEIGHBOURS
    return Finding(f"{name}/default-tokens", None, "attention", HOW, note, value=value, interval=interval, n=many)


def _restricted(data: Data) -> Data:
    return replace(data, text=default_token_mask(data.text))
