"""Label leakage through attention: Tables 1 and 2 of Bai et al. 2021 (arXiv:2006.05656), on IMDB.

    python bench/default_tokens.py --cut FILE.npz --data-dir DIR [--vectors glove-50d]           # once: what is needed
    python bench/default_tokens.py --cut FILE.npz --out RECORDS.jsonl [--seeds 10] [--workers 12] [--device cuda]
    python bench/default_tokens.py --out RECORDS.jsonl --table

Every text is the tokens a b c d and the review.  Attention covers these four and the first five words; the query is the
whole review.  Three techniques (vanilla, random-pretraining, mask-neutral), two decoders.  Each job
(pooling.vanilla.s0) is a process and writes a line to RECORDS; finished jobs are not run again.

The file of --cut has the reviews as ids, and the vectors of their words, so that jobs need no other data.
Difference from the paper: Adam (AMSGrad) instead of RMSprop.  The paper does not state the size of the vectors, the
query, the length of texts or the batch size.
"""

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean
from typing import Any

from tables import mean_and_deviation, read_records

TECHNIQUES: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "random-pretraining": {"pretraining_epochs": 10},
    "mask-neutral": {},
}
ENCODERS = ("pooling", "rcnn")
LONGEST = 400
POSITIVE = "positive"
RARE = 5
"""Reviews a word must occur in to be known."""


def main() -> None:
    options = arguments()
    if options.table:
        return table(options.out)
    if options.out is None:
        return cut(options.cut, options.data_dir, options.vectors, options.limit)
    jobs = options.jobs or [f"{e}.{t}.s{s}" for s in range(options.seeds) for t in TECHNIQUES for e in ENCODERS]
    finished = read_records([options.out]) if options.out.exists() else []
    left = [job for job in jobs if job not in {record["job"] for record in finished}]
    if options.workers == 0:
        return [run_job(job, options) for job in left] and None
    command = [sys.executable, *sys.argv, "--workers=0"]  # the last one counts
    with ThreadPoolExecutor(options.workers) as pool:
        list(pool.map(lambda job: subprocess.run([*command, f"--jobs={job}"], check=False), left))
    return table(options.out)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cut", type=Path, help="reviews as ids, and the vectors they need: written without --out")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--vectors", default="glove-50d", help="the package, or a file of vectors")
    parser.add_argument("--limit", type=int, default=25_000, help="texts of each split")
    parser.add_argument("--out", type=Path, help="one line of JSON for each job")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--jobs", type=lambda jobs: jobs.split(","), help="only these: pooling.vanilla.s0,rcnn.…")
    parser.add_argument("--workers", type=int, default=0, help="processes side by side; 0: work here")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--table", action="store_true")
    return parser.parse_args()


def cut(out: Path, data_dir: Path, vectors: str, most: int) -> None:
    """Everything a job needs, in one small file."""
    import numpy as np

    from steadygaze.audit.protocols.default_tokens import DEFAULTS
    from steadygaze.audit.protocols.default_tokens import default_token_mask as restricted
    from steadygaze.audit.protocols.default_tokens import with_default_tokens as introduced
    from steadygaze.data.corpora import load_corpus
    from steadygaze.data.word_tokenizer import SPECIALS
    from steadygaze.data.word_tokenizer import build_word_tokenizer as build_words
    from steadygaze.data.word_vectors import read_vectors

    corpus = load_corpus("imdb", data_dir=data_dir)
    parts: dict[str, Any] = {}
    for split in ("train", "test"):
        rows = np.random.default_rng(0).permutation(len(corpus.splits[split]))[:most]
        examples = [corpus.splits[split][i] for i in rows]
        texts = introduced(example.text.replace("<br />", " ") for example in examples)
        if split == "train":
            words = build_words(texts, min_df=RARE, max_length=LONGEST + len(DEFAULTS))
            table = read_vectors(vectors, words.vocabulary, seed=0)
            print(f"{words.size:,} words, {table.coverage(specials=len(SPECIALS)):.1%} of them have a vector")
            parts["vectors"] = table.matrix.astype(np.float16)
        read = restricted(words.encode(texts))
        parts |= {f"{split}/{name}": getattr(read, name) for name in ("words", "starts")}
        parts |= {f"{split}/ids": read.ids.astype(np.uint16), f"{split}/label": [e.label == POSITIVE for e in examples]}
    assert len(parts["vectors"]) < 2**16
    np.savez_compressed(out, **parts)
    print(f"{out}: {out.stat().st_size / 2**20:.0f} MiB")


def run_job(job: str, options: argparse.Namespace) -> None:
    import numpy as np
    import torch

    from default_tokens_model import Texts, measured, ragged, trained
    from steadygaze.data.batches import Data
    from steadygaze.training.optimizers import Training

    torch.set_num_threads(1)
    started, (encoder, technique, seed) = time.time(), job.split(".")
    with np.load(options.cut, allow_pickle=False) as file:
        kept = dict(file)
    splits = [
        Data(
            ragged(*(kept[f"{split}/{name}"] for name in ("ids", "words", "starts"))),
            None,
            kept[f"{split}/label"].astype(np.int64),
        )
        for split in ("train", "test")
    ]
    texts = Texts(*splits, torch.from_numpy(kept["vectors"].astype(np.float32)))
    how = Training(epochs=options.epochs, batch_size=options.batch_size, weight_decay=0.0, patience=options.epochs)
    model, history = trained(texts, encoder, technique, TECHNIQUES[technique], how, int(seed[1:]), options.device)
    record = {"job": job, **measured(model, texts), "seconds": time.time() - started, "epochs": options.epochs}
    record |= {"batch_size": options.batch_size, "terms": [epoch["terms"] for epoch in history]}
    with options.out.open("a") as out:
        out.write(json.dumps(record) + "\n")
    print(job, {name: record[name] for name in ("mass", "gap", "train", "test", "seconds")}, flush=True)


def table(out: Path) -> None:
    """Means over seeds, and how far seeds differ; attention in %."""
    results = read_records([out])
    print("| decoder | technique | n | label | a | b | c | d | defaults | mean | gap | train | test | mask, nats |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for encoder in ENCODERS:
        for technique in TECHNIQUES:
            those = [record for record in results if record["job"].startswith(f"{encoder}.{technique}.")]
            if not those:
                continue
            whole = [_spread([r[name] for r in those], scale) for name, scale in (("mass", 100), ("gap", 1))]
            right = [f"{mean(r[split] for r in those):.3f}" for split in ("train", "test")]
            mask = [r["terms"][-1]["mask"] for r in those if "mask" in r["terms"][-1]]
            ends = [*whole, *right, f"{mean(mask):.3f}" if mask else ""]
            for label, name in ((1, "pos"), (0, "neg")):
                each = [f"{100 * mean(r['attention'][label][i] for r in those):.1f}" for i in range(4)]
                total = _spread([r["defaults"][label] for r in those], 100)
                start = [encoder, technique, str(len(those))] if label else ["", "", ""]
                print("| " + " | ".join([*start, name, *each, total, *(ends if label else [""] * 5)]) + " |")


def _spread(values: list[float], scale: float) -> str:
    return mean_and_deviation([scale * value for value in values], 1 if scale == 100 else 2)


if __name__ == "__main__":
    main()
