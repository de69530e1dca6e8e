"""Shared data types.  All are frozen and check their shapes.

    B examples   T tokens   Q tokens of the question   H hidden   C classes

A mask is True on a real token.  The encoder reads the tokens of `present`, which excludes padding.  Attention may
weight the words of `mask`, which excludes special tokens as well.
"""

from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

if TYPE_CHECKING:  # Example must not import torch
    from torch import Tensor

T = TypeVar("T")
Span = tuple[int, int]
"""Characters [start, end) of a text."""
Sentences = Sequence[tuple[Span, ...] | None]
"""Per text: the given sentences; None: not given."""
Picked = tuple[int, int, float]
"""A selected span and its probability."""

Label = str | int
Task = Literal["classification", "multi-label", "regression"]
"""classification: one class per text.  multi-label: any number of labels.  regression: one number per output."""
Unit = Literal["probability", "logit", "attention", "relative", "selection"]
"""The quantity that the weights of an explanation measure; relative: no scale of their own."""
Removal = Literal["delete", "pad", "zero"]
"""Word removal.  delete: the text is shorter.  pad: the ids become padding.  zero: also their embeddings become 0."""
OnProgress = Callable[[str, int, int], None]
"""Progress callback: the task, the number of finished items and the total."""
Terms = dict[str, "Tensor"]
"""Loss terms of a technique: one number per example (B,), by name.  The training loop averages them."""


def no_progress(task: str, done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class Example:
    """One text, or a text with a question, and its annotations."""

    text: str
    label: Label | None = None
    question: str | None = None
    rationales: tuple[Span, ...] | None = None
    """Characters of `text` that an annotator marked as the rationale.  None: not annotated."""
    sentences: tuple[Span, ...] | None = None
    """Characters of each sentence of `text`, if known: the units of models that select sentences.  None: a splitter
    finds them."""
    graded: tuple[Picked, ...] | None = None
    """Words with a graded mark above 0: start, end and mark.  None: the rationale is not graded."""

    def __post_init__(self) -> None:
        if self.rationales is None and self.sentences is None:
            return
        for name in ("rationales", "sentences"):
            for start, end in getattr(self, name) or ():
                if not 0 <= start < end <= len(self.text):
                    raise ValueError(
                        f"{name} span ({start}, {end}) does not lie in a text of {len(self.text)} characters"
                    )


def texts_of(examples: Sequence[Example]) -> list[Any]:
    """The texts of a corpus as X: strings, or pairs (text, question)."""
    return [e.text if e.question is None else (e.text, e.question) for e in examples]


def inputs_of(examples: Sequence[Example]) -> list[Any]:
    """The same, with the sentences where they are given: then X is the examples."""
    return texts_of(examples) if all(e.sentences is None for e in examples) else list(examples)


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts as padded ids."""

    ids: "Tensor"  # (B,T) long
    present: "Tensor"  # (B,T) bool
    mask: "Tensor"  # (B,T) bool; mask implies present
    index: "Tensor"  # (B,) long: the row of each example in its split
    label: "Tensor | None" = None  # (B,) long
    weight: "Tensor | None" = None  # (B,) float
    question_ids: "Tensor | None" = None  # (B,Q) long
    question_present: "Tensor | None" = None  # (B,Q) bool
    question_mask: "Tensor | None" = None  # (B,Q) bool: words of the question; None: explainers do not change it
    word_starts: "Tensor | None" = None  # (B,T) bool: first token of each unit; None: every word token is a unit
    question_word_starts: "Tensor | None" = None  # (B,Q) bool
    sentences: "Tensor | None" = None  # (B,T) long: the given sentence of each token, ascending; −1: not given
    word_keys: "Tensor | None" = None  # (V,) long: a permanent number of each id; None: the ids are permanent

    def __post_init__(self) -> None:
        _same_shape(self, "ids", "present", "mask")
        _same_shape(self, "question_ids", "question_present")
        for name, like in (
            ("word_starts", "ids"),
            ("sentences", "ids"),
            ("question_mask", "question_ids"),
            ("question_word_starts", "question_ids"),
        ):
            if getattr(self, name) is not None:
                _same_shape(self, name, like)
        for name in ("index", "label", "weight"):
            value = getattr(self, name)
            if value is not None and value.shape != self.ids.shape[:1]:
                raise ValueError(f"Batch.{name} has shape {tuple(value.shape)}, expected {tuple(self.ids.shape[:1])}")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def gold(self) -> "Tensor":
        """(B,) the labels; raises without labels."""
        if self.label is None:
            raise ValueError("this batch has no labels")
        return self.label

    @property
    def permanent_ids(self) -> "Tensor":
        """(B,T) long: the ids, or numbers of their words that do not depend on other texts."""
        if self.word_keys is None:
            return self.ids
        return self.word_keys[self.ids.masked_fill(~self.present, 0)]

    def question_as_text(self) -> "Batch | None":
        """The questions as the texts of a batch, with the same rows; None without questions."""
        if self.question_ids is None or self.question_present is None:
            return None
        mask = self.question_present if self.question_mask is None else self.question_mask
        own = {"ids": self.question_ids, "present": self.question_present, "mask": mask}
        none = dict.fromkeys(("question_ids", "question_present", "question_mask", "question_word_starts", "sentences"))
        return replace(self, **own, word_starts=self.question_word_starts, **none)  # type: ignore[arg-type]

    def to(self, device: Any) -> "Batch":
        """The same batch on another device."""
        values = {name: getattr(self, name) for name in self.__slots__}
        moved = {k: value.to(device, non_blocking=True) for k, value in values.items() if value is not None}
        return replace(self, **moved)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Output of the encoder for a batch."""

    hidden: "Tensor"  # (B,T,H)
    question: "Tensor | None" = None  # (B,H): the question's last state


@dataclass(frozen=True, slots=True)
class Forward:
    """Output of a forward pass through the four extension points."""

    encoded: Encoded
    scores: "Tensor"  # (B,T) before the attention map
    weights: "Tensor"  # (B,T) after it: exactly 0 outside the mask
    logits: "Tensor"  # (B,C)

    def __post_init__(self) -> None:
        _same_shape(self, "scores", "weights")


def _same_shape(record: object, *names: str) -> None:
    shapes = {name: getattr(getattr(record, name), "shape", None) for name in names}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"{type(record).__name__}: shapes differ: {shapes}")


class Registry(UserDict[str, T]):
    """A dict whose values may be given as "module:name" and are imported on first use.

    >>> registry: Registry = Registry.of({"floor": "math:floor"})
    >>> registry["floor"](2.5), "ceil" in registry
    (2, False)
    """

    @classmethod
    def of(cls, references: Mapping[str, str]) -> Self:
        """A registry of "module:name" by name."""
        registry = cls()
        registry.data.update(references)  # type: ignore[arg-type]
        return registry

    def __getitem__(self, name: str) -> T:
        value = super().__getitem__(name)
        if isinstance(value, str):
            value = self.data[name] = resolve_name(value)
        return value
