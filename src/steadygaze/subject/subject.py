"""Subject: a model under examination, with what is needed to put texts to it, whoever made it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from steadygaze.batch import Data
from steadygaze.reader import Reader
from steadygaze.tokens.ragged import Placed, Ragged
from steadygaze.tokens.tokenizer import Kind
from steadygaze.types import Label


class Tokens(Protocol):
    """Texts -> ids.  Ours, a Hugging Face model's, or the words of the texts themselves for a black box."""

    @property
    def kind(self) -> Kind: ...

    @property
    def vocabulary(self) -> list[str]:
        """The token of each id."""

    def encode(self, texts: Sequence[str], *, question: bool = False) -> Ragged: ...

    def place(self, texts: Sequence[str]) -> Placed: ...


@dataclass(frozen=True)
class Subject:
    name: str
    """As reports call it: a folder's name, never a path."""
    kind: str
    """In plain words: what sort of model it is."""
    model: Reader
    tokens: Tokens
    classes: Sequence[Label]
    pair: bool
    fingerprint: str
    """SHA-256 of what it is made of; of a black box, which cannot be looked into, ''."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What else is known of it, for the report."""

    def data(self, placed: Placed, questions: Sequence[str] | None) -> Data:
        """Texts as this model reads them."""
        return Data(placed.ragged, None if questions is None else self.tokens.encode(questions, question=True))
