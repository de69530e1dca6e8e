"""The model of Bai et al. 2021 (arXiv:2006.05656), Figure 2, its training, and the measures of Tables 1 and 2.

    encode    frozen word vectors
    score     v·tanh(W x_t + U q)    q: a convolution over the whole review, maximum over time
    attend    softmax over a b c d and the first five words
    decode    pooling     a linear layer on Σ w_t x_t
              rcnn        tanh(W [left; w_t x_t; right]), maximum over time, a linear layer; left, right: LSTM states
                          of the positions before and after (Lai et al. 2015)

The query is part of the scorer, so stage 2 of random-pretraining trains it.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from steadygaze.core.types import Encoded
from steadygaze.data.batches import Data
from steadygaze.data.corpora import load_corpus
from steadygaze.data.word_tokenizer import SPECIALS, build_word_tokenizer
from steadygaze.data.word_vectors import read_vectors
from steadygaze.models import inference
from steadygaze.models.attention_layers import Softmax, context
from steadygaze.models.classifier import Classifier
from steadygaze.models.encoders.word_encoders import Convolutional, WordEncoder, embedding
from steadygaze.models.inference import Model
from steadygaze.properties.measures.shortcut_measures import class_gap
from steadygaze.properties.protocols.default_tokens import (
    DEFAULTS,
    PLACES,
    default_token_mask,
    default_token_positions,
    with_default_tokens,
)
from steadygaze.techniques import TECHNIQUES
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.technique_loop import TrainingJob
from steadygaze.training.training_run import TrainingRun
from studies.black_boxes.texts import select_rows

HIDDEN = 100
MAX_WORDS = 400
MIN_REVIEWS = 5
"""Training reviews in which a word of the vocabulary occurs."""
POSITIVE = "positive"
DECODED_TOKENS = 1 + PLACES
"""The start of the text, which has no weight, and the nine positions that attention covers."""
SELECTION_TEXTS = 2_000
"""Training texts that select the epoch.  As in the paper, no texts are held out."""


class IdentityEncoder(nn.Module):
    """Word vectors as hidden states."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, embedded: Tensor, present: Tensor) -> tuple[Tensor, Tensor | None]:
        return embedded * present.unsqueeze(-1), None


class QueryScorer(nn.Module):
    """Scores of words, given a query from the whole review."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = Convolutional(size, HIDDEN // 2)
        self.project, self.project_query = nn.Linear(size, HIDDEN), nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.output = nn.Linear(HIDDEN, 1, bias=False)

    def forward(self, encoded: Encoded) -> Tensor:
        present = encoded.hidden.abs().amax(-1) > 0  # the vector of padding is zero
        _, query = self.query(encoded.hidden, present)
        inner = self.project(encoded.hidden[:, :DECODED_TOKENS]) + self.project_query(query).unsqueeze(1)
        return pad(self.output(inner.tanh()).squeeze(-1), (0, max(0, encoded.hidden.shape[1] - DECODED_TOKENS)))


class Pooling(nn.Module):
    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.output = nn.Linear(size, classes)

    def forward(self, encoded: Encoded, weights: Tensor) -> Tensor:
        logits: Tensor = self.output(context(encoded, weights))
        return logits


class RCNN(nn.Module):
    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.context = nn.LSTM(size, HIDDEN // 2, batch_first=True, bidirectional=True)
        self.inner, self.output = nn.Linear(size + HIDDEN, HIDDEN), nn.Linear(HIDDEN, classes)

    def train(self, mode: bool = True) -> "RCNN":
        """cuDNN computes gradients of an LSTM only in training mode, also if it is frozen; it has no dropout."""
        super().train(mode).context.train()
        return self

    def forward(self, encoded: Encoded, weights: Tensor) -> Tensor:
        weighted = (encoded.hidden * weights.unsqueeze(-1))[:, :DECODED_TOKENS]
        weighted = pad(
            weighted, (0, 0, 0, DECODED_TOKENS - weighted.shape[1])
        )  # the result does not depend on the length of the batch
        left, right = self.context(weighted)[0].chunk(2, -1)
        before, after = pad(left, (0, 0, 1, -1)), pad(right, (0, 0, -1, 1))
        logits: Tensor = self.output(self.inner(torch.cat([before, weighted, after], -1)).tanh().amax(1))
        return logits


DECODERS = {"pooling": Pooling, "rcnn": RCNN}


class RestrictedClassifier(Classifier):
    def __init__(self, encoder: str, vectors: Tensor, classes: int = 2) -> None:
        Model.__init__(self)
        size, self.classes = vectors.shape[1], classes
        self.encoder = WordEncoder(
            embedding(len(vectors), size, vectors, trainable=False), IdentityEncoder(size), None, 0.0
        )
        self.scorer, self.attention = QueryScorer(size), Softmax()
        self.decoder = DECODERS[encoder](size, classes)


@dataclass(frozen=True)
class Texts:
    train: Data
    test: Data
    vectors: Tensor


@lru_cache(maxsize=1)
def load_texts(data_dir: Path | None, vectors: str, max_texts: int) -> Texts:
    """Random reviews of each split after the default tokens, and the vectors of their words."""
    corpus, splits = load_corpus("imdb", data_dir=data_dir), dict[str, Data]()
    for split in ("train", "test"):
        rows = np.random.default_rng(0).permutation(len(corpus.splits[split]))[:max_texts]
        examples = [corpus.splits[split][i] for i in rows]
        texts = with_default_tokens(example.text.replace("<br />", " ") for example in examples)
        if split == "train":
            words = build_word_tokenizer(texts, min_df=MIN_REVIEWS, max_length=MAX_WORDS + len(DEFAULTS))
        label = np.array([example.label == POSITIVE for example in examples], np.int64)
        splits[split] = Data(default_token_mask(words.encode(texts)), None, label)
    table = read_vectors(vectors, words.vocabulary, seed=0)
    print(f"{words.size:,} words, {table.coverage(specials=len(SPECIALS)):.1%} of them have a vector", flush=True)
    return Texts(splits["train"], splits["test"], torch.from_numpy(table.matrix).half().float())


def train(
    texts: Texts, encoder: str, technique: str, settings: dict[str, Any], training: Training, seed: int, device: str
) -> tuple[Classifier, list[dict[str, Any]]]:
    """The model and the history of its training."""
    sample = select_rows(texts.train, np.random.default_rng(0).permutation(len(texts.train))[:SELECTION_TEXTS])
    with accelerator(device, "no") as accelerate:
        job = TrainingJob(texts.train, sample, training, accelerate, SilentWatcher())
        run = TrainingRun(
            TECHNIQUES[technique](**settings), lambda: RestrictedClassifier(encoder, texts.vectors), job, seed
        )
        model = run.execute().to(accelerate.device)
        assert isinstance(model, Classifier)
        return model, run.history


def measure_attention(model: Classifier, texts: Texts) -> dict[str, Any]:
    """As in Tables 1 and 2: mean attention of the training texts to each position by class, and accuracies."""
    outputs = inference.split_outputs(model, texts.train, 512, widest=DECODED_TOKENS)
    test = inference.logits(model, texts.test, 512)
    weights, mask = default_token_positions(outputs.weights.double(), outputs.mask)
    label, test_label = torch.from_numpy(texts.train.label), torch.from_numpy(texts.test.label)
    by_class = [weights[label == index].mean(0) for index in range(2)]
    return {
        "attention": [means.tolist() for means in by_class],  # negative, positive; a b c d and five words
        "defaults": [float(means[: len(DEFAULTS)].sum()) for means in by_class],
        "mass": float(weights[:, : len(DEFAULTS)].sum(-1).mean()),
        "gap": class_gap(weights, label, mask),
        "train": float((outputs.logits.argmax(-1) == label).double().mean()),
        "test": float((test.argmax(-1) == test_label).double().mean()),
    }
