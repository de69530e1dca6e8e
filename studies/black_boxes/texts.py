"""The black box for texts of Bai et al. 2021 (arXiv:2006.05656, Table 6), its texts, and its training."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from steadygaze.adapters.transformer_network import TransformerOutput
from steadygaze.core.ragged import TokenArray, row_starts
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, by_length, collate, shuffled
from steadygaze.data.corpora import load_corpus
from steadygaze.data.word_tokenizer import SPECIALS, build_word_tokenizer
from steadygaze.models.inference import Capability, Model, inference
from steadygaze.perturbations.word_removal import take_rows
from studies.jobs import load_arrays

WORDS, LENGTH = 5000, 400
BOUNDARY_IDS = SPECIALS.index("<s>"), SPECIALS.index("</s>")
"""Ids of the start and the end of a text, which are left out."""
MAX_BATCH = 1024
"""Texts of one forward pass."""


class TextCNN(Model):
    """Vectors 50 → convolution 250×3 → maximum → 250 → classes.  The network reads padding up to `length` as words."""

    capabilities: frozenset[Capability] = frozenset({"embeddings"})

    def __init__(self, words: int, length: int = LENGTH, classes: int = 2) -> None:
        super().__init__()
        self.length = length
        self.words = nn.Embedding(words, 50)
        nn.init.uniform_(self.words.weight, -0.05, 0.05)  # as Keras does
        self.kernel = nn.Conv1d(50, 250, 3)
        self.inner, self.out = nn.Linear(250, 250), nn.Linear(250, classes)
        self.drop = nn.Dropout(0.2)

    @property
    def vectors(self) -> Tensor:
        return self.words.weight

    def embed(self, batch: Batch) -> Tensor:
        vectors: Tensor = self.words(batch.ids)
        return vectors

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> TransformerOutput:
        parts = torch.split(torch.arange(len(batch.ids)), MAX_BATCH)
        if len(parts) == 1:
            return self._read(batch, embedded)
        outputs = [self._read(take_rows(batch, rows), None if embedded is None else embedded[rows]) for rows in parts]
        return TransformerOutput(None, torch.cat([part.logits for part in outputs]))

    def _read(self, batch: Batch, embedded: Tensor | None) -> TransformerOutput:
        vectors = self.embed(batch) if embedded is None else embedded
        absent = ~batch.present.unsqueeze(-1)
        vectors = vectors.masked_fill(absent, 0.0) + self.words.weight[0] * absent
        padding = self.words.weight[0].expand(len(vectors), max(0, self.length - vectors.shape[1]), -1)
        hidden = self.kernel(self.drop(torch.cat([vectors, padding], 1)).transpose(1, 2)).relu().amax(-1)
        return TransformerOutput(None, self.out(self.drop(self.inner(hidden).relu())))


@dataclass(frozen=True)
class Texts:
    vocabulary: list[str]
    train: Data
    validation: Data
    test: Data

    @property
    def length(self) -> int:
        return int(self.train.text.lengths.max())


def read_texts(name: str, folder: Path, cache: Path) -> Texts:
    """Texts of the 5,000 most frequent words, cut to their last 400.  A tenth of the training texts is validation."""
    if not cache.exists():
        corpus = load_corpus(name, data_dir=folder)
        tokenizer = build_word_tokenizer([e.text for e in corpus.splits["train"]], max_length=2**31 - 1)
        counts = np.bincount(tokenizer.encode([e.text for e in corpus.splits["train"]]).ids, minlength=tokenizer.size)
        counts[: len(SPECIALS)] = 0
        frequent = np.argsort(-counts, kind="stable")[: min(WORDS - 2, int((counts > 0).sum()))]
        new_ids = np.ones(tokenizer.size, np.int32)
        new_ids[frequent] = np.arange(2, len(frequent) + 2)
        values: dict[str, Any] = {"vocabulary": np.array(["", "[UNK]", *(tokenizer.vocabulary[i] for i in frequent)])}
        labels = sorted({e.label for e in corpus.splits["train"]}, key=str)
        for split in ("train", "test"):
            examples = corpus.splits[split]
            tokens = tokenizer.encode([e.text for e in examples])
            texts = [tokens.ids[a:b] for a, b in zip(tokens.starts[:-1], tokens.starts[1:], strict=True)]
            rows = [new_ids[ids[(ids < BOUNDARY_IDS[0]) | (ids > BOUNDARY_IDS[1])][-LENGTH:]] for ids in texts]
            values[f"{split}_ids"] = np.concatenate(rows).astype(np.int16)
            values[f"{split}_lengths"] = np.array([len(row) for row in rows])
            values[f"{split}_label"] = np.array([labels.index(e.label) for e in examples])
        np.savez_compressed(cache, **values)
    arrays = load_arrays(cache)
    train, test = (make_data(arrays, f"{split}_") for split in ("train", "test"))
    order = np.random.default_rng(0).permutation(len(train))
    tenth = len(order) // 10
    return Texts(
        arrays["vocabulary"].tolist(), select_rows(train, order[tenth:]), select_rows(train, order[:tenth]), test
    )


def select_rows(data: Data, rows: Any) -> Data:
    return Data(data.text.select(rows), None, None if data.label is None else data.label[rows])


def make_data(arrays: dict[str, NDArray[Any]], prefix: str = "") -> Data:
    """Texts and labels of the arrays ids, lengths and label, whose names have this prefix."""
    ids, lengths = arrays[f"{prefix}ids"].astype(np.int32), arrays[f"{prefix}lengths"].astype(np.int64)
    tokens = TokenArray(ids, np.ones(len(ids), np.bool_), row_starts(lengths), np.zeros(len(lengths), np.bool_))
    return Data(tokens, None, arrays[f"{prefix}label"].astype(np.int64))


def load_black_box(corpus: str, texts: Texts, out: Path, device: torch.device) -> TextCNN:
    """The black box of a corpus; the first call trains it and saves it in `out`."""
    file = out / f"{corpus}.safetensors"
    if not file.exists():
        model = train_black_box(texts, device, epochs=5 if corpus == "imdb" else 15)
        print(corpus, "black box: train", accuracy(model, texts.train), "test", accuracy(model, texts.test), flush=True)
        save_file({name: value.cpu() for name, value in model.state_dict().items()}, file)
    model = TextCNN(len(texts.vocabulary), texts.length)
    model.load_state_dict(load_file(file))
    return model.to(device).eval().requires_grad_(False)


def train_black_box(texts: Texts, device: torch.device, seed: int = 0, epochs: int = 5) -> TextCNN:
    """Train with Adam, 40 texts a step; the epoch with the best validation accuracy is kept."""
    torch.manual_seed(seed)
    model = TextCNN(len(texts.vocabulary), texts.length).to(device)
    adam = torch.optim.Adam(model.parameters(), fused=True)
    best: tuple[float, dict[str, Tensor]] = (-1.0, {})
    for epoch in range(epochs):
        model.train()
        for rows in shuffled(texts.train, 40, (seed, epoch)):
            batch = collate(texts.train, rows).to(device)
            adam.zero_grad()
            cross_entropy(model(batch).logits, batch.gold).backward()  # type: ignore[no-untyped-call]
            adam.step()
        score = accuracy(model, texts.validation)
        if score > best[0]:
            best = score, {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(best[1])
    return model.eval().requires_grad_(False)


def probabilities(model: Model, data: Data) -> Tensor:
    """Probabilities of all classes, on the CPU.  (N,C)"""
    table = None
    for rows in by_length(data, 512):
        with inference(model):
            probs = model(collate(data, rows).to(model.device)).logits.softmax(-1).float().cpu()
        table = torch.zeros(len(data), probs.shape[1]) if table is None else table
        table[torch.from_numpy(rows)] = probs
    assert table is not None
    return table


def accuracy(model: Model, data: Data) -> float:
    return float((probabilities(model, data).argmax(-1).numpy() == data.label).mean())
