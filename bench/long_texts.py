"""Long texts on MiniLM: overlapping windows against truncation on IMDB, cost per piece, and memory.

    python bench/long_texts.py --out DIR [--sizes 6000 5000] [--seeds 3] [--device cuda] [--workers 6] [--only REGEX]
    python bench/long_texts.py --cost [--pieces 16384] [--device cuda]
    python bench/long_texts.py --overlap
    python bench/long_texts.py --memory WORDS [--device cpu]
    python bench/long_texts.py --table RECORDS

    truncated256    the first 256 pieces of a text
    truncated509    the default: as many pieces as MiniLM reads at once
    windows         windows of 256 pieces that overlap by 32, the whole text

Every job trains a vanilla TextClassifier for 2 epochs on a sample of the training texts; a tenth of them selects the
epoch.  `coverage` is the share of the words of the test texts that have a weight in the explanation.  `--cost` divides
the time per piece of longer texts by that of texts of one window.  `--overlap` compares the states of tokens with those
in one window of 512, for several strides.
"""

import argparse
import json
import resource
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import numpy as np
import torch

import job_queue
import steadygaze as sg
from steadygaze.data.batches import Data, collate
from steadygaze.data.corpora import load_corpus
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.models.encoders.transformer import from_folder, locate
from steadygaze.models.encoders.windows import Windows
from steadygaze.models.inference import best_device, inference

WINDOW = 256
ROWS: dict[str, dict[str, Any]] = {
    "truncated256": {"max_length": WINDOW},
    "windows": {"settings": {"window": WINDOW}},
    "truncated509": {},
}
EPOCHS = 2
REPEATS = 5
LENGTHS = (512, 1024, 4096, 16384)


@dataclass(frozen=True)
class Job:
    row: str
    seed: int

    @property
    def id(self) -> str:
        return f"{self.row}.s{self.seed}"


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


def cost(encoder: str, device: str, pieces: int) -> dict[str, Any]:
    """CPU seconds per piece, on a GPU seconds, for texts of several lengths, relative to texts of one window."""
    transformer = from_folder(locate(encoder), Windows(WINDOW, WINDOW - WINDOW // 8, 1, 1)).to(best_device(device))
    ids = torch.randint(1000, 20000, (pieces,), device=transformer.vectors.device)
    steps: dict[str, Callable[[torch.Tensor], None]] = {
        "forward": _forward(transformer),
        "train": _backward(transformer),
    }
    ratios: dict[str, Any] = {"device": str(ids.device), "pieces": pieces}
    clock = time.process_time if ids.device.type == "cpu" else time.perf_counter
    lengths = [length for length in LENGTHS if length <= pieces]
    for name, step in steps.items():
        seconds = defaultdict(list)
        for _ in range(REPEATS + 1):  # interleaved; the first is discarded
            for length in (WINDOW, *lengths):
                texts = ids.view(-1, length)
                begin = clock()
                step(torch.nn.functional.pad(texts, (1, 1), value=101))
                seconds[length].append((clock() - begin) / pieces)
        base = median(seconds[WINDOW][1:])
        ratios[name] = {str(length): median(seconds[length][1:]) / base for length in lengths}
        ratios[f"{name}, microseconds per piece of one window"] = base * 1e6
    return ratios


def _forward(transformer: Any) -> Callable[[torch.Tensor], None]:
    def step(ids: torch.Tensor) -> None:
        with inference(transformer):
            float(transformer(transformer.embed(ids), torch.ones_like(ids, dtype=torch.bool)).hidden.sum())

    return step


def _backward(transformer: Any) -> Callable[[torch.Tensor], None]:
    def step(ids: torch.Tensor) -> None:
        loss = transformer(transformer.embed(ids), torch.ones_like(ids, dtype=torch.bool)).hidden.square().mean()
        loss.backward()
        float(loss)

    return step


def memory(words: int, encoder: str, device: str) -> dict[str, Any]:
    """Peak resident memory before and after a prediction and an explanation of one text of this many words."""
    texts, labels = sample("train", 40, 0)
    clf = sg.TextClassifier(
        f"transformer:{encoder}", epochs=1, device=device, settings={"window": WINDOW}, batch_size=4
    ).fit([text[:300] for text in texts], labels)
    vocabulary = " ".join(sample("test", 400, 0)[0]).split()
    text = " ".join((vocabulary * (words // len(vocabulary) + 1))[:words])
    clf.predict([text[:3000]])
    peaks, begin = [_peak()], time.perf_counter()
    clf.predict([text])
    peaks.append(_peak())
    predicted = time.perf_counter()
    explanation = clf.explain(text)
    peaks.append(_peak())
    pieces = int(Data(clf.stored_.tokenizer.encode([text])).text.lengths[0])
    return {
        "words": words,
        "pieces": pieces,
        "weighted words": len(explanation.weights),
        "peak MB before, predict, explain": peaks,
        "seconds, predict and explain": [predicted - begin, time.perf_counter() - predicted],
        "truncated": explanation.read_to is not None,
    }


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def overlap_means(encoder: str, texts: int = 24) -> dict[str, float]:
    """Cosine similarity of window states to those of the whole text in one window, on training texts."""
    tokenizer = load_subword_tokenizer(locate(encoder), max_length=10**6)
    data = Data(tokenizer.encode(sample("train", 400, 0)[0]))
    rows = np.flatnonzero((data.text.lengths > 400) & (data.text.lengths <= 512))[:texts]
    batch, transformer = collate(data, rows), from_folder(locate(encoder))
    with inference(transformer):
        vectors = transformer.embed(batch.ids)
        whole = transformer(vectors, batch.present).hidden
        similarities = {}
        for stride in (256, 224, 192, 128):
            transformer.windows = Windows(WINDOW, stride, 1, 1)
            states = transformer(vectors, batch.present).hidden
            similarities[str(stride)] = float(torch.cosine_similarity(states, whole, dim=-1)[batch.mask].mean())
    return similarities


def table(records: Path) -> str:
    """One row per kind of reading: mean ± standard deviation over seeds, in %."""
    rows = defaultdict(list)
    for record in job_queue.read_records([str(records)]):
        rows[record["row"]].append(record)
    columns = ("accuracy", "accuracy, long", "accuracy, short", "coverage", "coverage, long", "fully covered")
    lines = [f"| reading | seeds | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for row in ("truncated256", "truncated509", "windows"):
        cells = [_cell([100 * record[column] for record in rows[row]]) for column in columns]
        lines.append(f"| {row} | {len(rows[row])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(values: list[float]) -> str:
    return f"{mean(values):.1f} ± {stdev(values):.1f}" if len(values) > 1 and stdev(values) else f"{mean(values):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    job_queue.options(parser)
    parser.add_argument("--encoder", default="minilm", help="minilm, or a folder")
    parser.add_argument("--sizes", type=int, nargs=2, default=(6000, 5000), help="training and test texts")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--pieces", type=int, default=1 << 14, help="with --cost: pieces of all texts together")
    parser.add_argument("--overlap", action="store_true")
    parser.add_argument("--memory", type=int, metavar="WORDS")
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if arguments.table:
        print(table(arguments.table))
    elif arguments.cost:
        print(json.dumps(cost(arguments.encoder, arguments.device, arguments.pieces), indent=1))
    elif arguments.overlap:
        print(json.dumps(overlap_means(arguments.encoder), indent=1))
    elif arguments.memory:
        print(json.dumps(memory(arguments.memory, arguments.encoder, arguments.device), indent=1))
    else:
        plan = [Job(row, seed) for seed in range(arguments.seeds) for row in ROWS]
        sizes = (arguments.sizes[0], arguments.sizes[1])
        job_queue.run(
            arguments, lambda: plan, lambda job: train_and_test(job, sizes, arguments.encoder, arguments.device)
        )


if __name__ == "__main__":
    main()
