"""Label leakage through attention: Tables 1 and 2 of Bai et al. 2021 (arXiv:2006.05656), on IMDB.

Without --out, the texts are prepared, once, and written to --cut.

Every text is the tokens a b c d and the review.  Attention covers these four and the first five words; the query is the
whole review.  One job (pooling.vanilla.s0) trains one decoder with one technique and one seed.

The file of --cut has the reviews as ids, and the vectors of their words, so that jobs need no other data.
Difference from the paper: Adam (AMSGrad) instead of RMSprop.  The paper does not state the size of the vectors, the
query, the length of texts or the batch size.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from studies import jobs

TECHNIQUES: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "random-pretraining": {"pretraining_epochs": 10},
    "mask-neutral": {},
}
ENCODERS = ("pooling", "rcnn")
MAX_WORDS = 400
POSITIVE = "positive"
MIN_REVIEWS = 5
"""Training reviews in which a word of the vocabulary occurs."""


@dataclass(frozen=True)
class Job(jobs.Job):
    encoder: str
    technique: str
    seed: int


def plan(seeds: int) -> list[Job]:
    return [Job(encoder, name, seed) for seed in range(seeds) for name in TECHNIQUES for encoder in ENCODERS]


def prepare(out: Path, data_dir: Path | None, vectors: str, max_texts: int) -> None:
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


def run_job(options: "Options", job: Job) -> dict[str, Any]:
    import torch

    from steadygaze.training.optimizers import Training
    from studies.default_tokens.model import load_texts, measure_attention, train

    torch.set_num_threads(1)
    texts, epochs = load_texts(options.cut), options.epochs
    training = Training(epochs=epochs, batch_size=options.batch_size, weight_decay=0.0, patience=epochs)
    settings = TECHNIQUES[job.technique]
    model, history = train(texts, job.encoder, job.technique, settings, training, job.seed, options.device)
    record = {"job": job.id, **measure_attention(model, texts), "epochs": epochs, "batch_size": options.batch_size}
    return record | {"terms": [epoch["terms"] for epoch in history]}


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """The vectors, the limit and the data are those of prepared texts."""

    out: Path | None = None  # type: ignore[assignment]
    cut: Path = field(metadata={"help": "prepared reviews; written without --out"})
    data_dir: Path | None = None
    vectors: str = field(default="glove-50d", metadata={"help": "name or file of word vectors"})
    limit: int = field(default=25_000, metadata={"help": "texts of each split"})
    seeds: int = 10
    epochs: int = 25
    batch_size: int = 64


def run(options: Options) -> None:
    if options.out is None:
        prepare(options.cut, options.data_dir, options.vectors, options.limit)
    else:
        jobs.run(options, lambda: plan(options.seeds), partial(run_job, options))
