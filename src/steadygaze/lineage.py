"""Where a model comes from: which finished models it may be held against, and all that determines its weights."""

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from steadygaze.description import Description
from steadygaze.errors import UserError
from steadygaze.foreign_files import open_file
from steadygaze.order import Order
from steadygaze.store import Stored
from steadygaze.tokens.tokenizer import TextTokenizer
from steadygaze.train.run import RESULT

TRAINED_WITH = ("dropout", "train_vectors")
"""Of an architecture: what matters in training alone, not for what a model says."""


def named(order: Order, given: Sequence[Stored]) -> dict[str, Stored]:
    """The models that were given, by the names under which the technique asks for them."""
    wanted = list(dict.fromkeys(s.model for s in order.technique.stages(order.seed) if s.model != RESULT))
    if given and len(given) != len(wanted):
        takes = f"takes {len(wanted)}" if wanted else "takes none"
        raise UserError(f"{order.technique_name} {takes} as reference or teachers, found {len(given)}")
    return dict(zip(wanted, given, strict=False))


def refuse_stranger(name: str, one: Stored, here: Description, tokenizer: TextTokenizer) -> None:
    """A reference must read the same tokens and know the same labels, or what it says cannot be held against."""
    there = one.description
    if there.classes != here.classes:
        raise UserError(f"the {name} given knows the labels {there.classes!r:.80}, the data {here.classes!r:.80}")
    if one.tokenizer.to_json() != tokenizer.to_json():
        raise UserError(
            f"the {name} given has another vocabulary ({one.tokenizer.size:,} entries, here {tokenizer.size:,}): "
            "train both on the same texts, with the same min_df and max_length"
        )
    theirs, ours = _shape(there), _shape(here)
    for what in ours:
        if theirs[what] != ours[what]:
            raise UserError(f"the {name} given has another {what}: {theirs[what]!r:.80}, here {ours[what]!r:.80}")


def _shape(of: Description) -> dict[str, Any]:
    architecture = dataclasses.asdict(of.architecture)
    kept = {key: value for key, value in architecture.items() if key not in TRAINED_WITH}
    return {"encoder": of.encoder, "pair": of.pair, "network": of.network, **kept}


def identity(
    description: Description, device: torch.device, vectors: Tensor | None, files: Sequence[Path]
) -> dict[str, Any]:
    """All that determines the weights; of files what is in them, not where they lie."""
    return {
        **dataclasses.asdict(description),
        "device": device.type,
        "torch": torch.__version__,
        "vectors": None if vectors is None else hashlib.sha256(vectors.numpy().tobytes()).hexdigest(),
        "files": [_digest(file) for file in files],
    }


def apart(whole: dict[str, Any]) -> dict[str, Any]:
    """What is the same for every stage of a technique of its own: not the technique that asks for it, nor its seed."""
    own = ("technique", "technique_settings", "seed", "given", "history", "kept")
    reading = {key: value for key, value in whole["reading"].items() if key != "synonyms"}
    return {key: value for key, value in whole.items() if key not in own} | {"reading": reading}


def _digest(file: Path) -> str:
    with open_file(file) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
