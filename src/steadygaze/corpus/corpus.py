"""Corpus: named splits of examples, what was left out of them, and a fingerprint of what is in them."""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property

from steadygaze.errors import UserError
from steadygaze.types import Example, Label


@dataclass(frozen=True)
class Corpus:
    """What a model is trained on or examined with."""

    name: str
    splits: dict[str, list[Example]]
    """"train", "validation", "test", where they exist; a file of the user's own is all "train"."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Why something was left out -> how often, over all splits."""
    source: str = "file"
    """Where it came from: "generated", "disk", "hub" or "file"."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what a model can see: split names and, in order, every text, question, label and evidence.

        Equal content has an equal fingerprint wherever it came from; a hub copy that differs from a disk copy shows it.
        """
        digest = hashlib.sha256()
        for name in sorted(self.splits):
            digest.update(json.dumps([name, len(self.splits[name])]).encode())
            for example in self.splits[name]:
                content = (example.text, example.question, example.label, example.evidence)
                digest.update(json.dumps(content).encode())
        return digest.hexdigest()

    @property
    def label_names(self) -> list[Label]:
        """Every label that occurs, sorted."""
        found = {example.label for split in self.splits.values() for example in split if example.label is not None}
        return sorted(found, key=lambda label: (isinstance(label, str), label))

    @property
    def sizes(self) -> dict[str, int]:
        """Split -> number of examples."""
        return {name: len(examples) for name, examples in self.splits.items()}

    def choose(self, split: str | None = None) -> str:
        """The split that a model is examined with: the one named, else test, else the only one there is."""
        name = split or ("test" if "test" in self.splits or len(self.splits) > 1 else next(iter(self.splits)))
        if name not in self.splits:
            raise UserError(f"{self.name} has no split {name!r}, only {', '.join(self.splits)}: name one with --split")
        return name
