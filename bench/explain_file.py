"""Time of `explain --file` relative to the forward passes alone, and its peak memory for files of two lengths.

    python bench/explain_file.py [--texts 10000] [--rounds 15]

`explain --file --json` reads, tokenizes and batches texts, runs the model, makes explanations and writes JSON.  The
forward passes have the same batches, prepared before: once as torch runs them, every operation on all cores, and once
with one chunk per core, as `explain` runs them.  The variants run in turn.  Two child processes then explain the file
once and five times over, and print their peak memory.
"""

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from data_folder import has_corpus
from steadygaze.adapters import streaming
from steadygaze.adapters.load_and_explain import load
from steadygaze.adapters.streaming import lane_count, map_in_lanes
from steadygaze.core.types import Batch
from steadygaze.data.batches import by_length, collate
from steadygaze.data.corpora import load_corpus
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models import inference


def texts(count: int) -> list[str]:
    """SST-2 if $STEADYGAZE_DATA has it, else sentences of planted reviews; repeated up to `count`."""
    if has_corpus("sst2"):
        corpus = load_corpus("sst2")
        sentences = [example.text for split in corpus.splits.values() for example in split]
    else:
        corpus = load_corpus("planted-reviews")
        sentences = [e.text[a:b] for e in corpus.splits["train"] for a, b in (e.sentences or ())]
    return (sentences * (count // len(sentences) + 1))[:count]


def save_model(folder: Path, read: list[str]) -> None:
    """Train and save a bilstm of the default size.  Time does not depend on its weights."""
    labels = [i % 2 for i in range(len(read))]
    clf = TextClassifier(epochs=1, settings={"hidden": 128}, verbose=False, device="cpu")
    clf.fit(read[:512], labels[:512], validation=(read[:64], labels[:64]))
    clf.save(folder)


def compare(folder: Path, file: Path, rounds: int) -> None:
    """Print medians of the ratios of `explain` to forward passes."""
    clf = load(folder, device="cpu")
    gc.collect()
    gc.freeze()  # this and the next line as in the command
    gc.set_threshold(50_000, 20, 100)
    lanes = lane_count(torch.device("cpu"))
    ratios_by_name: dict[str, list[float]] = {"as torch runs it": [], f"on {lanes} lanes": []}
    for _ in range(rounds):
        whole = explain_seconds(clf, file)
        for name, bare in zip(
            ratios_by_name, (forward_seconds(clf, file, 1), forward_seconds(clf, file, lanes)), strict=True
        ):
            ratios_by_name[name].append(whole / bare)
            print(f"whole {whole:.2f} s   forward pass {name} {bare:.2f} s   ratio {whole / bare:.2f}")
    for name, ratios in ratios_by_name.items():
        print(f"explain --file / bare forward pass {name} = {statistics.median(ratios):.2f}  (bar: 1.3)")


def explain_seconds(clf: TextClassifier, file: Path) -> float:
    """Seconds of `explain --file --json`, without loading of the model."""
    with open(os.devnull, "wb") as sink:
        start = time.perf_counter()
        for explanation in streaming.explain(clf, streaming.read(clf, [], file, ["text"], False)):
            sink.write(explanation.to_json() + b"\n")
        return time.perf_counter() - start


def forward_seconds(clf: TextClassifier, file: Path, lanes: int) -> float:
    """Seconds of the forward passes over the same batches, which are prepared before."""
    model, chunks = clf.stored_.model, []
    for chunk in streaming.read(clf, [], file, ["text"], False):
        data = clf.stored_.data(chunk, None)
        chunks.append([collate(data, rows) for rows in by_length(data, inference.BATCH)])

    def work(batches: list[Batch]) -> None:
        for batch in batches:
            with torch.no_grad():
                model(batch)

    with inference.evaluation(model):
        start = time.perf_counter()
        for _ in map_in_lanes(work, chunks, lanes):
            pass
        return time.perf_counter() - start


def print_peak_memory(folder: Path, file: Path) -> None:
    clf = load(folder, device="cpu")
    for explanation in streaming.explain(clf, streaming.read(clf, [], file, ["text"], False)):
        explanation.to_dict()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print_peak_memory(*arguments.child)
        return
    with tempfile.TemporaryDirectory() as scratch:
        read = texts(arguments.texts)
        files = {}
        for times in (1, 5):
            files[times] = Path(scratch) / f"{times}.jsonl"
            files[times].write_text("".join(json.dumps({"text": text}) + "\n" for text in read) * times)
        folder = Path(scratch) / "model"
        save_model(folder, read)
        compare(folder, files[1], arguments.rounds)
        for times, file in files.items():
            run = [sys.executable, __file__, "--child", str(folder), str(file)]
            peak = subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()
            print(f"{times * len(read):,} texts: peak memory {peak} MB")


if __name__ == "__main__":
    main()
