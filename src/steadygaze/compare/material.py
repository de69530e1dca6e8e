"""The texts of a comparison: what every model is trained on, and what every model is audited with."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steadygaze.audit.run import drawn, fingerprint
from steadygaze.compare.order import Order
from steadygaze.corpus import Corpus, load_corpus
from steadygaze.errors import UserError
from steadygaze.types import Example, Label

KEPT_OUT = 5
"""Of every class one text in so many is kept out of training, where no split is for the audit."""
HELD_OUT = "held-out"
"""What those are called."""


@dataclass(frozen=True)
class Material:
    corpus: Corpus
    """What is trained on; nothing of what is audited is in it, unless it chooses the epoch."""
    split: str
    """The name of what is audited."""
    examples: list[Example]
    """What is audited."""
    data: str
    """SHA-256 of everything that was read."""

    @property
    def known(self) -> dict[str, str]:
        """What every number depends on."""
        return {"corpus": self.corpus.name, "split": self.split, "data": fingerprint(self.examples)[:12]}


def material(order: Order, data_dir: Path | None = None) -> Material:
    corpus = load_corpus(
        order.data,
        text=order.text,
        label=order.label,
        evidence=order.evidence,
        data_dir=data_dir,
        drop_empty=order.drop_empty,
    )
    if "train" not in corpus.splits:
        raise UserError(f"{corpus.name} has no split to train on, only {', '.join(corpus.splits)}")
    splits: dict[str, list[Example]] = {
        name: corpus.splits[name] for name in ("train", "validation") if name in corpus.splits
    }
    split = order.split or ("test" if "test" in corpus.splits else HELD_OUT)
    if split == HELD_OUT and split not in corpus.splits:
        splits["train"], audited = kept_out(splits["train"])
    else:
        audited = _named(corpus, split)
    trained = Corpus(corpus.name, splits, corpus.dropped, corpus.source)
    return Material(trained, split, drawn(audited, order.most, order.seed), corpus.fingerprint)


def kept_out(examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """(what is trained on, what is not): by a seed that is always the same, each class in its share."""
    seen: dict[Label | None, int] = defaultdict(int)
    out = set()
    for row in np.random.default_rng(0).permutation(len(examples)).tolist():
        label = examples[row].label
        seen[label] += 1
        if seen[label] % KEPT_OUT == 0:
            out.add(row)
    if not out:
        raise UserError(
            f"there is no split to audit with, and {len(examples)} texts are too few to keep any out of training: "
            "give a folder with a test file"
        )
    return [x for i, x in enumerate(examples) if i not in out], [x for i, x in enumerate(examples) if i in out]


def _named(corpus: Corpus, split: str) -> list[Example]:
    corpus.choose(split)
    if split == "train":
        raise UserError("models are trained on the split 'train': they cannot be audited with it; leave out --split")
    if not corpus.splits[split]:
        raise UserError(f"the split {split!r} of {corpus.name} has no texts to audit with")
    return corpus.splits[split]
