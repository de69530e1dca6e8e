"""Images and labels in the idx format, gzipped or not: the way MNIST is published.

    two zeros, 8 for unsigned bytes, the number of sides; each side in four bytes, big end first; the bytes themselves

A folder holds train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte.
"""

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from steadygaze.arguments import checked, path
from steadygaze.errors import UserError
from steadygaze.foreign_files import open_file

BYTES = 8
"""The code of unsigned bytes."""
LARGEST = 1 << 32
"""Bytes of a file at most: a damaged header may claim any number."""
SPLITS = ("train", "t10k")


class ImageSets(NamedTuple):
    train: NDArray[np.uint8]  # (N,H,W)
    train_labels: NDArray[np.uint8]  # (N,)
    test: NDArray[np.uint8]
    test_labels: NDArray[np.uint8]


@checked(folder=path)
def load_images(folder: str | Path) -> ImageSets:
    """A folder, or the name of one in $STEADYGAZE_DATA."""
    place = _folder(Path(folder))
    found: list[NDArray[np.uint8]] = []
    for split in SPLITS:
        images = read_idx(_file(place, f"{split}-images-idx3-ubyte"), 3)
        labels = read_idx(_file(place, f"{split}-labels-idx1-ubyte"), 1)
        if len(images) != len(labels):
            raise UserError(f"{place} holds {len(images)} {split} images and {len(labels)} labels; one each is needed")
        found += [images, labels]
    return ImageSets(*found)


def read_idx(file: Path, sides: int) -> NDArray[np.uint8]:
    """An array of so many sides."""
    try:
        with open_file(file) as opened, gzip.open(opened) if file.suffix == ".gz" else opened as stream:
            return _read(cast(BinaryIO, stream), file, sides)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{file} cannot be read, it is damaged or cut short: {error}") from None


def _read(stream: BinaryIO, file: Path, sides: int) -> NDArray[np.uint8]:
    header = stream.read(4 + 4 * sides)
    if header[:4] != bytes([0, 0, BYTES, sides]) or len(header) < 4 + 4 * sides:
        wanted = "images" if sides == 3 else "labels"
        raise UserError(f"{file} is no idx file of {wanted}: it begins with {header[:4].hex(' ') or 'nothing'}")
    shape = struct.unpack(f">{sides}I", header[4:])
    many = math.prod(shape)
    if not 0 < many <= LARGEST:
        raise UserError(f"{file} is damaged: it claims to hold {' × '.join(map(str, shape))} bytes")
    values = stream.read(many + 1)
    if len(values) != many:
        found = "more" if len(values) > many else f"{len(values):,}"
        raise UserError(f"{file} is damaged: its header speaks of {many:,} bytes, found {found}")
    return np.frombuffer(values, np.uint8).reshape(shape)


def _folder(folder: Path) -> Path:
    base = os.environ.get("STEADYGAZE_DATA")
    if not folder.is_dir() and base and (Path(base) / folder).is_dir():
        return Path(base) / folder
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; $STEADYGAZE_DATA may name the folder it stands in")
    return folder


def _file(folder: Path, name: str) -> Path:
    for file in (folder / f"{name}.gz", folder / name):
        if file.is_file():
            return file
    raise UserError(f"{folder} has no {name}.gz")
