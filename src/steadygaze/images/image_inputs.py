"""Read images: from arrays, and from files in the idx format of MNIST, gzipped or not.

    idx: two zeros, 8 for unsigned bytes, number of dimensions; each dimension in four bytes, big-endian; the data

A folder has train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte.

Arrays have the shape (N,H,W) or (N,H,W,C), with whole numbers from 0 to 255 (uint8), booleans, or floats from 0 to 1.
Internally they are floats from 0 to 1, channels first.
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
"""Type code of unsigned bytes."""
LARGEST = 1 << 32
"""Most bytes of a file: a damaged header may claim any number."""
SPLITS = ("train", "t10k")


class ImageSets(NamedTuple):
    train: NDArray[np.uint8]  # (N,H,W)
    train_labels: NDArray[np.uint8]  # (N,)
    test: NDArray[np.uint8]
    test_labels: NDArray[np.uint8]


@validated(folder=path)
def load_images(folder: str | Path) -> ImageSets:
    """Read images and labels in the IDX format of MNIST.

    Parameters
    ----------
    folder : str or Path
        A folder with the four files of MNIST, also compressed (.gz), or a folder of this name in $STEADYGAZE_DATA.

    Returns
    -------
    ImageSets
        Arrays `train`, `train_labels`, `test` and `test_labels`.

    Examples
    --------
    >>> import steadygaze as sg
    >>> images = sg.load_images(folder)  # doctest: +SKIP
    >>> images.train.shape, images.test_labels.shape  # doctest: +SKIP
    ((60000, 28, 28), (10000,))
    """
    source = _folder(Path(folder))
    arrays: list[NDArray[np.uint8]] = []
    for split in SPLITS:
        images = read_idx(_file(source, f"{split}-images-idx3-ubyte"), 3)
        labels = read_idx(_file(source, f"{split}-labels-idx1-ubyte"), 1)
        if len(images) != len(labels):
            counts = f"{len(images)} {split} images and {len(labels)} labels"
            raise UserError(f"{source} has {counts}; each image needs one label")
        arrays += [images, labels]
    return ImageSets(*arrays)


def read_idx(file: Path, sides: int) -> NDArray[np.uint8]:
    """Read an array with this number of dimensions."""
    try:
        with open_file(file) as opened, gzip.open(opened) if file.suffix == ".gz" else opened as stream:
            return _read(cast(BinaryIO, stream), file, sides)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{file} is unreadable, damaged or truncated: {error}") from None


def _read(stream: BinaryIO, file: Path, sides: int) -> NDArray[np.uint8]:
    header = stream.read(4 + 4 * sides)
    if header[:4] != bytes([0, 0, BYTES, sides]) or len(header) < 4 + 4 * sides:
        kind = "images" if sides == 3 else "labels"
        raise UserError(f"{file} is not an idx file of {kind}: it begins with {header[:4].hex(' ') or 'nothing'}")
    shape = struct.unpack(f">{sides}I", header[4:])
    many = math.prod(shape)
    if not 0 < many <= LARGEST:
        raise UserError(f"{file} is damaged: its header claims {' × '.join(map(str, shape))} bytes")
    values = stream.read(many + 1)
    if len(values) != many:
        size = "more" if len(values) > many else f"{len(values):,}"
        raise UserError(f"{file} is damaged: its header claims {many:,} bytes, found {size}")
    return np.frombuffer(values, np.uint8).reshape(shape)


def _folder(folder: Path) -> Path:
    base = os.environ.get("STEADYGAZE_DATA")
    if not folder.is_dir() and base and (Path(base) / folder).is_dir():
        return Path(base) / folder
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; set $STEADYGAZE_DATA to its parent folder")
    return folder


def _file(folder: Path, name: str) -> Path:
    for file in (folder / f"{name}.gz", folder / name):
        if file.is_file():
            return file
    raise UserError(f"{folder} has no {name}.gz")


MAX_CHANNELS = 4
WANTED = "images must be arrays of shape (N, H, W), or (N, H, W, C) with 1 to 4 channels last"


@dataclass(frozen=True, slots=True)
class Images:
    pixels: Tensor  # (N,C,H,W) float, between 0 and 1
    flat: bool = True
    """True if the user's images have no channel axis."""
    whole: bool = True
    """True if the user's images have whole numbers from 0 to 255."""

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def shape(self) -> Shape:
        _, channels, height, width = self.pixels.shape
        return channels, height, width

    def of(self, pixels: Tensor) -> "Images":
        """Other pixels of the same kind."""
        return replace(self, pixels=pixels)

    def as_given(self) -> NDArray[Any]:
        """The images in the user's format: (N,H,W) or (N,H,W,C)."""
        last = self.pixels.detach().cpu().permute(0, 2, 3, 1).numpy()
        values = last[..., 0] if self.flat else last
        return np.rint(values * 255).astype(np.uint8) if self.whole else np.ascontiguousarray(values)


def read_images(images: Any) -> Images:
    values = _array(images)
    flat = values.ndim == 3
    if not flat and (values.ndim != 4 or values.shape[-1] > MAX_CHANNELS):
        advice = ": put a single image in a list, [image]" if values.ndim == 2 else ""
        if values.ndim == 4 and values.shape[1] <= MAX_CHANNELS:
            advice = ": move the channels, values.transpose(0, 2, 3, 1) or, with torch, values.permute(0, 2, 3, 1)"
        raise UserError(f"{WANTED}; found shape {values.shape}{advice}")
    if 0 in values.shape:
        raise UserError(f"there are no images: found shape {values.shape}")
    whole = values.dtype == np.uint8
    pixels = torch.from_numpy(np.ascontiguousarray(_scaled(values)))
    return Images(pixels.unsqueeze(1) if flat else pixels.permute(0, 3, 1, 2).contiguous(), flat, whole)


def match_shape(images: Images, shape: Shape, whose: str, whole: bool | None = None) -> Images:
    """Raise an error if the shape or the number format differs."""
    if images.shape != shape:
        size, expected_size = (f"{h} × {w} pixels with {c} channels" for c, h, w in (images.shape, shape))
        raise UserError(f"{whose} has images of {expected_size}, found images of {size}")
    if whole not in (None, images.whole):
        kinds = "floats from 0 to 1", "whole numbers from 0 to 255"
        raise UserError(
            f"{whose} has pixels in {kinds[not images.whole]}, found {kinds[images.whole]}: use one format for both"
        )
    return images


def _array(values: Any) -> NDArray[Any]:
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
        raise UserError(f"{WANTED}, or a list of images of one size; found {values!r:.80}")
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values
    try:
        arrays = [np.asarray(image) for image in values]
    except (TypeError, ValueError):
        raise UserError(f"{WANTED}; found a list with items that are not arrays of numbers") from None
    sizes = sorted({image.shape for image in arrays})
    if len(sizes) > 1:
        first = next(i for i, image in enumerate(arrays) if image.shape != arrays[0].shape)
        raise UserError(
            f"images must all have one size: images[0] is {arrays[0].shape}, images[{first}] is "
            f"{arrays[first].shape}; resize them first"
        )
    return np.stack(arrays) if arrays else np.zeros((0, 0, 0))


def _scaled(values: NDArray[Any]) -> NDArray[np.float32]:
    if values.dtype in (np.uint8, np.bool_):
        return values.astype(np.float32) / np.float32(255 if values.dtype == np.uint8 else 1)
    if not np.issubdtype(values.dtype, np.floating):
        raise UserError(f"pixels must be whole numbers of type uint8, or floats from 0 to 1; found type {values.dtype}")
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high <= 1):
        raise UserError(f"pixels that are floats must lie between 0 and 1, found {low:g} to {high:g}: scale them first")
    return values.astype(np.float32)
