"""Hashes of the training texts, which count the training texts among audited or evaluated texts.

A hash has 8 bytes: BLAKE2b of the normalized text (NFKC, folded case, single spaces), keyed with the fingerprint of the
training data.  Texts for validation count as training texts, because they select the epoch.

Whoever has the model folder and a text can test whether the text was used in training.  The setting text_hashes=False
leaves the hashes out; a folder without the file is complete.
"""

import unicodedata
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from steadygaze.core.errors import UserError
from steadygaze.core.tensor_files import read_layout, read_tensors

SIZE = 8
"""Bytes of a hash: a billion pairs of different texts have an equal pair with probability 5e-11."""
TENSOR = "hashes"
Hashes = NDArray[np.int64]


def hash_texts(inputs: Iterable[Any], key: str) -> Hashes:
    """Hashes of texts or pairs (text, question).  N -> (N,)"""
    secret = key.encode()[:64]
    digests = (blake2b(_normalized(item), digest_size=SIZE, key=secret).digest() for item in inputs)
    return np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64)


def _normalized(item: Any) -> bytes:
    parts = [item] if isinstance(item, str) else item
    words = (" ".join(unicodedata.normalize("NFKC", part).casefold().split()) for part in parts)
    return "\0".join(words).encode(errors="surrogatepass")


def read_hashes(file: Path) -> Hashes | None:
    """The hashes of a model folder; None: it has none."""
    if not file.exists():
        return None
    stored = read_layout(file)
    if stored.keys() != {TENSOR} or len(stored[TENSOR][0]) != 1 or stored[TENSOR][1] != torch.int64:
        raise UserError(f"{file} is damaged: it must have one list of whole numbers, {TENSOR!r}")
    hashes: Hashes = read_tensors(file)[TENSOR].numpy()
    return hashes
