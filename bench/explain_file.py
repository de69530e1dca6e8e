"""What `explain --file` costs beside the bare forward pass, and whether its memory grows with the file.

One interleaved run: for each chunk of the file, the whole work of `explain --file --json` (read, tokenise, batch,
forward, make explanations, write JSON) and the forward pass alone over the very same batches, in turn.  Then two
children explain the file once and five times over, and print their peak memory.

    python bench/explain_file.py [--texts 10000] [--rounds 3]
"""

import argparse
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from steadygaze import TextClassifier, infer, load, load_corpus, verbs
from steadygaze.batch import Data, by_length, collate


def texts(count: int) -> list[str]:
    """SST-2 where it is at hand, planted reviews' sentences otherwise, repeated up to `count`."""
    folder = Path(os.environ.get("STEADYGAZE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if (folder / "sst2").is_dir():
        corpus = load_corpus("sst2", data_dir=folder)
        found = [example.text for split in corpus.splits.values() for example in split]
    else:
        corpus = load_corpus("planted-reviews")
        found = [e.text[a:b] for e in corpus.splits["train"] for a, b in (e.sentences or ())]
    return (found * (count // len(found) + 1))[:count]


def model(folder: Path, read: list[str]) -> None:
    """A bilstm of the default size; what it has learnt does not change what it costs."""
    labels = [i % 2 for i in range(len(read))]
    clf = TextClassifier(epochs=1, settings={"hidden": 128}, verbose=False, device="cpu")
    clf.fit(read[:512], labels[:512], validation=(read[:64], labels[:64]))
    clf.save(folder)


def compare(folder: Path, file: Path, rounds: int) -> float:
    """Median over the rounds of whole work / forward pass alone."""
    clf = load(folder, device="cpu")
    network, tokenizer = clf.stored_.model, clf.stored_.tokenizer
    ratios = []
    for _ in range(rounds):
        whole = bare = 0.0
        chunks = verbs.read(clf, [], file, ["text"], False)
        while True:
            start = time.perf_counter()
            chunk = next(chunks, None)
            if chunk is None:
                break
            sink = io.StringIO()
            for one in verbs.explain(clf, iter([chunk]), "attention", None, "word"):
                sink.write(json.dumps(one.to_dict(), ensure_ascii=False) + "\n")
            whole += time.perf_counter() - start

            data = Data(tokenizer.encode(chunk))
            batches = [collate(data, rows) for rows in by_length(data, infer.BATCH)]
            start = time.perf_counter()
            for batch in batches:
                with infer.inference(network):
                    network(batch)
            bare += time.perf_counter() - start
        ratios.append(whole / bare)
        print(f"whole {whole:.2f} s   forward pass {bare:.2f} s   ratio {whole / bare:.2f}")
    return statistics.median(ratios)


def child(folder: Path, file: Path) -> None:
    clf = load(folder, device="cpu")
    for one in verbs.explain(clf, verbs.read(clf, [], file, ["text"], False), "attention", None, "word"):
        one.to_dict()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return
    with tempfile.TemporaryDirectory() as scratch:
        read = texts(arguments.texts)
        files = {}
        for times in (1, 5):
            files[times] = Path(scratch) / f"{times}.jsonl"
            files[times].write_text("".join(json.dumps({"text": text}) + "\n" for text in read) * times)
        folder = Path(scratch) / "model"
        model(folder, read)
        print(f"explain --file / bare forward pass = {compare(folder, files[1], arguments.rounds):.2f}  (bar: 1.3)")
        for times, file in files.items():
            run = [sys.executable, __file__, "--child", str(folder), str(file)]
            peak = subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()
            print(f"{times * len(read):,} texts: peak memory {peak} MB")


if __name__ == "__main__":
    main()
