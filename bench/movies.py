"""Do rationalisers find what people marked?  Table 4 of Yu et al. 2021 (A2R, arXiv:2110.13880): movie reviews, words.

    python bench/movies.py --cut DIR --data-dir DIR [--vectors FILE]                          # once: what is needed
    python bench/movies.py --cut DIR --out DIR [--workers 14] [--device cuda] [--seeds 5] [--only REGEX]
    python bench/movies_table.py DIR/records

Every row selects at most SHARE of a review's tokens in at most SPANS windows of equal width, wherever its own scores
are highest (maths/windows.py): the paper punishes more than that, here nothing else is measured.

    rnp, rnp-straight-through, three-player, hardkuma, a2r, a2r-released        the techniques of those names
    a2r-minilm, a2r-released-minilm       on MiniLM, over reviews of any length (bench/movie_windows.py)
    attention     vanilla attention, its heaviest windows       supervised    taught what people marked
    random, first, last, all              nothing is learnt; random-tokens, all: more pieces, or tokens, than may count

One job is one row trained with one seed.  Jobs run side by side; what is there is not done again.
"""

import argparse
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import job_queue

SHARE, SPANS = 0.2, 10
WHERE: dict[str, Any] = {"granularity": "token", "share": SHARE, "spans": SPANS}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "rnp": ("rnp", WHERE),
    "rnp-straight-through": ("rnp", WHERE | {"estimator": "straight-through"}),
    "three-player": ("three-player", WHERE),
    "hardkuma": ("hardkuma", WHERE),
    "a2r": ("a2r", WHERE),
    "a2r-released": ("a2r", WHERE | {"variant": "released"}),
    "attention": ("vanilla", {}),
}
MINILM = {f"{row}-minilm": row for row in ("a2r", "a2r-released")}
YARDSTICKS = ("random", "random-tokens", "first", "last", "all")
RUN: dict[str, Any] = {"epochs": 20, "batch_size": 40, "precision": "no"}
LONG: dict[str, Any] = {"epochs": 6, "batch_size": 8, "precision": "bf16"}
"""On MiniLM."""
FEWER = 3
"""Seeds of MiniLM and of the supervised row."""
LONGEST = 4096
"""Words; no review is longer."""
RARE = 2
"""Training reviews a word must occur in to be known."""


@dataclass(frozen=True)
class Job:
    row: str
    seed: int

    @property
    def id(self) -> str:
        return f"{self.row}.s{self.seed}"


def plan(seeds: int) -> list[Job]:
    """The longest first."""
    few = range(min(FEWER, seeds))
    learnt = [Job(row, seed) for seed in range(seeds) for row in ROWS]
    return [
        *(Job(row, seed) for seed in few for row in MINILM),
        *learnt,
        *(Job("supervised", seed) for seed in few),
        *(Job(row, 0) for row in YARDSTICKS),
    ]


def cut(folder: Path, data_dir: Path, vectors: str) -> None:
    """Reviews as ids of words and as ids of MiniLM's pieces, what people marked, and what MiniLM is, all small."""
    from steadygaze import load_corpus
    from steadygaze.encode.transformer import locate
    from steadygaze.tokens.pieces import load_pieces
    from steadygaze.tokens.words import build_words

    corpus = load_corpus("movie_rationales", data_dir=data_dir)
    print(corpus.sizes, "left out:", corpus.dropped)
    folder.mkdir(parents=True, exist_ok=True)
    texts = [example.text for example in corpus.splits["train"]]
    words = build_words(texts, min_df=RARE, max_length=LONGEST)
    _save(folder / "words.npz", corpus, words, _vectors(vectors, words))
    pieces = load_pieces(locate("minilm"), max_length=2 * LONGEST)
    known = _save(folder / "pieces.npz", corpus, pieces, {})
    _network(folder / "minilm", known)


def _vectors(source: str, words: Any) -> dict[str, Any]:
    import numpy as np

    from steadygaze.tokens.vectors import read_vectors
    from steadygaze.tokens.words import SPECIALS

    found = read_vectors(source, words.vocabulary, seed=0)
    print(f"{words.size:,} words, {found.coverage(specials=len(SPECIALS)):.1%} of them have a vector")
    return {"vectors": found.matrix.astype(np.float16)}


def _save(file: Path, corpus: Any, tokenizer: Any, parts: dict[str, Any]) -> Any:
    """Ids are counted anew, in the order of the old, so that those which never occur need no vector.  -> the old"""
    import numpy as np

    from steadygaze.tokens.align import mark
    from steadygaze.tokens.sentences import sentence_ends

    placed = {name: tokenizer.place([one.text for one in split]) for name, split in corpus.splits.items()}
    ids = np.concatenate([np.arange(4), *(part.ragged.ids for part in placed.values())])
    known = np.arange(tokenizer.size) if "vectors" in parts else np.unique(ids)
    for name, part in placed.items():
        marked = [mark(at, one.evidence or ()) for at, one in zip(part.spans, corpus.splits[name], strict=True)]
        read, evidence = part.ragged, np.zeros(len(part.ragged.ids), np.bool_)
        evidence[read.words] = np.concatenate(marked)
        assert not read.cut.any()
        parts |= {f"{name}/ids": np.searchsorted(known, read.ids).astype(np.uint16), f"{name}/starts": read.starts}
        parts |= {f"{name}/words": read.words, f"{name}/evidence": evidence}
        parts[f"{name}/label"] = np.array([one.label == "positive" for one in corpus.splits[name]])
    assert len(known) < 2**16
    np.savez_compressed(file, ends=sentence_ends(tokenizer.vocabulary)[known], **parts)
    print(f"{file.name}: {len(known):,} ids, {file.stat().st_size / 2**20:.1f} MiB")
    return known


def _network(folder: Path, known: Any) -> None:
    """MiniLM in half precision, with the vectors of these pieces alone."""
    import json

    import torch
    from safetensors.torch import load_file, save_file

    from steadygaze.encode.transformer import locate

    source, name = locate("minilm"), "embeddings.word_embeddings.weight"
    weights = load_file(source / "model.safetensors")
    kept = {key: value.half().contiguous() for key, value in weights.items() if value.is_floating_point()}
    kept[name] = kept[name][torch.from_numpy(known)].contiguous()
    folder.mkdir(exist_ok=True)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_text()) | {"vocab_size": len(known)}
    (folder / "config.json").write_text(json.dumps(config))
    print(f"minilm: {(folder / 'model.safetensors').stat().st_size / 2**20:.1f} MiB")


def done(given: argparse.Namespace, job: Job) -> dict[str, Any]:
    import torch

    from movie_jobs import one

    torch.set_num_threads(1)
    return one(job, given.cut, given.most, given.epochs, given.device)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cut", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--vectors", default="glove-50d", help="the package, or a file of vectors")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, help="instead of RUN's and LONG's")
    parser.add_argument("--most", type=int, help="reviews of each split at most")
    job_queue.options(parser)
    given = parser.parse_args()
    if given.out is None:
        cut(given.cut, given.data_dir, given.vectors)
    else:
        job_queue.run(given, partial(plan, given.seeds), partial(done, given))


if __name__ == "__main__":
    main()
