"""Tokens as a model of the transformers library wants them: special tokens where its own tokenizer puts them.

The specials between a text and its question differ ([SEP]; </s></s>; none) and are read off the tokenizer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

from steadygaze.tokens.pieces import PieceTokenizer
from steadygaze.tokens.ragged import Placed, Ragged


@dataclass(frozen=True)
class Template:
    """[CLS] text [SEP] question [SEP], or whatever a tokenizer has."""

    before: list[int]
    between: list[int]
    after: list[int]
    question_type: int
    """The token type of a question; a text's is 0."""


class Ended(PieceTokenizer):
    """With these special tokens before and after each text."""

    def __init__(self, engine: Tokenizer, before: list[int], after: list[int], *, max_length: int, pad_id: int) -> None:
        super().__init__(engine, max_length=max_length, pad_id=pad_id)
        self._before, self._after = before, after


class Paired(Ended):
    """For texts that are followed by a question."""

    def __init__(self, engine: Tokenizer, template: Template, *, max_length: int, pad_id: int) -> None:
        super().__init__(engine, template.before, template.between, max_length=max_length, pad_id=pad_id)
        self._question = Ended(engine, [], template.after, max_length=max_length, pad_id=pad_id)

    def encode(self, texts: Sequence[str], *, question: bool = False) -> Ragged:
        return self._question.encode(texts) if question else super().encode(texts)

    def place(self, texts: Sequence[str], *, question: bool = False) -> Placed:
        return self._question.place(texts) if question else super().place(texts)


def single(engine: Tokenizer, *, most: int, pad_id: int) -> PieceTokenizer:
    """At most so many tokens in all, special ones included."""
    return PieceTokenizer(engine, max_length=most - engine.num_special_tokens_to_add(False), pad_id=pad_id)


def paired(engine: Tokenizer, template: Template, *, most: int, pad_id: int) -> Paired | None:
    """Half of the room for the text, half for the question; None where that is none."""
    half = (most - len(template.before) - len(template.between) - len(template.after)) // 2
    return Paired(engine, template, max_length=half, pad_id=pad_id) if half > 0 else None


def template(engine: Tokenizer) -> Template | None:
    """Read off a pair of one letter each; None where the tokenizer makes nothing of that."""
    probe = engine.encode("a", "a")
    part = np.array([-1 if part is None else part for part in probe.sequence_ids])
    text, question = np.flatnonzero(part == 0), np.flatnonzero(part == 1)
    if not len(text) or not len(question):
        return None
    before, between = probe.ids[: text[0]], probe.ids[text[-1] + 1 : question[0]]
    return Template(before, between, probe.ids[question[-1] + 1 :], int(probe.type_ids[question[0]]))
