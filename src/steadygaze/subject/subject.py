"""Subject: a model under examination, with what is needed to put texts to it, whoever made it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from steadygaze.batch import Data, placed_data
from steadygaze.corpus.check import check_labels
from steadygaze.errors import MOST_NAMES, UserError
from steadygaze.reader import Reader
from steadygaze.subject.labels import Unmatched, positions
from steadygaze.tokens.ragged import Placed
from steadygaze.tokens.tokenizer import Tokens as Tokens
from steadygaze.types import Label

KINDS = ("single texts", "pairs (text, question)")


@dataclass(frozen=True)
class Subject:
    name: str
    """As reports call it: a folder's name, never a path."""
    kind: str
    """In plain words: what sort of model it is."""
    model: Reader
    tokens: Tokens
    classes: Sequence[Label]
    pair: bool | None
    """Whether it reads pairs; None: whichever it is given, see `reading`."""
    fingerprint: str
    """SHA-256 of what it is made of; of a black box, which cannot be looked into, ''."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What else is known of it, for the report."""
    pairs: Tokens | None = None
    """How it reads a text that has a question, where it reads a text alone otherwise."""

    def reading(self, pair: bool) -> "Subject":
        """The same, for single texts or for pairs."""
        if self.pair is None:
            return replace(self, pair=pair, tokens=self.pairs if pair and self.pairs is not None else self.tokens)
        if self.pair != pair:
            raise UserError(f"{self.name} reads {KINDS[self.pair]}, found {KINDS[pair]}")
        return self

    def named(self, classes: Sequence[Label] | None) -> "Subject":
        """The same, its classes called so; None: as they are."""
        names = check_labels(self.classes if classes is None else classes, where="classes[{}]".format)
        if len(names) != len(self.classes):
            raise UserError(f"{self.name} has {len(self.classes)} classes, but {len(names)} names were given for them")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise UserError(f"{self.name} has two classes called {twice!r}; classes= names them, in their order")
        refuse_reordered(self.classes, names, self.name)
        return replace(self, classes=names)

    def codes(self, labels: Sequence[Label]) -> list[int]:
        """The position of each label among the classes, see `positions`."""
        found = positions(check_labels(labels, minimum_classes=1), self.classes)
        if isinstance(found, Unmatched):
            raise self._stranger(found.label)
        return found

    def alike(self, other: "Subject") -> bool:
        """Whether the two could differ by their seed alone: the same classes, and texts are the same tokens to both."""
        outside = not self.fingerprint and not other.fingerprint  # the words of the texts are everybody's
        same = outside or other.tokens.vocabulary == self.tokens.vocabulary
        return same and list(other.classes) == list(self.classes)

    def data(self, placed: Placed, questions: Sequence[str] | None) -> Data:
        """Texts as this model reads them, all pieces of a word one unit."""
        asked = None if questions is None else self.tokens.place(questions, question=True)
        return placed_data(placed, asked, whole_words=self.tokens.kind == "pieces")

    def _stranger(self, label: Label) -> UserError:
        known = ", ".join(map(repr, self.classes[:MOST_NAMES])) + (" …" if len(self.classes) > MOST_NAMES else "")
        return UserError(
            f"the data have the label {label!r}, which is not a class of {self.name}; its classes are {known}.  "
            "If your data name the same classes differently, give your names in that order: --classes A,B (classes=)"
        )


def refuse_reordered(own: Sequence[Label], names: Sequence[Label], whose: str) -> None:
    """A model's own names in another order are no new names: they would say the one class and mean the other."""
    given, known = list(map(str, names)), list(map(str, own))  # the command line gives 1 as "1"
    if given != known and set(given) == set(known):
        raise UserError(
            f"classes= has the classes of {whose} in another order than its own, {', '.join(map(str, own)):.200}: "
            f"leave it out, or give them in that order"
        )
