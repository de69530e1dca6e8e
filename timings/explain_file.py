"""Time of `explain --file` relative to the forward passes alone, and its peak memory for files of two lengths.

`explain --file --json` reads, tokenizes and batches texts, runs the model, makes explanations and writes JSON.  The
forward passes have the same batches, prepared before: once as torch runs them, every operation on all cores, and once
with one chunk per core, as `explain` runs them.  Two child processes then explain the file once and five times over.
"""

import gc
import json
import os
import tempfile
from functools import partial
from pathlib import Path

import torch

from steadygaze.adapters import streaming
from steadygaze.adapters.load_and_explain import load
from steadygaze.adapters.streaming import lane_count, map_in_lanes
from steadygaze.core.types import Batch
from steadygaze.data.batches import by_length, collate
from steadygaze.estimator.explain_request import ExplainRequest
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models import inference
from timings.harness import Result, in_child, peak_memory, race
from timings.inputs import saved_model, sentences

MAX_RATIO = 1.3


def repeated_sentences(count: int) -> list[str]:
    read, _ = sentences("train", "validation", "test")
    return (read * (count // len(read) + 1))[:count]


def explain(clf: TextClassifier, file: Path) -> None:
    """`explain --file --json`, without loading of the model."""
    with open(os.devnull, "wb") as sink:
        for explanation in streaming.explain(clf, streaming.read(clf, [], file, ["text"], False), ExplainRequest()):
            assert explanation is not None
            sink.write(explanation.to_json() + b"\n")


def prepared_batches(clf: TextClassifier, file: Path) -> list[list[Batch]]:
    """Batches of each chunk of the file."""
    chunks = (clf.stored_.data(chunk, None) for chunk in streaming.read(clf, [], file, ["text"], False))
    return [[collate(data, rows) for rows in by_length(data, inference.BATCH)] for data in chunks]


def forward(model: torch.nn.Module, chunks: list[list[Batch]], lanes: int) -> None:
    def work(batches: list[Batch]) -> None:
        for batch in batches:
            with torch.no_grad():
                model(batch)

    with inference.evaluation(model):
        for _ in map_in_lanes(work, chunks, lanes):
            pass


def peak(folder: Path, file: Path) -> float:
    explain(load(folder, device="cpu"), file)
    return peak_memory()


def run(*, texts: int = 10_000, rounds: int = 15) -> list[Result]:
    """The file has this many texts."""
    with tempfile.TemporaryDirectory() as scratch:
        read, folder, files = repeated_sentences(texts), Path(scratch) / "model", {}
        for times in (1, 5):
            files[times] = Path(scratch) / f"{times}.jsonl"
            files[times].write_text("".join(json.dumps({"text": text}) + "\n" for text in read) * times)
        saved_model(folder, read)
        clf, lanes = load(folder, device="cpu"), lane_count(torch.device("cpu"))
        chunks = prepared_batches(clf, files[1])
        gc.collect()
        gc.freeze()  # this and the next line as in the command
        gc.set_threshold(50_000, 20, 100)
        bare = {f"bare pass on {count} lanes": count for count in sorted({1, lanes})}
        passes = {name: partial(forward, clf.stored_.model, chunks, count) for name, count in bare.items()}
        timed = race({"explain --file": partial(explain, clf, files[1]), **passes}, rounds)
        results = [timed.ratio("explain --file", name, at_most=MAX_RATIO) for name in bare]
        for times, file in files.items():
            results.append(Result(f"peak memory, {times * texts:,} texts", in_child(peak, folder, file), "MiB"))
    return results
