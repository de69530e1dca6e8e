"""Would this attention talk in code?  The model once more, trained where it could.

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

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze import fitting, infer
from steadygaze.audit.finding import Finding
from steadygaze.audit.measure.code import class_gap
from steadygaze.audit.measure.shortcut import default_mass
from steadygaze.audit.names import under
from steadygaze.audit.probe.default_tokens import DEFAULTS, PLACES, WORDS, introduced, restricted, seated
from steadygaze.batch import Data
from steadygaze.estimator import TextClassifier
from steadygaze.inputs import Split, read_split
from steadygaze.order import order
from steadygaze.reader import Reader
from steadygaze.report.interval import bootstrap_rows
from steadygaze.train.device import accelerator
from steadygaze.train.loop import Job
from steadygaze.train.progress import Silent
from steadygaze.train.run import Run

CODED = under("default-tokens")
UNCODED = "it takes a training: in Python, train= gives the texts and labels for it"
CONTEXT_FREE = "average"
"""The encoder whose hidden states know of no neighbour."""
NEIGHBOURS = "a default token's hidden state holds some of its neighbours: mass there is not code by itself"
HOW: dict[str, str | int | float] = {"defaults": " ".join(DEFAULTS), "words": WORDS}


class Mute(Silent):
    """That attention says little where it may look at nine places is what is measured."""

    def warn(self, message: str) -> None: ...


def default_tokens(clf: TextClassifier, train: tuple[Any, Any]) -> Iterator[Finding]:
    """`train`: texts and labels, as `fit` takes them, that `clf` was trained with."""
    model, data = retrained(clf, read_split(*train))
    weights, mask = looked(model, data)
    blank = torch.arange(PLACES).expand_as(mask) < len(DEFAULTS)
    mass, label = default_mass(weights, blank, mask), torch.from_numpy(np.asarray(data.label))
    yield _found("default-mass", lambda rows: float(mass[rows].mean()), clf, len(data))
    yield _found("class-gap", lambda rows: class_gap(weights[rows], label[rows], mask[rows]), clf, len(data))


def retrained(clf: TextClassifier, train: Split) -> tuple[Reader, Data]:
    """As `clf` was trained, but for the default tokens; and what it was trained on."""
    ordered, watcher = order(clf.get_params(deep=False)), Mute()
    plan, train, held_out = fitting.prepare(ordered, replace(train, texts=introduced(train.texts)), None, watcher)
    data = _restricted(plan.encode(train, train.weighted(ordered.class_weight)))
    validation = _restricted(plan.encode(held_out))
    with accelerator(ordered.device, ordered.training.precision) as accelerate:
        known = plan.vocabulary_for(ordered.technique, watcher)
        synonyms = None if known is None else known.to(accelerate.device)
        job = Job(data, validation, ordered.training, accelerate, watcher, synonyms)
        return Run(ordered.technique, plan.make_model, job, ordered.seed).execute(), data


def looked(model: Reader, data: Data) -> tuple[Tensor, Tensor]:
    """How much attention each of the nine places gets, and which are there.  (N,9), (N,9)"""
    read = infer.readings(model, data, widest=2 * PLACES)  # no special token stands between words
    return seated(read.weights.double(), read.mask)


def _found(name: str, of: Callable[[NDArray[np.int64]], float], clf: TextClassifier, many: int) -> Finding:
    value, interval = of(np.arange(many)), bootstrap_rows(of, many, seed=clf.seed)
    note = "" if clf.encoder == CONTEXT_FREE else NEIGHBOURS
    return Finding(f"{name}/default-tokens", None, "attention", HOW, note, value=value, interval=interval, n=many)


def _restricted(data: Data) -> Data:
    return replace(data, text=restricted(data.text))
