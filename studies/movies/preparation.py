"""Write the files that the study reads: movie reviews, word vectors and MiniLM.

words.npz     by split: ids of the words, labels, human rationales as words; the vectors of all words
pieces.npz    by split: ids of MiniLM's pieces, and the number of the word in which each piece begins
minilm        the network, in half precision, with the vectors of these pieces alone
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

MAX_WORDS = 4096
"""Words of a review; no review is longer."""
MIN_REVIEWS = 2
"""Training reviews in which a word of the vocabulary occurs."""
VECTOR_WEIGHTS = "embeddings.word_embeddings.weight"

Arrays = dict[str, NDArray[Any]]


def prepare(folder: Path, data_dir: Path | None, vectors: str | Path) -> None:
    corpus = load_corpus("movie_rationales", data_dir=data_dir)
    print(corpus.sizes, "left out:", corpus.dropped)
    folder.mkdir(parents=True, exist_ok=True)
    words = build_word_tokenizer(
        [example.text for example in corpus.splits["train"]], min_df=MIN_REVIEWS, max_length=MAX_WORDS
    )
    pieces = load_subword_tokenizer(locate("minilm"), max_length=2 * MAX_WORDS)
    in_words, in_pieces = _tokenize(corpus, words), _tokenize(corpus, pieces)
    parts: Arrays = {"vectors": _vectors(vectors, words)}
    numbers: Arrays = {}
    for split, examples in corpus.splits.items():
        rationales = _rationales(in_words[split], corpus, split)
        parts[f"{split}/label"] = np.array([example.label == "positive" for example in examples])
        parts[f"{split}/marked"] = np.concatenate(rationales)
        spans = zip(in_words[split].spans, in_pieces[split].spans, strict=True)
        word_numbers = [_word_numbers(words_of_text, pieces_of_text) for words_of_text, pieces_of_text in spans]
        _check_equal(rationales, _rationales(in_pieces[split], corpus, split), word_numbers)
        numbers[f"{split}/number"] = np.concatenate(word_numbers).astype(np.uint16)
    _save(folder / "words.npz", words, in_words, np.arange(words.size), parts)
    ids = [part.ragged.ids for part in in_pieces.values()]
    known = np.unique(np.concatenate([np.arange(len(SPECIALS)), *ids]))
    _save(folder / "pieces.npz", pieces, in_pieces, known, numbers)
    _save_network(folder / "minilm", known)


def _tokenize(corpus: Corpus, tokenizer: TextTokenizer) -> dict[str, TokenizedTexts]:
    tokens = {
        split: tokenizer.place([example.text for example in examples]) for split, examples in corpus.splits.items()
    }
    assert not any(part.ragged.cut.any() for part in tokens.values())
    return tokens


def _vectors(source: str | Path, words: WordTokenizer) -> NDArray[np.float16]:
    table = read_vectors(source, words.vocabulary, seed=0)
    print(f"{words.size:,} words, {table.coverage(specials=len(SPECIALS)):.1%} of them have a vector")
    return table.matrix.astype(np.float16)


def _rationales(tokens: TokenizedTexts, corpus: Corpus, split: str) -> list[NDArray[np.bool_]]:
    """For each text, whether each word or piece is in a human rationale."""
    return [
        mark_tokens(spans, example.rationales or ())
        for spans, example in zip(tokens.spans, corpus.splits[split], strict=True)
    ]


def _word_numbers(words: list[tuple[int, int]], pieces: list[tuple[int, int]]) -> NDArray[np.int64]:
    """The word in which each piece begins.  "don" of the pieces "don|'|t" begins in "do" of the words "do|n't"."""
    starts, ends = np.array(words).T
    first = np.array(pieces)[:, 0]
    numbers = np.searchsorted(starts, first, side="right") - 1
    assert (numbers >= 0).all()
    assert (first < ends[numbers]).all()
    return numbers


def _check_equal(by_words: list[Any], by_pieces: list[Any], numbers: list[Any]) -> None:
    """Rationales of pieces must have the same words as rationales of words."""
    for words, pieces, word_numbers in zip(by_words, by_pieces, numbers, strict=True):
        assert np.array_equal(np.unique(word_numbers[pieces]), np.flatnonzero(words))


def _save(file: Path, tokenizer: Any, tokens: dict[str, TokenizedTexts], known: NDArray[Any], parts: Arrays) -> None:
    """Write the texts with new ids, in the order of the old ones, for the ids that occur."""
    assert len(known) < 2**16
    for split, part in tokens.items():
        texts = part.ragged
        ids = np.searchsorted(known, texts.ids).astype(np.uint16)
        parts |= {f"{split}/ids": ids, f"{split}/starts": texts.starts, f"{split}/words": texts.words}
    roles = sentence_roles(tokenizer.vocabulary, tokenizer.kind)[known]
    arrays: dict[str, Any] = {"roles": roles, **parts}
    np.savez_compressed(file, **arrays)
    print(f"{file.name}: {len(known):,} ids, {file.stat().st_size / 2**20:.1f} MiB")


def _save_network(folder: Path, known: NDArray[Any]) -> None:
    source = locate("minilm")
    weights = load_file(source / "model.safetensors")
    halved = {key: value.half().contiguous() for key, value in weights.items() if value.is_floating_point()}
    halved[VECTOR_WEIGHTS] = halved[VECTOR_WEIGHTS][torch.from_numpy(known)].contiguous()
    folder.mkdir(exist_ok=True)
    save_file(halved, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_text()) | {"vocab_size": len(known)}
    (folder / "config.json").write_text(json.dumps(config))
    print(f"minilm: {(folder / 'model.safetensors').stat().st_size / 2**20:.1f} MiB")
