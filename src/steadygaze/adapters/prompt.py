"""Prompts: a text inside a template, and one label word per class.

    Review: {text}\nSentiment:          positive -> " good", negative -> " bad"

The prompt and the text are tokenized together, as a direct call would do.  A token with characters of the text belongs
to the text; all others are special tokens, which are never removed and have no weight.  Truncation removes the end of
the text, never the prompt.  Special tokens written in the template ("<|user|>") are encoded as such; those in a text
are ordinary text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tokenizers import Encoding, Tokenizer

from steadygaze.core.errors import UserError
from steadygaze.core.ragged import TokenArray, TokenizedTexts, row_starts
from steadygaze.core.types import Label, Span
from steadygaze.core.untrusted_files import foreign_error
from steadygaze.data.subword_tokenizer import PieceTokenizer, spot
from steadygaze.data.text_tokenizer import UNABLE, chunks
from steadygaze.data.word_segmentation import word_breaks

FIELD = "{text}"
"""The position of the text in a prompt."""
USAGE = 'prompt="Review: {text}\\nSentiment:", label_words={"positive": " good", "negative": " bad"}'


@dataclass(frozen=True)
class Prompt:
    before: str
    after: str
    label_words: Mapping[Label, str]

    @property
    def facts(self) -> dict[str, str]:
        words = ", ".join(f"{label}: {word!r}" for label, word in self.label_words.items())
        return {"prompt": f"{self.before}{FIELD}{self.after}", "label words": words}


def read_prompt(template: Any, label_words: Any) -> Prompt | None:
    """The prompt of `load`; None without template and words."""
    if template is None and label_words is None:
        return None
    if template is None or label_words is None:
        raise UserError(f"a prompt needs label words, and label words need a prompt: {USAGE}")
    if not isinstance(template, str) or template.count(FIELD) != 1:
        raise UserError(f"prompt must be a string with {FIELD} once, found {template!r:.80}; example: {USAGE}")
    if not isinstance(label_words, Mapping) or len(label_words) < 2:
        raise UserError(f"label_words must be a dict with one word for each of two or more classes: {USAGE}")
    for label, word in label_words.items():
        if not isinstance(word, str) or not word:
            raise UserError(f"the label word of {label!r:.40} must be a string that is not empty, found {word!r:.40}")
    before, after = template.split(FIELD)
    return Prompt(before, after, dict(label_words))


def parse_label_words(options: Sequence[str]) -> dict[str, str] | None:
    """The label words of the command line.

    >>> parse_label_words(["positive= good", "negative= bad"])
    {'positive': ' good', 'negative': ' bad'}
    """
    for option in options:
        if "=" not in option:
            raise UserError(f"--label-word {option!r:.40} must be LABEL=WORD, as in --label-word positive=' good'")
    return {label: word for label, _, word in (option.partition("=") for option in options)} or None


class PromptTokenizer(PieceTokenizer):
    """Tokenizer of texts inside a prompt; `token_limit`: tokens in all."""

    def __init__(self, engine: Tokenizer, prompt: Prompt, *, token_limit: int, pad_id: int) -> None:
        special = [token.content for token in engine.get_added_tokens_decoder().values() if token.special]
        pattern = re.compile("|".join(map(re.escape, special)) or r"(?!)")
        ends = [match.end() for match in pattern.finditer(prompt.before)]
        first, last = pattern.search(prompt.after), ends[-1] if ends else 0
        edge = len(prompt.after) if first is None else first.start()
        lead = engine.encode(prompt.before[:last], add_special_tokens=False).ids
        trail = engine.encode(prompt.after[edge:], add_special_tokens=False).ids
        super().__init__(engine, max_length=token_limit, pad_id=pad_id)
        self._head, self._tail = prompt.before[last:], prompt.after[:edge]
        self._before, self._after = [*self._before, *lead], trail  # nothing follows the prompt
        ends = [match.end() for match in pattern.finditer(prompt.after)]
        context = prompt.after[ends[-1] :] if ends else f"{self._head}a{self._tail}"
        self.label_ids = self._label_ids(context, list(prompt.label_words.values()))
        """The tokens of each label word after the prompt."""
        self._token_limit = token_limit - max(map(len, self.label_ids)) + 1
        self.max_length = self._token_limit - int(self.place(["a"]).ragged.lengths[0]) + 1
        if self.max_length < 1:
            raise UserError(f"the prompt is too long: the model reads {token_limit} tokens and no text is left")

    def _label_ids(self, context: str, words: list[str]) -> list[list[int]]:
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
        rows = list(self._rows(texts))
        lengths = np.array([[len(part) for part in row.parts] for row in rows], np.int64).reshape(-1, 3)
        ids = np.array([token for row in rows for part in row.parts for token in part], np.int32)
        words = np.repeat(np.tile([False, True, False], len(rows)), lengths.ravel())
        cut = np.array([row.cut for row in rows], np.bool_)
        ragged = TokenArray(ids, words, row_starts(lengths.sum(1)), cut)
        return TokenizedTexts(ragged, [row.spans for row in rows], [row.groups for row in rows])

    def _rows(self, texts: Sequence[str]) -> Iterator["_PromptedText"]:
        for chunk in chunks(texts):
            strings = [self._prepare(text) for text in chunk]
            with foreign_error(UNABLE):
                prompts = [f"{self._head}{text}{self._tail}" for text in strings]
                encodings = self._engine.encode_batch(prompts, add_special_tokens=False)
            breaks = word_breaks(strings)
            for row, (text, encoding) in enumerate(zip(strings, encodings, strict=True)):
                yield self._row(text, encoding, breaks.get(row))

    def _row(self, text: str, encoding: Encoding, breaks: Any) -> "_PromptedText":
        start, end = len(self._head), len(self._head) + len(text)
        offsets = encoding.offsets
        inside = [i for i, (first, last) in enumerate(offsets) if first < end and last > start]
        empty = sum(last <= start for _, last in offsets)
        first, last = (inside[0], inside[-1] + 1) if inside else (empty, empty)
        before, after = [*self._before, *encoding.ids[:first]], [*encoding.ids[last:], *self._after]
        own = [(max(a, start) - start, min(b, end) - start) for a, b in offsets[first:last]]
        ids, spans, groups = spot(text, encoding.ids[first:last], own, encoding.word_ids[first:last], breaks)
        kept = max(0, self._token_limit - len(before) - len(after))
        return _PromptedText((before, ids[:kept], after), spans[:kept], groups[:kept], len(ids) > kept)


@dataclass(frozen=True)
class _PromptedText:
    parts: tuple[list[int], list[int], list[int]]
    """Ids before, of and after the text."""
    spans: list[Span]
    groups: Sequence[int]
    cut: bool
