"""Label leakage through attention: Tables 1 and 2 of Bai et al. 2021 (arXiv:2006.05656), on IMDB.

    python bench/default_tokens.py --cut FILE.npz --data-dir DATA [--vectors glove-50d]           # prepare texts, once
    python bench/default_tokens.py --cut FILE.npz --out DIR [--seeds 10] [--workers 12] [--device cuda] [--only REGEX]
    python bench/default_tokens.py --table [RECORDS...]        folders or files; default: the records of the repository

Every text is the tokens a b c d and the review.  Attention covers these four and the first five words; the query is the
whole review.  One job (pooling.vanilla.s0) trains one decoder with one technique and one seed.

The file of --cut has the reviews as ids, and the vectors of their words, so that jobs need no other data.
Difference from the paper: Adam (AMSGrad) instead of RMSprop.  The paper does not state the size of the vectors, the
query, the length of texts or the batch size.
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from studies import jobs as job_cells
from studies.tables import markdown, mean_and_deviation, read_records

TECHNIQUES: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "random-pretraining": {"pretraining_epochs": 10},
    "mask-neutral": {},
}
ENCODERS = ("pooling", "rcnn")
FILES = sorted((Path(__file__).parent / "records").glob("default_tokens-*.jsonl.gz"))
NAMES = {"rcnn": "RCNN"}
PAPER = {  # Tables 1 and 2: attention on the four tokens in positive and in negative reviews, in %
    ("pooling", "vanilla"): (68.3, 93.5),
    ("pooling", "random-pretraining"): (6.9, 20.6),
    ("pooling", "mask-neutral"): (6.5, 6.7),
    ("rcnn", "vanilla"): (17.0, 85.2),
    ("rcnn", "random-pretraining"): (2.6, 15.7),
    ("rcnn", "mask-neutral"): (20.5, 20.8),
}
BOLD_CELLS = (("pooling", "vanilla"), ("pooling", "random-pretraining"))
MAX_WORDS = 400
POSITIVE = "positive"
MIN_REVIEWS = 5
"""Training reviews in which a word of the vocabulary occurs."""


@dataclass(frozen=True)
class Job:
    encoder: str
    technique: str
    seed: int

    @property
    def id(self) -> str:
        return f"{self.encoder}.{self.technique}.s{self.seed}"


def plan(seeds: int) -> list[Job]:
    return [Job(encoder, name, seed) for seed in range(seeds) for name in TECHNIQUES for encoder in ENCODERS]


def prepare(out: Path, data_dir: Path, vectors: str, max_texts: int) -> None:
    """Write the reviews and the vectors of their words to one file."""
    import numpy as np

    from steadygaze.data.corpora import load_corpus
    from steadygaze.data.word_tokenizer import SPECIALS, build_word_tokenizer
    from steadygaze.data.word_vectors import read_vectors
    from steadygaze.properties.protocols.default_tokens import DEFAULTS, default_token_mask, with_default_tokens

    corpus = load_corpus("imdb", data_dir=data_dir)
    parts: dict[str, Any] = {}
    for split in ("train", "test"):
        rows = np.random.default_rng(0).permutation(len(corpus.splits[split]))[:max_texts]
        examples = [corpus.splits[split][i] for i in rows]
        texts = with_default_tokens(example.text.replace("<br />", " ") for example in examples)
        if split == "train":
            words = build_word_tokenizer(texts, min_df=MIN_REVIEWS, max_length=MAX_WORDS + len(DEFAULTS))
            table = read_vectors(vectors, words.vocabulary, seed=0)
            print(f"{words.size:,} words, {table.coverage(specials=len(SPECIALS)):.1%} of them have a vector")
            parts["vectors"] = table.matrix.astype(np.float16)
        tokens = default_token_mask(words.encode(texts))
        parts |= {f"{split}/{name}": getattr(tokens, name) for name in ("words", "starts")}
        parts[f"{split}/ids"] = tokens.ids.astype(np.uint16)
        parts[f"{split}/label"] = [example.label == POSITIVE for example in examples]
    assert len(parts["vectors"]) < 2**16
    np.savez_compressed(out, **parts)
    print(f"{out}: {out.stat().st_size / 2**20:.0f} MiB")


def run_job(options: argparse.Namespace, job: Job) -> dict[str, Any]:
    import torch

    from default_tokens_model import load_texts, measure_attention, train
    from steadygaze.training.optimizers import Training

    torch.set_num_threads(1)
    texts, epochs = load_texts(options.cut), options.epochs
    training = Training(epochs=epochs, batch_size=options.batch_size, weight_decay=0.0, patience=epochs)
    settings = TECHNIQUES[job.technique]
    model, history = train(texts, job.encoder, job.technique, settings, training, job.seed, options.device)
    record = {"job": job.id, **measure_attention(model, texts), "epochs": epochs, "batch_size": options.batch_size}
    return record | {"terms": [epoch["terms"] for epoch in history]}


def table(paths: Iterable[str | Path] = FILES) -> str:
    """The table of docs/results/shortcuts.md: means and standard deviations over seeds; attention in %."""
    records, tokens = read_records(paths), ["a", "b", "c", "d"]
    ends = ["all four", "paper", "both labels", "gap", "train / test accuracy"]
    lines = [["decoder", "technique", "label", *tokens, *ends]]
    for encoder, technique in product(ENCODERS, TECHNIQUES):
        runs = [record for record in records if (record["encoder"], record["technique"]) == (encoder, technique)]
        if not runs:
            continue
        mark = "**" if (encoder, technique) in BOLD_CELLS else ""
        both = [_percent([run["mass"] for run in runs]), mean_and_deviation([run["gap"] for run in runs], 2)]
        accuracy = " / ".join(f"{mean(run[split] for run in runs):.3f}" for split in ("train", "test"))
        common = [*(f"{mark}{cell}{mark}" for cell in both), accuracy]
        for label, name, paper in zip((1, 0), ("pos", "neg"), PAPER[encoder, technique], strict=True):
            attention = [f"{100 * mean(run['attention'][label][i] for run in runs):.1f}" for i in range(len(tokens))]
            all_four = _percent([run["defaults"][label] for run in runs])
            start = [NAMES.get(encoder, encoder), technique] if label else ["", ""]
            lines.append([*start, name, *attention, all_four, f"{paper:.1f}", *(common if label else [""] * 3)])
    return markdown(lines)


def _percent(shares: list[float]) -> str:
    return mean_and_deviation([100 * share for share in shares])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cut", type=Path, help="prepared reviews; written without --out")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--vectors", default="glove-50d", help="name or file of word vectors")
    parser.add_argument("--limit", type=int, default=25_000, help="texts of each split")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--table", nargs="*", help="print the table of these records")
    job_cells.options(parser)
    options = parser.parse_args()
    if options.table is not None:
        print(table(options.table or FILES))
    elif options.out is None:
        prepare(options.cut, options.data_dir, options.vectors, options.limit)
    else:
        job_cells.run(options, lambda: plan(options.seeds), partial(run_job, options))


if __name__ == "__main__":
    import default_tokens  # workers import the jobs from this module, not from the script

    default_tokens.main()
