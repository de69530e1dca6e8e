"""Tokenizers of texts inside a prompt: words of the text as units, or segments of the prompt.

The prompt and the text are tokenized together, as a direct call would do.  Special tokens written in the prompt
("<|user|>") are encoded as such; those in a text are ordinary text.  Truncation removes the end of the text, never the
prompt.

    PromptTokenizer    A token with characters of the text belongs to the text; all others are special tokens, which
                       are never removed and have no weight.
    SegmentTokenizer   Its texts are filled prompts.  A token with characters of a segment belongs to the segment.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from tokenizers import Encoding, Tokenizer

from steadygaze.adapters.prompt import RenderedPrompt
from steadygaze.core.errors import UserError
from steadygaze.core.ragged import TokenArray, TokenizedTexts, row_starts
from steadygaze.core.types import Span
from steadygaze.core.untrusted_files import foreign_error
from steadygaze.data.subword_tokenizer import PieceTokenizer, spot
from steadygaze.data.text_tokenizer import UNABLE, Kind, chunks
from steadygaze.data.word_segmentation import word_breaks


class PromptTokenizer(PieceTokenizer):
    """`label_words`: what follows the prompt; `token_limit`: tokens in all."""

    def __init__(
        self, engine: Tokenizer, prompt: RenderedPrompt, label_words: Sequence[str], *, token_limit: int, pad_id: int
    ) -> None:
        special = [token.content for token in engine.get_added_tokens_decoder().values() if token.special]
        pattern = re.compile("|".join(map(re.escape, special)) or r"(?!)")
        ends = [match.end() for match in pattern.finditer(prompt.before)]
        first, last = pattern.search(prompt.after), ends[-1] if ends else 0
        edge = len(prompt.after) if first is None else first.start()
        engine.encode_special_tokens = False
        lead = engine.encode(prompt.before[:last], add_special_tokens=False)
        trail = engine.encode(prompt.after[edge:], add_special_tokens=False)
        super().__init__(engine, max_length=token_limit, pad_id=pad_id)
        own = [] if prompt.complete else self._before
        self._head, self._tail = prompt.before[last:], prompt.after[:edge]
        self._before, self._after = [*own, *lead.ids], trail.ids  # nothing follows the prompt
        self._lead_spans: list[Span] = [*[(0, 0)] * len(own), *lead.offsets]
        self._trail_spans: list[Span] = trail.offsets
        ends = [match.end() for match in pattern.finditer(prompt.after)]
        context = prompt.after[ends[-1] :] if ends else f"{self._head}a{self._tail}"
        self.label_ids = self._label_ids(context, label_words)
        """The tokens of each label word after the prompt."""
        self.prompt = prompt
        self._token_limit = token_limit - max(map(len, self.label_ids)) + 1
        self.max_length = self._token_limit - int(self.place(["a"]).ragged.lengths[0]) + 1
        if self.max_length < 1:
            raise UserError(f"the prompt is too long: the model reads {token_limit} tokens and no text is left")

    def _label_ids(self, context: str, words: Sequence[str]) -> list[list[int]]:
        """`context`: the characters before the word."""
        plain, *completed = (self._engine.encode(context + word, add_special_tokens=False).ids for word in ("", *words))
        for word, ids in zip(words, completed, strict=True):
            if ids[: len(plain)] != plain or len(ids) == len(plain):
                raise UserError(
                    f"the label word {word!r:.40} is not a separate token after the prompt: remove the space at the "
                    "end of the prompt, and begin the word with a space"
                )
        label_ids = [ids[len(plain) :] for ids in completed]
        if len({tuple(ids) for ids in label_ids}) < len(words):
            raise UserError(f"two label words have the same tokens: {', '.join(map(repr, words)):.200}")
        return label_ids

    def encode(self, texts: Sequence[str], *, question: bool = False) -> TokenArray:
        return self.place(texts).ragged

    def place(self, texts: Sequence[str], *, question: bool = False) -> TokenizedTexts:
        rows = list(self.rows(texts))
        words = [[part == 1 for part in range(3) for _ in row.parts[part]] for row in rows]
        return _tokenized(rows, words, [row.spans for row in rows], [row.groups for row in rows])

    def rows(self, texts: Sequence[str]) -> Iterator["PromptedText"]:
        for chunk in chunks(texts):
            strings = [self._prepare(text) for text in chunk]
            with foreign_error(UNABLE):
                prompts = [f"{self._head}{text}{self._tail}" for text in strings]
                encodings = self._engine.encode_batch(prompts, add_special_tokens=False)
            breaks = word_breaks(strings)
            for row, (text, encoding) in enumerate(zip(strings, encodings, strict=True)):
                yield self._row(text, encoding, breaks.get(row))

    def _row(self, text: str, encoding: Encoding, breaks: Any) -> "PromptedText":
        start, end = len(self._head), len(self._head) + len(text)
        offsets = encoding.offsets
        inside = [i for i, (first, last) in enumerate(offsets) if first < end and last > start]
        empty = sum(last <= start for _, last in offsets)
        first, last = (inside[0], inside[-1] + 1) if inside else (empty, empty)
        before, after = [*self._before, *encoding.ids[:first]], [*encoding.ids[last:], *self._after]
        own = [(max(a, start) - start, min(b, end) - start) for a, b in offsets[first:last]]
        ids, spans, groups = spot(text, encoding.ids[first:last], own, encoding.word_ids[first:last], breaks)
        kept = max(0, self._token_limit - len(before) - len(after))
        middle = len(self.prompt.before) - start
        placed = [(a + middle, b + middle) for a, b in offsets]
        tail = middle + end + len(self._tail)
        around = [*self._lead_spans, *placed[:first]], placed[first:last][:kept], placed[last:]
        trail = [(a + tail, b + tail) for a, b in self._trail_spans]
        return PromptedText(
            (before, ids[:kept], after),
            spans[:kept],
            groups[:kept],
            len(ids) > kept,
            [*around[0], *around[1], *around[2], *trail],
        )


@dataclass(frozen=True)
class PromptedText:
    parts: tuple[list[int], list[int], list[int]]
    """Ids before, of and after the text."""
    spans: list[Span]
    """Of the tokens of the text, in the text."""
    groups: Sequence[int]
    cut: bool
    prompt_spans: list[Span]
    """Of all tokens, in the filled prompt."""


class SegmentTokenizer:
    """Segments of filled prompts, see `RenderedPrompt.fill`."""

    kind: ClassVar[Kind] = "pieces"

    def __init__(self, tokens: PromptTokenizer) -> None:
        self._tokens = tokens
        self.max_length = tokens.max_length

    @property
    def vocabulary(self) -> list[str]:
        return self._tokens.vocabulary

    def fill(self, texts: Sequence[str]) -> list[str]:
        """The filled prompt of each text."""
        return [self._tokens.prompt.fill(text) for text in texts]

    def encode(self, texts: Sequence[str], *, question: bool = False) -> TokenArray:
        return self.place(texts).ragged

    def place(self, texts: Sequence[str], *, question: bool = False) -> TokenizedTexts:
        plain = [self._tokens.prompt.unfill(text) for text in texts]
        rows = list(self._tokens.rows(plain))
        spans: list[list[Span]] = []
        numbers: list[list[int]] = []
        for row, text in zip(rows, plain, strict=True):
            segments = self._tokens.prompt.segments(text)
            numbers.append([_segment(span, segments) for span in row.prompt_spans])
            own = zip(row.prompt_spans, numbers[-1], strict=True)
            spans.append([_common(span, segments[number]) for span, number in own if number >= 0])
        words = [[number >= 0 for number in row] for row in numbers]
        return _tokenized(rows, words, spans, [[number for number in row if number >= 0] for row in numbers])


def _segment(span: Span, segments: Sequence[Span]) -> int:
    """The first segment that shares characters with a token; −1: none."""
    return next((i for i, (start, end) in enumerate(segments) if span[0] < end and span[1] > start), -1)


def _common(span: Span, segment: Span) -> Span:
    return max(span[0], segment[0]), min(span[1], segment[1])


def _tokenized(
    rows: Sequence[PromptedText],
    words: Sequence[Sequence[bool]],
    spans: list[list[Span]],
    groups: Sequence[Sequence[int]],
) -> TokenizedTexts:
    ids = np.array([token for row in rows for part in row.parts for token in part], np.int32)
    flags = np.array([flag for row in words for flag in row], np.bool_)
    starts = row_starts(np.array([len(row) for row in words], np.int64))
    cut = np.array([row.cut for row in rows], np.bool_)
    return TokenizedTexts(TokenArray(ids, flags, starts, cut), spans, list(groups))
