"""How an image and what was selected of it are drawn: as in Figures 3 and 4 of Bai et al. 2021 (arXiv:2006.05656).

Selected patches keep their pixels, and a line runs around them; the rest is greyed, so that what remains of it can
just be made out.  The orange of the line is told from black, white and grey by every common colour blindness.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

S = TypeVar("S", bound=np.generic)
LINE = (230, 159, 0)
GREY = 128
LEFT = 0.25
"""Of the contrast of what is not selected."""
SIDE = 224
"""Pixels that the shorter side of a picture has at least."""
GAP = 8
"""White pixels between the image and its overlay."""


def coloured(image: NDArray[np.float64]) -> NDArray[np.uint8]:
    """(H,W) or (H,W,C) between 0 and 1 -> (H,W,3); a fourth colour, transparency, is left out"""
    deep = image[..., None] if image.ndim == 2 else image
    deep = np.repeat(deep[..., :1], 3, -1) if deep.shape[-1] < 3 else deep[..., :3]
    return np.rint(deep * 255).astype(np.uint8)


def overlay(image: NDArray[np.float64], mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The selected part, enlarged.  (H,W[,C]), (H,W) -> (H·s,W·s,3)"""
    clear = coloured(image)
    faint = np.rint(GREY + LEFT * (clear.astype(np.float64) - GREY)).astype(np.uint8)
    shown = enlarged(np.where(mask[..., None], clear, faint))
    shown[_border(enlarged(mask), max(1, _times(mask) // 6))] = LINE
    return shown


def beside(image: NDArray[np.float64], mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The image as it is, and its overlay to the right of it."""
    whole = enlarged(coloured(image))
    gap = np.full((len(whole), GAP, 3), 255, np.uint8)
    return np.hstack([whole, gap, overlay(image, mask)])


def enlarged(values: NDArray[S]) -> NDArray[S]:
    """Every pixel a square, so that small images can be looked at."""
    times = _times(values)
    return values.repeat(times, 0).repeat(times, 1)


def _times(values: NDArray[Any]) -> int:
    height, width = values.shape[:2]
    return max(1, -(-SIDE // int(min(height, width))))


def _border(mask: NDArray[np.bool_], thick: int) -> NDArray[np.bool_]:
    """What is selected, and lies within so many pixels of what is not.  (H,W) -> (H,W)"""
    inner = np.pad(mask, thick)
    height, width = mask.shape
    for axis in (0, 1):
        inner = np.logical_and.reduce([np.roll(inner, step, axis) for step in range(-thick, thick + 1)])
    return mask & ~inner[thick : thick + height, thick : thick + width]
