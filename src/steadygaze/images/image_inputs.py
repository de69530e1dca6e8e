"""Images and labels in the idx format, gzipped or not: the way MNIST is published.

    two zeros, 8 for unsigned bytes, the number of sides; each side in four bytes, big end first; the bytes themselves

A folder holds train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte.

Images as they come from a user, checked: arrays of (N,H,W) or (N,H,W,C), or a list of images of one size.

Whole numbers from 0 to 255 (uint8), booleans, or floats from 0 to 1; inside, floats from 0 to 1 with colours first.
"""

import gzip
import math
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.arguments import path, validated
from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import open_file
from steadygaze.images.patch_networks import Shape

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


@validated(folder=path)
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


MOST_COLOURS = 4
WANTED = "images are arrays of shape (N, H, W), or (N, H, W, C) with 1 to 4 colours last"


@dataclass(frozen=True, slots=True)
class Images:
    pixels: Tensor  # (N,C,H,W) float, between 0 and 1
    flat: bool = True
    """Whether they were given without an axis of colours."""
    whole: bool = True
    """Whether they were given as whole numbers from 0 to 255."""

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def shape(self) -> Shape:
        _, colours, height, width = self.pixels.shape
        return colours, height, width

    def of(self, pixels: Tensor) -> "Images":
        """Other pixels of the same kind."""
        return replace(self, pixels=pixels)

    def as_given(self) -> NDArray[Any]:
        """As their user would give them: (N,H,W) or (N,H,W,C)."""
        last = self.pixels.detach().cpu().permute(0, 2, 3, 1).numpy()
        values = last[..., 0] if self.flat else last
        return np.rint(values * 255).astype(np.uint8) if self.whole else np.ascontiguousarray(values)


def read_images(given: Any) -> Images:
    """All that is wrong with them is said in one sentence."""
    values = _array(given)
    flat = values.ndim == 3
    if not flat and (values.ndim != 4 or values.shape[-1] > MOST_COLOURS):
        one = ": one image is put in a list, [image]" if values.ndim == 2 else ""
        raise UserError(f"{WANTED}; found shape {values.shape}{one}")
    if 0 in values.shape:
        raise UserError(f"there are no images: found shape {values.shape}")
    whole = values.dtype == np.uint8
    pixels = torch.from_numpy(np.ascontiguousarray(_scaled(values)))
    return Images(pixels.unsqueeze(1) if flat else pixels.permute(0, 3, 1, 2).contiguous(), flat, whole)


def match_shape(images: Images, shape: Shape, whose: str, whole: bool | None = None) -> Images:
    """Refused where they are not of the size that somebody knows, or not given in whole numbers or floats as theirs."""
    if images.shape != shape:
        found, known = (f"{h} × {w} pixels with {c} colours" for c, h, w in (images.shape, shape))
        raise UserError(f"{whose} knows images of {known}, found images of {found}")
    if whole not in (None, images.whole):
        kinds = "floats from 0 to 1", "whole numbers from 0 to 255"
        raise UserError(
            f"{whose} has pixels in {kinds[not images.whole]}, found {kinds[images.whole]}: give both alike"
        )
    return images


def _array(given: Any) -> NDArray[Any]:
    if isinstance(given, Tensor):
        given = given.detach().cpu().numpy()
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__len__"):
        raise UserError(f"{WANTED}, or a list of images of one size; found {given!r:.80}")
    if isinstance(given, np.ndarray) and given.dtype != object:
        return given
    try:
        several = [np.asarray(image) for image in given]
    except (TypeError, ValueError):
        raise UserError(f"{WANTED}; found a list of which some are no arrays of numbers") from None
    sizes = sorted({image.shape for image in several})
    if len(sizes) > 1:
        first = next(i for i, image in enumerate(several) if image.shape != several[0].shape)
        raise UserError(
            f"images must all be of one size: images[0] is {several[0].shape}, images[{first}] is "
            f"{several[first].shape}; bring them to one size first"
        )
    return np.stack(several) if several else np.zeros((0, 0, 0))


def _scaled(values: NDArray[Any]) -> NDArray[np.float32]:
    """From 0 to 1."""
    if values.dtype == np.uint8:
        return values.astype(np.float32) / np.float32(255)
    if values.dtype == np.bool_:
        return values.astype(np.float32)
    if not np.issubdtype(values.dtype, np.floating):
        raise UserError(f"pixels are whole numbers of type uint8, or floats from 0 to 1; found type {values.dtype}")
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high <= 1):
        raise UserError(f"pixels that are floats must lie between 0 and 1, found {low:g} to {high:g}: scale them first")
    return values.astype(np.float32)
