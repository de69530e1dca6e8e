"""What bench/movies.py needs of the movie reviews, of GloVe and of MiniLM, in small files: `cut`.

    words.npz     by split: ids of the words, labels, which words people marked; the vectors of all words
    pieces.npz    by split: ids of MiniLM's pieces, and for each the number of the word it begins in
    minilm        the network, in half precision, with the vectors of these pieces alone

Marks are those of words, for all rows alike.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from steadygaze.core.ragged import TokenizedTexts
from steadygaze.data.corpora import load_corpus
from steadygaze.data.corpus import Corpus
from steadygaze.data.sentence_roles import sentence_roles
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.data.text_tokenizer import TextTokenizer
from steadygaze.data.token_alignment import mark_tokens
from steadygaze.data.word_tokenizer import SPECIALS, WordTokenizer, build_word_tokenizer
from steadygaze.data.word_vectors import read_vectors
from steadygaze.models.encoders.transformer import locate

LONGEST = 4096
"""Words; no review is longer."""
RARE = 2
"""Training reviews a word must occur in to be known."""
VECTORS = "embeddings.word_embeddings.weight"

Arrays = dict[str, NDArray[Any]]


def cut(folder: Path, data_dir: Path | None, vectors: str | Path) -> None:
    corpus = load_corpus("movie_rationales", data_dir=data_dir)
    print(corpus.sizes, "left out:", corpus.dropped)
    folder.mkdir(parents=True, exist_ok=True)
    words = build_word_tokenizer([example.text for example in corpus.splits["train"]], min_df=RARE, max_length=LONGEST)
    pieces = load_subword_tokenizer(locate("minilm"), max_length=2 * LONGEST)
    in_words, in_pieces = _placed(corpus, words), _placed(corpus, pieces)
    parts: Arrays = {"vectors": _vectors(vectors, words)}
    numbers: Arrays = {}
    for split, examples in corpus.splits.items():
        marked = _marked(in_words[split], corpus, split)
        parts[f"{split}/label"] = np.array([example.label == "positive" for example in examples])
        parts[f"{split}/marked"] = np.concatenate(marked)
        word_numbers = [_numbers(*both) for both in zip(in_words[split].spans, in_pieces[split].spans, strict=True)]
        _check(marked, _marked(in_pieces[split], corpus, split), word_numbers)
        numbers[f"{split}/number"] = np.concatenate(word_numbers).astype(np.uint16)
    _save(folder / "words.npz", words, in_words, np.arange(words.size), parts)
    ids = [part.ragged.ids for part in in_pieces.values()]
    known = np.unique(np.concatenate([np.arange(len(SPECIALS)), *ids]))
    _save(folder / "pieces.npz", pieces, in_pieces, known, numbers)
    _network(folder / "minilm", known)


def _placed(corpus: Corpus, tokenizer: TextTokenizer) -> dict[str, TokenizedTexts]:
    placed = {
        split: tokenizer.place([example.text for example in examples]) for split, examples in corpus.splits.items()
    }
    assert not any(part.ragged.cut.any() for part in placed.values())
    return placed


def _vectors(source: str | Path, words: WordTokenizer) -> NDArray[np.float16]:
    table = read_vectors(source, words.vocabulary, seed=0)
    print(f"{words.size:,} words, {table.coverage(specials=len(SPECIALS)):.1%} of them have a vector")
    return table.matrix.astype(np.float16)


def _marked(placed: TokenizedTexts, corpus: Corpus, split: str) -> list[NDArray[np.bool_]]:
    """Of each text, the words or pieces that people marked."""
    return [
        mark_tokens(spans, example.rationales or ())
        for spans, example in zip(placed.spans, corpus.splits[split], strict=True)
    ]


def _numbers(words: list[tuple[int, int]], pieces: list[tuple[int, int]]) -> NDArray[np.int64]:
    """The word of a text that each piece begins in; of "do|n't", read as "don|'|t", the first piece is "do"."""
    starts, ends = np.array(words).T
    first = np.array(pieces)[:, 0]
    numbers = np.searchsorted(starts, first, side="right") - 1
    assert (numbers >= 0).all()
    assert (first < ends[numbers]).all()
    return numbers


def _check(by_words: list[Any], by_pieces: list[Any], numbers: list[Any]) -> None:
    """That the words of which a piece is marked are the marked words."""
    for words, pieces, at in zip(by_words, by_pieces, numbers, strict=True):
        assert np.array_equal(np.unique(at[pieces]), np.flatnonzero(words))


def _save(file: Path, tokenizer: Any, placed: dict[str, TokenizedTexts], known: NDArray[Any], parts: Arrays) -> None:
    """Ids are counted anew, in the order of the old, so that those which never occur need no vector."""
    assert len(known) < 2**16
    for split, part in placed.items():
        read = part.ragged
        ids = np.searchsorted(known, read.ids).astype(np.uint16)
        parts |= {f"{split}/ids": ids, f"{split}/starts": read.starts, f"{split}/words": read.words}
    np.savez_compressed(file, roles=sentence_roles(tokenizer.vocabulary, tokenizer.kind)[known], **parts)
    print(f"{file.name}: {len(known):,} ids, {file.stat().st_size / 2**20:.1f} MiB")


def _network(folder: Path, known: NDArray[Any]) -> None:
    source = locate("minilm")
    weights = load_file(source / "model.safetensors")
    kept = {key: value.half().contiguous() for key, value in weights.items() if value.is_floating_point()}
    kept[VECTORS] = kept[VECTORS][torch.from_numpy(known)].contiguous()
    folder.mkdir(exist_ok=True)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_text()) | {"vocab_size": len(known)}
    (folder / "config.json").write_text(json.dumps(config))
    print(f"minilm: {(folder / 'model.safetensors').stat().st_size / 2**20:.1f} MiB")
