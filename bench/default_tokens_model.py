"""The model of Bai et al. 2021, Figure 2, built of our four seams, and one training of it.

    encode    the frozen word vectors themselves
    score     v·tanh(W x_t + U q)    q: a convolution over the whole review, maximum over time; it enters nothing else
    attend    softmax over a b c d and the first five words
    decode    of the weighted vectors w_t x_t
              pooling     their sum, a linear layer
              rcnn        tanh(W [left; w_t x_t; right]), maximum over time, a linear layer; left, right: what an LSTM
                          made of the places before and after (Lai et al. 2015)

The query is part of the scorer: it is what attention learns, and stage 2 of random-pretraining trains it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad

from steadygaze.audit.measures.shortcut_measures import class_gap
from steadygaze.audit.protocols.default_tokens import DEFAULTS, PLACES, default_token_positions
from steadygaze.core.ragged import TokenArray
from steadygaze.core.types import Encoded
from steadygaze.data.batches import Data
from steadygaze.models import inference
from steadygaze.models.attention_layers import Softmax, context
from steadygaze.models.classifier import Classifier
from steadygaze.models.encoders.word_encoders import Convolutional, WordEncoder, embedding
from steadygaze.models.inference import Model
from steadygaze.techniques import TECHNIQUES
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.technique_loop import TrainingJob as Work
from steadygaze.training.training_run import TrainingRun

HIDDEN = 100
READ = 1 + PLACES
"""Tokens a decoder may see: the start of the text, which nobody looks at, and the nine places."""
CHOSEN_ON = 2_000
"""Training texts by which the epoch is kept: as in the paper nothing is held out, so that it is one of the last."""


class Vectors(nn.Module):
    """Word vectors as hidden states."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, embedded: Tensor, present: Tensor) -> tuple[Tensor, Tensor | None]:
        return embedded * present.unsqueeze(-1), None


class Asking(nn.Module):
    """Scores each word by itself and by what the whole review says."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = Convolutional(size, HIDDEN // 2)
        self.project, self.ask = nn.Linear(size, HIDDEN), nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.weigh = nn.Linear(HIDDEN, 1, bias=False)

    def forward(self, encoded: Encoded) -> Tensor:
        present = encoded.hidden.abs().amax(-1) > 0  # only padding has no vector
        _, query = self.query(encoded.hidden, present)
        inner = self.project(encoded.hidden[:, :READ]) + self.ask(query).unsqueeze(1)
        return pad(self.weigh(inner.tanh()).squeeze(-1), (0, max(0, encoded.hidden.shape[1] - READ)))


class Pooling(nn.Module):
    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.output = nn.Linear(size, classes)

    def forward(self, encoded: Encoded, weights: Tensor) -> Tensor:
        return self.output(context(encoded, weights))


class RCNN(nn.Module):
    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.around = nn.LSTM(size, HIDDEN // 2, batch_first=True, bidirectional=True)
        self.inner, self.output = nn.Linear(size + HIDDEN, HIDDEN), nn.Linear(HIDDEN, classes)

    def train(self, mode: bool = True) -> "RCNN":
        """Frozen too it must hand slopes on, which cuDNN does in training mode only; nothing in it drops out."""
        super().train(mode).around.train()
        return self

    def forward(self, encoded: Encoded, weights: Tensor) -> Tensor:
        weighted = (encoded.hidden * weights.unsqueeze(-1))[:, :READ]
        weighted = pad(weighted, (0, 0, 0, READ - weighted.shape[1]))  # a short text is not told from a short batch
        left, right = self.around(weighted)[0].chunk(2, -1)
        before, after = pad(left, (0, 0, 1, -1)), pad(right, (0, 0, -1, 1))
        return self.output(self.inner(torch.cat([before, weighted, after], -1)).tanh().amax(1))


ENCODERS = {"pooling": Pooling, "rcnn": RCNN}


class Restricted(Classifier):
    def __init__(self, encoder: str, vectors: Tensor, classes: int = 2) -> None:
        Model.__init__(self)
        size, self.classes = vectors.shape[1], classes
        self.encoder = WordEncoder(embedding(len(vectors), size, vectors, trainable=False), Vectors(size), None, 0.0)
        self.scorer, self.attention = Asking(size), Softmax()
        self.decoder = ENCODERS[encoder](size, classes)


@dataclass(frozen=True)
class Texts:
    train: Data
    test: Data
    vectors: Tensor


def chosen_on(data: Data) -> Data:
    rows = np.random.default_rng(0).permutation(len(data))[:CHOSEN_ON]
    return some(data, rows)


def some(data: Data, rows: NDArray[np.int64]) -> Data:
    assert data.label is not None
    return Data(data.text.select(rows), None, data.label[rows])


def trained(texts: Texts, encoder: str, technique: str, settings: dict[str, Any], how: Training, seed: int, on: str):
    """(model, history)"""
    with accelerator(on, "no") as accelerate:
        work = Work(texts.train, chosen_on(texts.train), how, accelerate, SilentWatcher())
        run = TrainingRun(TECHNIQUES[technique](**settings), lambda: Restricted(encoder, texts.vectors), work, seed)
        return run.execute().to(accelerate.device), run.history


def measured(model: Classifier, texts: Texts) -> dict[str, Any]:
    """As in Tables 1 and 2: of the training texts, the mean attention to each place by class."""
    read, test = inference.split_outputs(model, texts.train, 512, widest=READ), inference.logits(model, texts.test, 512)
    weights, mask = default_token_positions(read.weights.double(), read.mask)
    label, tested = torch.from_numpy(texts.train.label), torch.from_numpy(texts.test.label)
    by_class = [weights[label == label_class].mean(0) for label_class in range(2)]
    return {
        "attention": [means.tolist() for means in by_class],  # negative, positive; a b c d and five words
        "defaults": [float(means[: len(DEFAULTS)].sum()) for means in by_class],
        "mass": float(weights[:, : len(DEFAULTS)].sum(-1).mean()),
        "gap": class_gap(weights, label, mask),
        "train": float((read.logits.argmax(-1) == label).double().mean()),
        "test": float((test.argmax(-1) == tested).double().mean()),
    }


def ragged(ids: NDArray[Any], words: NDArray[np.bool_], starts: NDArray[np.int64]) -> TokenArray:
    return TokenArray(ids.astype(np.int32), words, starts, np.zeros(len(starts) - 1, np.bool_))
