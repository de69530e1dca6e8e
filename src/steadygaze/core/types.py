"""The nouns: what flows from room to room.  All frozen, all checking their own shapes.

    B examples   T tokens   Q tokens of the question   H hidden   C classes

A mask is True on a real token.  There are two, because a start token is real to the encoder and nothing to read for a
person: `present` is True on everything but padding (the encoder sees it); `mask` on the words attention may look at.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the text rooms (corpus, tokens) use Example without loading torch
    from torch import Tensor

Span = tuple[int, int]
"""Characters [start, end) of a text."""
Picked = tuple[int, int, float]
"""A span that was selected, and with what probability."""

Label = str | int
Terms = dict[str, "Tensor"]
"""What a technique minimises: one number per example (B,), by name.  Only the training loop takes means."""


@dataclass(frozen=True, slots=True)
class Example:
    """One text, or a text with a question about it, and what is known of it."""

    text: str
    label: Label | None = None
    question: str | None = None
    rationales: tuple[Span, ...] | None = None
    """Characters of `text` that a person (or the generator) marked as the reason.  None: nobody was asked."""
    sentences: tuple[Span, ...] | None = None
    """Characters of each sentence of `text`, where they are known."""

    def __post_init__(self) -> None:
        if self.rationales is None and self.sentences is None:
            return
        for name in ("rationales", "sentences"):
            for start, end in getattr(self, name) or ():
                if not 0 <= start < end <= len(self.text):
                    raise ValueError(
                        f"{name} span ({start}, {end}) does not lie in a text of {len(self.text)} characters"
                    )


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts as padded ids."""

    ids: "Tensor"  # (B,T) long
    present: "Tensor"  # (B,T) bool
    mask: "Tensor"  # (B,T) bool; mask implies present
    index: "Tensor"  # (B,) long: the row of each example in its split, so that a technique can look up what it cached
    label: "Tensor | None" = None  # (B,) long
    weight: "Tensor | None" = None  # (B,) float
    question_ids: "Tensor | None" = None  # (B,Q) long
    question_present: "Tensor | None" = None  # (B,Q) bool
    question_mask: "Tensor | None" = None  # (B,Q) bool: words of the question; None: explainers leave it as it is
    word_starts: "Tensor | None" = None  # (B,T) bool: first token of each unit; None: every word token is a unit
    question_word_starts: "Tensor | None" = None  # (B,Q) bool

    def __post_init__(self) -> None:
        _same_shape(self, "ids", "present", "mask")
        _same_shape(self, "question_ids", "question_present")
        for name, like in (
            ("word_starts", "ids"),
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
        """(B,) the labels, where there must be some."""
        if self.label is None:
            raise ValueError("this batch has no labels")
        return self.label

    def to(self, device: Any) -> "Batch":
        """The same batch on another device."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=True))

    def pin(self) -> "Batch":
        """The same batch in page-locked memory, so that the copy to a GPU does not wait."""
        return self._map(lambda tensor: tensor.pin_memory())

    def _map(self, change: "Callable[[Tensor], Tensor]") -> "Batch":
        values = {name: getattr(self, name) for name in self.__slots__}
        return replace(self, **{name: change(value) for name, value in values.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Encoded:
    """What the encoder made of a batch: all that the later seams need."""

    hidden: "Tensor"  # (B,T,H)
    question: "Tensor | None" = None  # (B,H): the question's last state


@dataclass(frozen=True, slots=True)
class Forward:
    """One pass through the four seams."""

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
