"""ImageExplanation: an image, its prediction and its selected patches, drawn as PNG.  No torch here.

The drawing follows Figures 3 and 4 of Bai et al. 2021 (arXiv:2006.05656).  Selected patches keep their pixels and have
an outline; the rest is grayed out.  The orange outline is visible with every common color blindness.
"""

import struct
import zlib
from base64 import b64encode
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from steadygaze.core import arguments
from steadygaze.core.atomic_files import new_file
from steadygaze.core.output_paths import check_file
from steadygaze.core.rounding import percent
from steadygaze.core.types import Label

SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB = 2
"""PNG color type without transparency."""


def png(pixels: NDArray[np.uint8]) -> bytes:
    """(H,W,3) -> contents of a PNG file"""
    height, width, _ = pixels.shape
    unfiltered = np.zeros((height, 1), np.uint8)  # each line begins with its filter type: none
    lines = np.hstack([unfiltered, pixels.reshape(height, -1)]).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, RGB, 0, 0, 0)
    chunks = {b"IHDR": header, b"tEXt": b"Software\0steadygaze", b"IDAT": zlib.compress(lines, 9), b"IEND": b""}
    return SIGNATURE + b"".join(_chunk(kind, body) for kind, body in chunks.items())


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


S = TypeVar("S", bound=np.generic)
LINE = (230, 159, 0)
GRAY = 128
LEFT = 0.25
"""Contrast of unselected patches."""
SIDE = 224
"""Fewest pixels of the shorter side of a picture."""
GAP = 8
"""White pixels between the image and its overlay."""


def colored(image: NDArray[np.float64]) -> NDArray[np.uint8]:
    """(H,W) or (H,W,C) between 0 and 1 -> (H,W,3); transparency is dropped"""
    deep = image[..., None] if image.ndim == 2 else image
    deep = np.repeat(deep[..., :1], 3, -1) if deep.shape[-1] < 3 else deep[..., :3]
    return np.rint(deep * 255).astype(np.uint8)


def overlay(image: NDArray[np.float64], mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The selected part, enlarged.  (H,W[,C]), (H,W) -> (H·s,W·s,3)"""
    clear = colored(image)
    faint = np.rint(GRAY + LEFT * (clear.astype(np.float64) - GRAY)).astype(np.uint8)
    picture = enlarged(np.where(mask[..., None], clear, faint))
    picture[_border(enlarged(mask), max(1, _times(mask) // 6))] = LINE
    return picture


def side_by_side_images(image: NDArray[np.float64], mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The image, with its overlay on the right."""
    whole = enlarged(colored(image))
    gap = np.full((len(whole), GAP, 3), 255, np.uint8)
    return np.hstack([whole, gap, overlay(image, mask)])


def enlarged(values: NDArray[S]) -> NDArray[S]:
    """Enlarge each pixel to a square."""
    times = _times(values)
    return values.repeat(times, 0).repeat(times, 1)


def _times(values: NDArray[Any]) -> int:
    height, width = values.shape[:2]
    return max(1, -(-SIDE // int(min(height, width))))


def _border(mask: NDArray[np.bool_], thick: int) -> NDArray[np.bool_]:
    """Selected pixels within `thick` pixels of an unselected one.  (H,W) -> (H,W)"""
    inner = np.pad(mask, thick)
    height, width = mask.shape
    for axis in (0, 1):
        inner = np.logical_and.reduce([np.roll(inner, step, axis) for step in range(-thick, thick + 1)])
    return mask & ~inner[thick : thick + height, thick : thick + width]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ImageExplanation:
    """The prediction for an image, and the weight of each patch.

    Examples
    --------
    >>> import numpy as np
    >>> from steadygaze import ImageExplanation
    >>> weights = np.array([[0.9, 0.0], [0.1, 0.0]])
    >>> explanation = ImageExplanation(np.zeros((4, 4)), weights, 2, 1, "dark", {"dark": 1.0}, "gradient")
    >>> explanation.top()
    [((0, 0), 0.9)]
    """

    image: NDArray[Any]  # (H,W) or (H,W,C), in the user's format
    """The image in the user's format."""
    weights: NDArray[np.float64]  # (h,w) one per patch
    """One weight per patch."""
    patch: int
    """Side of a patch in pixels."""
    k: int
    """Number of selected patches: the top-weighted ones."""
    label: Label
    """The predicted class."""
    probabilities: dict[Label, float]
    """Class -> predicted probability."""
    explainer: str
    """Name of the explainer."""
    bounds: NDArray[np.float64] | None = None  # (h,w,2) low and high
    """Bounds of the weight of each patch, for explainers with uncertainty."""

    def __post_init__(self) -> None:
        height, width = self.image.shape[:2]
        if self.weights.shape != (height // self.patch, width // self.patch):
            raise ValueError(f"ImageExplanation: weights of shape {self.weights.shape} for {height} × {width} pixels")
        if self.bounds is not None and self.bounds.shape != (*self.weights.shape, 2):
            raise ValueError(f"ImageExplanation: bounds of shape {self.bounds.shape} for {self.weights.shape} patches")
        if not np.isfinite(self.weights).all():
            raise ValueError("ImageExplanation: some weight is not a finite number")

    @property
    def mask(self) -> NDArray[np.bool_]:
        """True on the pixels of the selected patches.  (H,W)"""
        selected = np.zeros(self.weights.size, bool)
        selected[self._top_k(self.k)] = True
        return selected.reshape(self.weights.shape).repeat(self.patch, 0).repeat(self.patch, 1)

    @arguments.validated(k=arguments.optional(arguments.integer(0)))
    def top(self, k: int | None = None) -> list[tuple[tuple[int, int], float]]:
        """The k top-weighted patches.

        Parameters
        ----------
        k : int, default=None
            Number of patches; None: the selected patches.

        Returns
        -------
        list of ((int, int), float)
            (row, column) of the upper left pixel, and weight, in descending order.
        """
        patches = []
        for index in self._top_k(self.k if k is None else k):
            row, column = divmod(int(index), self.weights.shape[1])
            patches.append(((row * self.patch, column * self.patch), float(self.weights[row, column])))
        return patches

    def to_dict(self) -> dict[str, Any]:
        """The explanation as values for JSON.

        Returns
        -------
        dict
            Lists, strings and numbers, ready for JSON.
        """
        return {
            "image": self.image.tolist(),
            "weights": self.weights.tolist(),
            "selected": [list(place) for place, _ in self.top()],
            "patch": self.patch,
            "k": self.k,
            "label": self.label,
            "probabilities": {str(label): p for label, p in self.probabilities.items()},
            "explainer": self.explainer,
            "bounds": None if self.bounds is None else self.bounds.tolist(),
        }

    def to_png(self, path: str | Path | None = None, original: bool = True, *, replace: bool = False) -> bytes:
        """Draw the selected patches.

        Parameters
        ----------
        path : str or Path, default=None
            File to write; None: write nothing.
        original : bool, default=True
            Draw the image on the left of the overlay.
        replace : bool, default=False
            Overwrite a file that steadygaze did not write.

        Returns
        -------
        bytes
            Contents of a PNG file.
        """
        data = png((side_by_side_images if original else overlay)(self._unit(), self.mask))
        if path is not None:
            target = arguments.path("path", path)
            check_file(target, replace=replace)
            with new_file(target) as file:
                file.write_bytes(data)
        return data

    def _repr_html_(self) -> str:
        source = b64encode(self.to_png()).decode()
        prediction = escape(f"{self.label} {self._confidence()}".strip())
        caption = escape(self._caption())
        image = f'<img alt="{caption}" src="data:image/png;base64,{source}" style="max-width:100%">'
        small = f'<figcaption style="font-size:0.85em;opacity:0.8">{caption}</figcaption>'
        html = f"<figure style='margin:0 0 1.5em'><div><strong>{prediction}</strong></div>{image}{small}</figure>"
        return html.encode(errors="replace").decode()  # a notebook cannot encode a lone surrogate

    def __repr__(self) -> str:
        return f"<ImageExplanation {self.label} {self._confidence()}; {self._caption()}>"

    def _top_k(self, k: int) -> NDArray[np.int64]:
        """Indices of the k top-weighted patches, in descending order; ties by position."""
        return np.argsort(-self.weights.ravel(), kind="stable")[:k]

    def _unit(self) -> NDArray[np.float64]:
        """Pixels between 0 and 1."""
        values = self.image.astype(np.float64)
        return values / 255 if self.image.dtype == np.uint8 else values

    def _caption(self) -> str:
        size = "pixels" if self.patch == 1 else f"patches of {self.patch} × {self.patch} pixels"
        caption = f"{self.explainer}: {min(self.k, self.weights.size)} of {self.weights.size} {size} selected"
        return caption if self.bounds is None else f"{caption}; {self._top_bounds(self.bounds)}"

    def _top_bounds(self, bounds: NDArray[np.float64]) -> str:
        """Weight and bounds of the top-weighted patch."""
        (row, column), weight = self.top(1)[0]
        low, high = bounds[row // self.patch, column // self.patch]
        return f"top-weighted ({row}, {column}) {weight:.3f} [{low:.3f}, {high:.3f}]"

    def _confidence(self) -> str:
        return percent(self.probabilities[self.label], 1) if self.label in self.probabilities else ""
