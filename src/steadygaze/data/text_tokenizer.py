"""TextTokenizer: texts -> ragged ids, with the character span of each token if needed.

    encode   ids, for training
    place    ids, character spans and words, for explanations

The `tokenizers` library splits the texts, without its truncation, padding and special tokens: this module adds them to
all texts at once.  Spans count code points of the original Python string, before normalization.  Special tokens
that a user types ("[SEP]", "<s>") are ordinary text.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from tokenizers import Tokenizer

from steadygaze.core.errors import UserError
from steadygaze.core.ragged import TokenArray, TokenizedTexts, row_starts
from steadygaze.core.types import Span
from steadygaze.core.untrusted_files import foreign_error, quiet_panics
from steadygaze.data.synonym_groups import SynonymGroups

Kind = Literal["words", "pieces"]
Spot = tuple[list[int], list[Span], Sequence[int]]
"""Ids, spans and groups of one text."""
CHUNK = 1 << 20
"""Characters per call of the library: an encoding needs about fifty times the memory of its ids."""

MOST_IDS = 1 << 24
"""Tokens of a vocabulary: a damaged file may have any id."""
TRIAL = "A trial, 1 of 2: naïve \U0001f600"
UNABLE = "the model's tokenizer cannot read the texts"

_SURROGATE = re.compile("[\ud800-\udfff]")


class Tokens(Protocol):
    """Texts -> ids: our word tokenizer, the tokenizer of a Hugging Face model, or the words of a black box."""

    @property
    def kind(self) -> Kind: ...

    @property
    def vocabulary(self) -> list[str]:
        """The token of each id."""

    def encode(self, texts: Sequence[str], *, question: bool = False) -> TokenArray: ...

    def place(self, texts: Sequence[str], *, question: bool = False) -> TokenizedTexts: ...


class TextTokenizer(ABC):
    """Base class of word and subword tokenizers."""

    kind: ClassVar[Kind]

    def __init__(
        self,
        engine: Tokenizer,
        *,
        max_length: int,
        pad_id: int | None = None,
        synonym_groups: SynonymGroups | None = None,
    ) -> None:
        if max_length < 1:
            raise UserError(f"max_length: found {max_length}; it must be at least 1.")
        self.max_length = max_length
        """Maximum number of tokens of a text, without special tokens."""
        self.synonym_groups = synonym_groups
        """Groups of words that have the ids of their representative; None: every word has its own."""
        self.pad_id = _pad_id(engine) if pad_id is None else pad_id
        engine.no_truncation()
        engine.no_padding()
        self.size = size_of(engine)
        """Number of ids, special tokens included."""
        engine.encode_special_tokens = True  # "[SEP]" in a text is encoded as ordinary text
        self._engine = engine
        self._before, self._after = _specials(engine)
        if not 0 <= self.pad_id < max(self.size, 1):
            raise UserError(f"the tokenizer pads with the id {self.pad_id:,}, which is not one of its {self.size:,}.")
        self._set_up()

    @abstractmethod
    def _set_up(self) -> None:
        """Prepare what this kind of tokenizer adds to the engine."""

    @property
    def unknown_id(self) -> int | None:
        """The id of unknown tokens; None: every token is known."""
        name = getattr(self._engine.model, "unk_token", None)
        return None if name is None else self._engine.token_to_id(name)

    @property
    def special_counts(self) -> tuple[int, int]:
        """Number of special tokens before and after a text."""
        return len(self._before), len(self._after)

    @property
    def vocabulary(self) -> list[str]:
        """The token of each id."""
        return [self._engine.id_to_token(index) or "" for index in range(self.size)]

    def encode(self, texts: Sequence[str], *, question: bool = False) -> TokenArray:
        """Ids only."""

        def rows() -> Iterator[Sequence[list[int]]]:
            for chunk in chunks(texts):
                with foreign_error(UNABLE):
                    ids = self._ids([self._prepare(text) for text in chunk])
                yield ids

        return self._wrap(rows(), self._leading(question))

    def place(self, texts: Sequence[str], *, question: bool = False) -> TokenizedTexts:
        """Ids, and the span and word of every token."""
        spans: list[list[Span]] = []
        groups: list[Sequence[int]] = []

        def rows() -> Iterator[Sequence[list[int]]]:
            for chunk in chunks(texts):
                with foreign_error(UNABLE):
                    spots = self._spots([self._prepare(text) for text in chunk])
                ids, places, words = zip(*spots, strict=True)
                spans.extend(self._cut(places))
                groups.extend(self._cut(words))
                yield ids

        return TokenizedTexts(self._wrap(rows(), self._leading(question)), spans, groups)

    def _leading(self, question: bool) -> Sequence[int]:
        """Special tokens before a text.  A question follows its text in the same sequence and has none."""
        return () if question else self._before

    def to_json(self) -> str:
        """The content of `tokenizer.json`, with max_length and the padding id in the fields of the library.

        Synonym groups are not part of it.
        """
        copy = Tokenizer.from_str(self._engine.to_str())
        copy.enable_truncation(self.max_length + len(self._before) + len(self._after))
        copy.enable_padding(pad_id=self.pad_id, pad_token=copy.id_to_token(self.pad_id) or "")
        return str(copy.to_str(pretty=True))

    def _prepare(self, text: str) -> str:
        """The input of the library, with the same number of characters."""
        return clean(text)

    @abstractmethod
    def _ids(self, texts: list[str]) -> list[list[int]]:
        """Ids of each prepared text, without truncation."""

    @abstractmethod
    def _spots(self, texts: list[str]) -> list[Spot]:
        """Ids, spans and groups of each prepared text, without truncation."""

    def _cut(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Truncate each to max_length."""
        longest = max(map(len, rows), default=0)
        return rows if longest <= self.max_length else [row[: self.max_length] for row in rows]

    def _wrap(self, parts: Iterable[Sequence[list[int]]], before: Sequence[int]) -> TokenArray:
        """Truncate to max_length and add special tokens."""
        full, flat = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        for rows in parts:
            full.append(np.fromiter(map(len, rows), np.int64, len(rows)))
            flat.append(np.fromiter(chain.from_iterable(self._cut(rows)), np.int32))
        lengths = np.concatenate(full)
        starts = row_starts(np.minimum(lengths, self.max_length) + len(before) + len(self._after))
        first = starts[:-1, None] + np.arange(len(before))
        last = starts[1:, None] - np.arange(len(self._after), 0, -1)
        words = np.ones(starts[-1], np.bool_)
        words[first] = words[last] = False
        ids = np.empty(starts[-1], np.int32)
        ids[first], ids[last], ids[words] = before, self._after, np.concatenate(flat)
        return TokenArray(ids, words, starts, lengths > self.max_length)


def read_engine(text: str, name: str) -> Tokenizer:
    """Parse a tokenizer of the library and try it on a text and a pair; errors name the file."""
    with foreign_error(f"{name} is not a tokenizer of the `tokenizers` library"), quiet_panics():
        engine = Tokenizer.from_str(text)
        largest_id = max([*engine.encode(TRIAL).ids, *engine.encode(TRIAL, TRIAL).ids], default=-1)
    if (size := size_of(engine)) > MOST_IDS:
        raise UserError(f"{name} has ids up to {size - 1:,}; the maximum is {MOST_IDS:,} tokens.")
    if largest_id >= size:
        raise UserError(f"{name} adds the id {largest_id:,} to a text, which is not one of its {size:,} tokens.")
    return engine


def size_of(engine: Tokenizer) -> int:
    """One above the largest id; ids may have gaps."""
    return max(engine.get_vocab().values(), default=-1) + 1


def clean(text: str) -> str:
    """Replace lone surrogates, which the library does not accept, by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def align_spans(text: str, spans: list[Span]) -> list[Span]:
    """Extend spans to the end of their last character.

    The library excludes combining accents from a span; characters up to the next token or space belong to the token.
    """
    if text.isascii() or not spans:
        return spans
    following = [start for start, _ in spans[1:]] + [len(text)]
    return [
        (start, end if end >= after or text[end].isspace() else start + len(text[start:after].rstrip()))
        for (start, end), after in zip(spans, following, strict=True)
    ]


def chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    """Split the texts into chunks of about CHUNK characters, at least one text each."""
    chunk: list[str] = []
    room = CHUNK
    for text in texts:
        chunk.append(text)
        room -= len(text)
        if room <= 0:
            yield chunk
            chunk, room = [], CHUNK
    if chunk:
        yield chunk


def _specials(engine: Tokenizer) -> tuple[list[int], list[int]]:
    """The ids that the tokenizer adds before and after a text, from a trial text."""
    probe = engine.encode("a")
    special = np.array(probe.special_tokens_mask, np.bool_)
    real = np.flatnonzero(~special)
    begin, end = (real[0], real[-1] + 1) if len(real) else (len(special), len(special))
    return probe.ids[:begin], probe.ids[end:]


def _pad_id(engine: Tokenizer) -> int:
    """The padding id of the file, else of a common padding token, else 0: padding is always masked."""
    if engine.padding is not None:
        return int(engine.padding["pad_id"])
    return next((index for name in ("<pad>", "[PAD]") if (index := engine.token_to_id(name)) is not None), 0)
