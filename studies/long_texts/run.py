"""Long texts on MiniLM: overlapping windows against truncation on IMDB, cost per token, and memory.

    truncated256    the first 256 pieces of a text
    truncated509    the default: as many pieces as MiniLM reads at once
    windows         windows of 256 pieces with the default stride, the whole text

Every job trains a vanilla TextClassifier for 2 epochs on a sample of the training texts; a tenth of them selects the
epoch.  `coverage` is the share of the words of the test texts that have a weight in the explanation.

`--part cost` measures the time per distinct piece of the texts, interleaved, divided by that of full single windows:
forward passes, and forward and backward passes.  Rows are one batch of texts of one length, one batch of mixed lengths,
and the batches of a sample of IMDB reviews that prediction and training make.  Reviews are compared with long reviews
that are truncated to one window, in batches of the same kind.  `floor` is the same ratio in tokens that the network
reads.  `--part overlap` compares the states of tokens with those in one window of 512, for several strides.
`--part memory` measures the peak memory for one text.
"""

import json
import resource
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

import steadygaze as sg
from steadygaze.data.batches import Data, by_length, collate, shuffled
from steadygaze.data.corpora import load_corpus
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.models.encoders.transformer import from_folder, locate
from steadygaze.models.encoders.windows import Windows, default_stride
from steadygaze.models.inference import BATCH, best_device, inference
from steadygaze.training.optimizers import Training
from studies import jobs

WINDOW = 256
ROWS: dict[str, dict[str, Any]] = {
    "truncated256": {"max_length": WINDOW},
    "windows": {"settings": {"window": WINDOW}},
    "truncated509": {},
}
EPOCHS = 2
LENGTHS = (512, 1024, 4096, 16384)
REVIEWS_BASE = "long reviews, one window"
Workloads = dict[str, list[NDArray[np.int64]]]
"""Lengths of the texts in each batch, in pieces."""


@dataclass(frozen=True)
class Job(jobs.Job):
    row: str
    seed: int


def sample(split: str, size: int, seed: int) -> tuple[list[str], list[Any]]:
    """Texts and labels of a split, drawn at random."""
    examples = load_corpus("imdb").splits[split]
    rows = np.random.default_rng(seed).permutation(len(examples))[:size]
    return [examples[row].text for row in rows], [examples[row].label for row in rows]


def train_and_test(job: Job, sizes: tuple[int, int], encoder: str, device: str) -> dict[str, Any]:
    train, labels = sample("train", sizes[0], job.seed)
    test, test_labels = sample("test", sizes[1], 0)
    clf = sg.TextClassifier(f"transformer:{encoder}", seed=job.seed, epochs=EPOCHS, device=device, **ROWS[job.row])
    begin = time.perf_counter()
    clf.fit(train, labels)
    trained = time.perf_counter()
    right = clf.predict(test) == np.asarray(test_labels)
    predicted = time.perf_counter()
    words = load_subword_tokenizer(locate(encoder), max_length=10**6).place(test)
    long = words.ragged.lengths - 2 > WINDOW
    counts = np.array([len(set(groups)) for groups in words.groups])
    weighted = np.array([len(explanation.weights) for explanation in clf.explain(test)])
    return {
        "sizes": sizes,
        "accuracy": float(right.mean()),
        "accuracy, long": float(right[long].mean()),
        "accuracy, short": float(right[~long].mean()),
        "long": float(long.mean()),
        "coverage": float(weighted.sum() / counts.sum()),
        "coverage, long": float(weighted[long].sum() / counts[long].sum()),
        "fully covered": float((weighted >= counts).mean()),
        "train seconds": trained - begin,
        "predict seconds": predicted - trained,
        "history": clf.history_,
    }


def cost(encoder: str, device: str, pieces: int, repeats: int, texts: int) -> dict[str, Any]:
    """Seconds per distinct piece, CPU seconds on a CPU, relative to full single windows."""
    windows = Windows(WINDOW, default_stride(WINDOW), 1, 1)
    transformer = from_folder(locate(encoder), windows).to(best_device(device)).train()
    single: Workloads = {"one window": [np.full(pieces // WINDOW, WINDOW)]}
    single |= {str(length): [np.full(pieces // length, length)] for length in LENGTHS if length <= pieces}
    single["mixed"] = [mixed_lengths(pieces)]
    clock = time.process_time if device == "cpu" else time.perf_counter
    ratios: dict[str, Any] = {"device": str(transformer.vectors.device), "pieces": pieces, "texts": texts}
    for step in (_forward, _backward):
        workloads = single | review_batches(encoder, texts, is_training=step is _backward)
        batches = {name: [_texts(lengths) for lengths in workloads[name]] for name in workloads}
        seconds = defaultdict(list)
        for _ in range(repeats + 1):  # interleaved; the first is discarded
            for name in batches:
                begin = clock()
                for ids, present in batches[name]:
                    step(transformer, ids.to(transformer.vectors.device), present.to(transformer.vectors.device))
                seconds[name].append(clock() - begin)
        tokens = {name: sum(_tokens(windows, present) for _, present in batches[name]) for name in batches}
        name = step.__name__.strip("_")
        ratios[name] = _per_piece({name: median(seconds[name][1:]) for name in batches}, workloads)
        ratios[f"{name}, floor"] = _per_piece(tokens, workloads)
    return ratios


def review_batches(encoder: str, texts: int, is_training: bool) -> Workloads:
    """Lengths of the reviews in each batch: all reviews, and the long ones truncated to one window and whole."""
    tokenizer = load_subword_tokenizer(locate(encoder), max_length=10**6)
    truncated = load_subword_tokenizer(locate(encoder), max_length=WINDOW)
    reviews, _ = sample("test", texts, 0)
    lengths = tokenizer.encode(reviews).lengths - 2
    long = [review for review, length in zip(reviews, lengths, strict=True) if length > WINDOW]
    splits = {
        REVIEWS_BASE: truncated.encode(long),
        "reviews": tokenizer.encode(reviews),
        "long reviews": tokenizer.encode(long),
    }

    def rows(data: Data) -> Iterable[NDArray[np.int64]]:
        return shuffled(data, Training().batch_size, (0,)) if is_training else by_length(data, BATCH)

    return {name: [split.lengths[batch] - 2 for batch in rows(Data(split))] for name, split in splits.items()}


def _per_piece(values: dict[str, Any], workloads: Workloads) -> dict[str, float]:
    """Values per distinct piece, relative to those of single windows."""
    each = {name: values[name] / sum(lengths.sum() for lengths in workloads[name]) for name in values}
    return {name: round(each[name] / each[REVIEWS_BASE if "reviews" in name else "one window"], 3) for name in each}


def _tokens(windows: Windows, present: torch.Tensor) -> int:
    """Tokens that the network reads, without padding."""
    return sum(len(part.tokens) for part in windows.passes(present))


def mixed_lengths(pieces: int) -> NDArray[np.int64]:
    """Lengths of texts longer than one window, distributed as in IMDB, with this sum or slightly more."""
    lengths = np.exp(np.random.default_rng(0).normal(5.4, 0.65, 100_000)).astype(np.int64)
    lengths = lengths[(lengths > WINDOW) & (lengths < 2048)]
    return lengths[: int(np.searchsorted(lengths.cumsum(), pieces)) + 1]


def _texts(lengths: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor]:
    """Random texts with two special tokens: ids (B,T), present (B,T)."""
    present = torch.arange(int(lengths.max()) + 2) < torch.from_numpy(lengths + 2).unsqueeze(-1)
    return torch.randint(1000, 20000, present.shape), present


def _forward(transformer: Any, ids: torch.Tensor, present: torch.Tensor) -> None:
    with inference(transformer):
        float(transformer(transformer.embed(ids), present).hidden.sum())


def _backward(transformer: Any, ids: torch.Tensor, present: torch.Tensor) -> None:
    loss = transformer(transformer.embed(ids), present).hidden.square().mean()
    loss.backward()
    float(loss)


def memory(words: int, encoder: str, device: str) -> dict[str, Any]:
    """Peak resident memory before and after a prediction and an explanation of one text of this many words."""
    texts, labels = sample("train", 40, 0)
    clf = sg.TextClassifier(
        f"transformer:{encoder}", epochs=1, device=device, settings={"window": WINDOW}, batch_size=4
    ).fit([text[:300] for text in texts], labels)
    vocabulary = " ".join(sample("test", 400, 0)[0]).split()
    text = " ".join((vocabulary * (words // len(vocabulary) + 1))[:words])
    clf.predict([text[:3000]])
    peaks, begin = [_peak(device)], time.perf_counter()
    clf.predict([text])
    peaks.append(_peak(device))
    predicted = time.perf_counter()
    explanation = clf.explain(text)
    peaks.append(_peak(device))
    pieces = int(Data(clf.stored_.tokenizer.encode([text])).text.lengths[0])
    return {
        "words": words,
        "pieces": pieces,
        "weighted words": len(explanation.weights),
        "peak MB before, predict, explain": peaks,
        "seconds, predict and explain": [predicted - begin, time.perf_counter() - predicted],
        "truncated": explanation.read_to is not None,
    }


def _peak(device: str) -> int:
    """Peak memory of the process, or of the GPU, in MB."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() >> 20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def overlap_similarities(encoder: str, texts: int = 24) -> dict[str, Any]:
    """Cosine similarity of window states to those of the whole text in one window, on training texts, by overlap."""
    tokenizer = load_subword_tokenizer(locate(encoder), max_length=10**6)
    data = Data(tokenizer.encode(sample("train", 400, 0)[0]))
    rows = np.flatnonzero((data.text.lengths > 400) & (data.text.lengths <= 512))[:texts]
    batch, transformer = collate(data, rows), from_folder(locate(encoder))
    similarities = {}
    with inference(transformer):
        vectors = transformer.embed(batch.ids)
        whole = transformer(vectors, batch.present).hidden
        for overlap in (0, 16, 32, 64):
            transformer.windows = Windows(WINDOW, WINDOW - overlap, 1, 1)
            states = transformer(vectors, batch.present).hidden
            values = torch.cosine_similarity(states, whole, dim=-1)[batch.mask]
            statistics = {"mean": values.mean(), "5 % quantile": values.quantile(0.05), "minimum": values.min()}
            similarities[overlap] = {name: round(float(value), 4) for name, value in statistics.items()}
    return {"texts": len(rows), "similarity": similarities}


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """Sizes: training and test texts."""

    out: Path = field(default=Path("runs/long_texts"), metadata={"help": "folder of the records"})
    part: Literal["accuracy", "cost", "overlap", "memory"] = "accuracy"
    encoder: str = field(default="minilm", metadata={"help": "minilm, or a folder"})
    sizes: tuple[int, int] = (6000, 5000)
    seeds: int = 3
    pieces: int = field(default=1 << 14, metadata={"help": "cost: pieces of a single batch"})
    texts: int = field(default=2048, metadata={"help": "cost: reviews"})
    repeats: int = field(default=5, metadata={"help": "cost: interleaved measurements"})
    words: int = field(default=100_000, metadata={"help": "memory: words of the text"})


def run(options: Options) -> None:
    warnings.simplefilter("ignore", UserWarning)
    encoder, device = options.encoder, options.device
    if options.part == "accuracy":
        plan = [Job(row, seed) for seed in range(options.seeds) for row in ROWS]
        do = partial(train_and_test, sizes=options.sizes, encoder=encoder, device=device)
        return jobs.run(options, lambda: plan, do)
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "cost": lambda: cost(encoder, device, options.pieces, options.repeats, options.texts),
        "overlap": lambda: overlap_similarities(encoder),
        "memory": lambda: memory(options.words, encoder, device),
    }
    print(json.dumps(parts[options.part](), indent=1))
    return None
