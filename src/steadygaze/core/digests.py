"""SHA-256 digests, in hexadecimal."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from steadygaze.core.untrusted_files import open_file


def digest_json(values: Iterable[object], *, sort_keys: bool = False) -> str:
    """Digest of the JSON of each value, concatenated."""
    sha = hashlib.sha256()
    for value in values:
        sha.update(json.dumps(value, sort_keys=sort_keys).encode())
    return sha.hexdigest()


def digest_file(path: str | Path) -> str:
    """Digest of the content of a file."""
    with open_file(path) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def digest_values(*values: object) -> str:
    """Digest of texts, numbers and arrays, in this order."""
    sha = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray):
            sha.update(f"{value.dtype.str}{value.shape}".encode())
            sha.update(np.ascontiguousarray(value).tobytes())
        else:
            sha.update(f"{value!r};".encode())
    return sha.hexdigest()
