"""Black boxes: models that read text, with words as tokens.

A piece is a word and the characters up to the next word.  The concatenation of the pieces is the text:

    "  A good film."   ->   "  " | "A " | "good " | "film" | "."       the first is not a word and is never erased
                                                                       without "good ": "  A film."

Erased punctuation takes its white space with it.  A space then separates the words around it: "dull. A film" without
"." is "dull A film".  For this, a piece also has whether white space, or nothing, precedes it in its text.

Each new piece gets the next id, which depends on the texts before it.  Its key depends on the piece alone: random
numbers and orders of words come from keys, so that the other texts do not change what a text gets.

Predictions are cached, because most erasures of a text recur in other measures.  Inside `redrawn(d)` they are those of
draw d: the black box is asked again, once.  The answers of a deterministic black box are the same in all draws.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.transformer_network import TransformerOutput
from steadygaze.core.errors import UserError
from steadygaze.core.ragged import TokenArray, TokenizedTexts, row_starts
from steadygaze.core.types import Batch, Label, Span, Task
from steadygaze.data.text_tokenizer import Kind
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.explainers.learned.black_box_queries import as_numbers, black_box_errors, predicted
from steadygaze.models.inference import Capability, Model

EMPTY_PIECE = ""
"""The piece of padding; its id is 0."""
LONGEST = 2**31 - 1
"""Words per text: a black box reads all of it."""


class TextWords:
    kind: ClassVar[Kind] = "words"

    def __init__(self) -> None:
        self._split = build_word_tokenizer([], max_length=LONGEST)
        self.clear()

    def clear(self) -> None:
        """Forget all pieces: the vocabulary grows with the texts.  Ids of earlier calls become invalid."""
        self._pieces = [EMPTY_PIECE]
        self._ids = {(EMPTY_PIECE, False): 0}
        self._after_space = [False]
        """By id: white space, or nothing, precedes the piece."""
        self._joins_next = [False]
        """By id: the next piece follows without white space, and the piece is not an opening bracket or quote."""
        self._keys = torch.zeros(1, dtype=torch.long)

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def vocabulary(self) -> list[str]:
        """The piece of each current id."""
        return list(self._pieces)

    def encode(self, texts: Sequence[str], *, question: bool = False) -> TokenArray:
        return self.place(texts).ragged

    def place(self, texts: Sequence[str], *, question: bool = False) -> TokenizedTexts:
        spans = self._split.place(texts).spans
        rows = [_cut(text, text_spans) for text, text_spans in zip(texts, spans, strict=True)]
        starts = row_starts(np.array([len(row) for row in rows], np.int64))
        words = np.ones(starts[-1], np.bool_)
        leads = np.array([len(row) > len(text_spans) for row, text_spans in zip(rows, spans, strict=True)], np.bool_)
        words[starts[:-1][leads]] = False
        after = [_ends_in_space(before) for row in rows for before in (EMPTY_PIECE, *row[:-1]) if row]
        ids = np.array(self.add_pieces(chain.from_iterable(rows), after), np.int32)
        ragged = TokenArray(ids, words, starts, np.zeros(len(texts), np.bool_), self.word_keys)
        return TokenizedTexts(ragged, spans, [range(len(text_spans)) for text_spans in spans])

    def add_pieces(self, pieces: Iterable[str], after_space: Iterable[bool]) -> list[int]:
        """The id of each piece; new pieces get new ids."""
        requested = list(zip(pieces, after_space, strict=True))
        for piece, after in sorted(set(requested) - self._ids.keys()):
            self._ids[piece, after] = len(self._pieces)
            self._pieces.append(piece)
            self._after_space.append(after)
            self._joins_next.append(not (_ends_in_space(piece) or (after and not piece[-1].isalnum())))
        return [self._ids[piece] for piece in requested]

    def word_keys(self) -> Tensor:
        """(V,) long: the key of each current id."""
        size = len(self._keys)
        new = list(map(_piece_key, self._pieces[size:], self._after_space[size:]))
        self._keys = torch.cat([self._keys, torch.tensor(new, dtype=torch.long)])
        return self._keys

    def after_space(self, index: int) -> bool:
        """Return whether white space, or nothing, precedes the piece of this id."""
        return self._after_space[index]

    def join(self, ids: Tensor, present: Tensor) -> list[str]:
        """The texts of these pieces.  (B,T), (B,T)"""
        left = present & (ids != 0)
        ids = ids.masked_fill(~left, 0).gather(-1, (~left).to(torch.uint8).argsort(dim=-1, stable=True)).cpu()
        joins_next, after_space = (torch.tensor(flags)[ids] for flags in (self._joins_next, self._after_space))
        spaces = joins_next[:, :-1] & after_space[:, 1:]  # such pieces are not neighbors in their text
        texts = ["".join(map(self._pieces.__getitem__, row)) for row in ids.tolist()]
        for row in spaces.any(-1).nonzero().flatten().tolist():
            flags = [*spaces[row].tolist(), False]
            pieces = map(self._pieces.__getitem__, ids[row].tolist())
            texts[row] = "".join(piece + " " * space for piece, space in zip(pieces, flags, strict=True))
        return texts


def _piece_key(piece: str, after_space: bool) -> int:
    """63 bits: the first letters, which order the keys, then a hash.

    >>> _piece_key("Bad ", True) < _piece_key("bag", True) < _piece_key("good", True) != _piece_key("good", False)
    True
    """
    letters = piece.casefold().encode("utf-8", "surrogatepass")[:4].ljust(4, b"\0")
    digest = hashlib.blake2b(repr((piece, after_space)).encode(), digest_size=4).digest()
    return int.from_bytes(letters + digest, "big") >> 1


def _cut(text: str, spans: Sequence[Span]) -> list[str]:
    """Split the text into pieces; characters before the first word are a separate piece."""
    edges = [0, *(start for start, _ in spans), len(text)]
    pieces = [text[start:end] for start, end in pairwise(edges)]
    return pieces if pieces[0] else pieces[1:]


def _ends_in_space(piece: str) -> bool:
    """Return whether a word after the piece begins after white space, or at the start of the text."""
    return not piece or piece[-1].isspace()


CHUNK = 256
"""Most texts per call of the black box."""
REMEMBERED = 1 << 17
"""Texts with cached probabilities: about 30 MB."""
Text = str | tuple[str, str]
"""A text, or a text and a question."""


class BlackBoxModel(Model):
    """`task`: what the numbers are; see `read_values` for those that are not probabilities of classes."""

    capabilities: frozenset[Capability] = frozenset()
    is_black_box = True

    def __init__(
        self, predict: Callable[[list[Any]], Any], tokens: TextWords, classes: int, task: Task = "classification"
    ) -> None:
        super().__init__()
        self.task = task
        self.predict = predict
        self.tokens = tokens
        self.classes = classes
        self._cache: OrderedDict[bytes, NDArray[np.float64]] = OrderedDict()  # least recently used first
        self._draw = 0

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> TransformerOutput:
        if embedded is not None:
            raise ValueError("a black box reads texts, not vectors")
        texts: list[Any] = self.tokens.join(batch.ids, batch.present)
        if batch.question_ids is not None and batch.question_present is not None:
            texts = list(zip(texts, self.tokens.join(batch.question_ids, batch.question_present), strict=True))
        return TransformerOutput(None, self._logits(self._predict(texts)).to(batch.ids.device))

    def _logits(self, values: NDArray[np.float64]) -> Tensor:
        floor = np.finfo(np.float64).tiny  # its logarithm is finite
        if self.task == "regression":
            return torch.from_numpy(values)
        logs = torch.from_numpy(np.log(np.maximum(values, floor)))
        if self.task == "classification":
            return logs
        return logs - torch.from_numpy(np.log(np.maximum(1 - values, floor)))

    def clear_cache(self) -> None:
        self._cache.clear()

    @contextmanager
    def redrawn(self, draw: int) -> Iterator[None]:
        before, self._draw = self._draw, draw
        try:
            yield
        finally:
            self._draw = before

    def _predict(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        """(B,C)"""
        keys = {text: _key(text, self._draw) for text in texts}
        probabilities = {text: self._cache[key] for text, key in keys.items() if key in self._cache}
        others = [text for text in keys if text not in probabilities]
        for start in range(0, len(others), CHUNK):
            chunk = others[start : start + CHUNK]
            probabilities.update(zip(chunk, self._answer(list(chunk)), strict=True))
        self._remember({keys[text]: probs for text, probs in probabilities.items()})
        return np.stack([probabilities[text] for text in texts])

    def _answer(self, texts: list[Text]) -> NDArray[np.float64]:
        """(n,C)"""
        draw = getattr(self.predict, "draw", None)  # of a hosted model, which stores its draws
        predict = self.predict if draw is None else partial(draw, number=self._draw)
        if self.task == "classification":
            return predicted(predict, texts, len(texts), self.classes)
        return read_values(predict, texts, self.classes, bounded=self.task == "multi-label")

    def _remember(self, probabilities: dict[bytes, NDArray[np.float64]]) -> None:
        """Cache the probabilities and drop the least recently used."""
        for key, probs in probabilities.items():
            self._cache[key] = probs
            self._cache.move_to_end(key)
        while len(self._cache) > REMEMBERED:
            self._cache.popitem(last=False)


def read_values(
    predict: Callable[[list[Any]], Any], texts: list[Text], outputs: int, bounded: bool = False
) -> NDArray[np.float64]:
    """Call a regression model, or with `bounded` a multi-label model.  (n,) or (n,K) -> (n,K)"""
    with black_box_errors():
        answer = predict(texts)
    try:
        values = as_numbers(answer)
    except (TypeError, ValueError):
        raise UserError(f"the black box returned {answer!r:.80}; numbers were expected, one row per text") from None
    values = values[:, None] if values.ndim == 1 else values
    if values.shape != (len(texts), outputs):
        raise UserError(f"the black box returned numbers of shape {values.shape}; expected {(len(texts), outputs)}")
    if not np.isfinite(values).all() or (bounded and not ((values >= 0) & (values <= 1)).all()):
        expected = "probabilities from 0 to 1" if bounded else "finite numbers"
        raise UserError(f"the black box returned {values.ravel()[:3].round(6).tolist()} …; expected {expected}")
    return values


def black_box(
    predict: Callable[[list[Any]], Any], classes: Sequence[Label], name: str, task: Task = "classification"
) -> ModelAdapter:
    tokens = TextWords()
    return ModelAdapter(
        name=name,
        kind="a black box" if task == "classification" else f"a black box ({task})",
        task=task,
        model=BlackBoxModel(predict, tokens, len(classes), task).eval(),
        tokens=tokens,
        classes=classes,
        pair=None,
        fingerprint="",
    )


def _key(text: Text, draw: int = 0) -> bytes:
    """16-byte key; `repr` because a text may contain surrogates, which UTF-8 cannot encode."""
    return hashlib.blake2b(repr(text).encode(), digest_size=16, person=draw.to_bytes(8)).digest()
