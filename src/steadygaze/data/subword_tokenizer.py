"""Subwords: the fast tokenizer of a Hugging Face model, from its folder.

A text is encoded as [CLS] text [SEP], or by the tokenizer's template.  A question is `question [SEP]`: a text and its
question are one joint sequence.  In Chinese, Japanese, Thai, Lao, Khmer and Burmese, the pieces of a word are those
that begin between two breaks of word_segmentation.py.

Spans exclude surrounding white space.  A token of white space has an empty span and belongs to the next word, or to the
last one at the end of a text.

With synonym groups, the representative replaces each word of a group before the text is split into pieces.  Spans are
those of the original text.
"""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.errors import UserError
from steadygaze.core.types import Span
from steadygaze.core.untrusted_files import MissingFile, read_object, read_text
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.synonym_rewriting import SynonymRewriter
from steadygaze.data.text_tokenizer import Kind, Spot, TextTokenizer, align_spans, read_engine
from steadygaze.data.word_segmentation import LETTER, word_breaks


def load_subword_tokenizer(
    folder: Path, *, max_length: int, synonym_groups: SynonymGroups | None = None
) -> "PieceTokenizer":
    """Load the tokenizer of a model folder.  Padding and truncation settings of the file are overridden."""
    file = Path(folder) / "tokenizer.json"
    if not file.is_file():
        raise UserError(f"no tokenizer.json in {str(folder)!r}; a Hugging Face model with a fast tokenizer has one.")
    engine = read_engine(read_text(file), str(file))
    pad = _pad_token(file.with_name("tokenizer_config.json"))
    pad_id = None if pad is None else engine.token_to_id(pad)
    return PieceTokenizer(engine, max_length=max_length, pad_id=pad_id, synonym_groups=synonym_groups)


def text_limit(token_limit: int, specials: int) -> int:
    """Return the number of tokens that special tokens leave for a text; refuse a tokenizer that leaves none."""
    if specials >= token_limit:
        raise UserError(
            f"the tokenizer adds {specials:,} special tokens to a text, and the network reads {token_limit:,} tokens "
            "in all: none is left for the text; check the post_processor in tokenizer.json"
        )
    return token_limit - specials


class PieceTokenizer(TextTokenizer):
    """Splits texts like the pretrained model."""

    kind: ClassVar[Kind] = "pieces"

    def _set_up(self) -> None:
        self._rewrite = None if self.synonym_groups is None else SynonymRewriter(self.synonym_groups)

    def _ids(self, texts: list[str]) -> list[list[int]]:
        if self._rewrite is not None:
            texts = [rewritten.text for rewritten in self._rewrite(texts)]
        return [encoding.ids for encoding in self._engine.encode_batch_fast(texts, add_special_tokens=False)]

    def _spots(self, texts: list[str]) -> list[Spot]:
        if self._rewrite is None:
            return self._text_spots(texts)
        rewritten = self._rewrite(texts)
        spots = self._text_spots([item.text for item in rewritten])
        return [
            (ids, item.original_spans(spans), groups)
            for item, (ids, spans, groups) in zip(rewritten, spots, strict=True)
        ]

    def _text_spots(self, texts: list[str]) -> list[Spot]:
        encodings = self._engine.encode_batch(texts, add_special_tokens=False)
        breaks = word_breaks(texts)
        return [
            spot(text, encoding.ids, encoding.offsets, encoding.word_ids, breaks.get(row))
            for row, (text, encoding) in enumerate(zip(texts, encodings, strict=True))
        ]


def spot(
    text: str, ids: list[int], offsets: list[Span], word_ids: list[int | None], breaks: NDArray[np.int64] | None
) -> Spot:
    """Spans and words of the tokens of a text; `breaks`: see `word_breaks`."""
    spans = align_spans(text, _trimmed(text, offsets))
    words = word_ids if breaks is None else _segmented(text, spans, word_ids, breaks)
    groups = _words(text, spans, words)
    if any(start == end for start, end in spans):
        _settle(spans, groups)
    return ids, spans, groups


def _trimmed(text: str, spans: list[Span]) -> list[Span]:
    """Remove the white space at the start of a piece such as "▁word"."""
    return [
        (end - len(text[start:end].lstrip()), end) if text[start : start + 1].isspace() else (start, end)
        for start, end in spans
    ]


def _segmented(
    text: str, spans: list[Span], word_ids: list[int | None], breaks: NDArray[np.int64]
) -> list[tuple[int, int | None]]:
    """The library's words, cut at the breaks; between two of them, letters of scripts without spaces are one word."""
    parts = np.searchsorted(breaks, [start for start, _ in spans], side="right").tolist()
    return [
        (part, None if LETTER.match(text, start) else word)
        for part, (start, _), word in zip(parts, spans, word_ids, strict=True)
    ]


def _words(text: str, spans: list[Span], word_ids: Sequence[Hashable]) -> list[int]:
    """The library's words; white space always begins a new word, since some tokenizers treat a text as one word."""
    groups: list[int] = []
    group, reach = -1, 0
    previous: Hashable = None
    for (start, end), word in zip(spans, word_ids, strict=True):
        if word != previous or (start > reach and text[start - 1].isspace()):
            group += 1
        groups.append(group)
        previous, reach = word, end
    return groups


def _settle(spans: list[Span], groups: list[int]) -> None:
    """Assign every token without characters to the next token with characters, or else to the last one."""
    full = [index for index, (start, end) in enumerate(spans) if start < end]
    for index in range(full[-1] - 1 if full else -1, -1, -1):
        if spans[index][0] == spans[index][1]:
            spans[index], groups[index] = (spans[index + 1][0],) * 2, groups[index + 1]
    for index in range(full[-1] + 1 if full else 1, len(spans)):
        spans[index], groups[index] = (spans[index - 1][1],) * 2, groups[index - 1]


def _pad_token(config: Path) -> str | None:
    """The padding token that `tokenizer_config.json` names, if any."""
    try:
        values = read_object(config)
    except MissingFile:  # tokenizer.json alone is enough
        return None
    pad = values.get("pad_token")
    pad = pad.get("content") if isinstance(pad, dict) else pad
    if not isinstance(pad, str | None):
        raise UserError(f"{config}: pad_token is {pad!r:.80}; it must be a string")
    return pad
