"""ImageExplanation: one image, what was predicted of it and which of its patches were selected.  No torch here."""

from base64 import b64encode
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze import arguments
from steadygaze.atomic import new_file
from steadygaze.images.overlay import beside, overlay
from steadygaze.images.png import png
from steadygaze.outputs import check_file
from steadygaze.types import Label


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ImageExplanation:
    """What was predicted of an image, and what an explainer says of each of its patches."""

    image: NDArray[Any]  # (H,W) or (H,W,C), as it was given
    weights: NDArray[np.float64]  # (h,w) one per patch
    patch: int
    """Pixels of a patch's side."""
    k: int
    """How many patches are selected: the heaviest."""
    label: Label
    probabilities: dict[Label, float]
    explainer: str
    bounds: NDArray[np.float64] | None = None  # (h,w,2) low and high
    """Between which the weight of each patch is, by an explainer that says how sure it is."""

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
        chosen = np.zeros(self.weights.size, bool)
        chosen[self._heaviest(self.k)] = True
        return chosen.reshape(self.weights.shape).repeat(self.patch, 0).repeat(self.patch, 1)

    @arguments.checked(k=arguments.optional(arguments.whole(0)))
    def top(self, k: int | None = None) -> list[tuple[tuple[int, int], float]]:
        """The heaviest patches, as (row, column) of their upper left pixel, with their weights; as many as selected."""
        found = []
        for place in self._heaviest(self.k if k is None else k):
            row, column = divmod(int(place), self.weights.shape[1])
            found.append(((row * self.patch, column * self.patch), float(self.weights[row, column])))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: lists, strings and numbers."""
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
        """The overlay, with the image itself to its left unless that is not wanted; written to `path` if there is
        one.
        """
        drawn = png((beside if original else overlay)(self._unit(), self.mask))
        if path is not None:
            place = arguments.path("path", path)
            check_file(place, replace=replace)
            with new_file(place) as file:
                file.write_bytes(drawn)
        return drawn

    def _repr_html_(self) -> str:
        source = b64encode(self.to_png()).decode()
        said = escape(f"{self.label} {self._sureness()}".strip())
        about = escape(self._about())
        image = f'<img alt="{about}" src="data:image/png;base64,{source}" style="max-width:100%">'
        small = f'<figcaption style="font-size:0.85em;opacity:0.8">{about}</figcaption>'
        html = f"<figure style='margin:0 0 1.5em'><div><strong>{said}</strong></div>{image}{small}</figure>"
        return html.encode(errors="replace").decode()  # a lone surrogate would stop the notebook's own encoder

    def __repr__(self) -> str:
        return f"<ImageExplanation {self.label} {self._sureness()}; {self._about()}>"

    def _heaviest(self, k: int) -> NDArray[np.int64]:
        """Places of the k heaviest, heaviest first; of equals the earlier first."""
        return np.argsort(-self.weights.ravel(), kind="stable")[:k]

    def _unit(self) -> NDArray[np.float64]:
        """Pixels between 0 and 1."""
        values = self.image.astype(np.float64)
        return values / 255 if self.image.dtype == np.uint8 else values

    def _about(self) -> str:
        size = "pixels" if self.patch == 1 else f"patches of {self.patch} × {self.patch} pixels"
        some = f"{self.explainer}: {min(self.k, self.weights.size)} of {self.weights.size} {size} selected"
        return some if self.bounds is None else f"{some}; {self._number(self.bounds)}"

    def _number(self, bounds: NDArray[np.float64]) -> str:
        """Of the heaviest patch."""
        (row, column), weight = self.top(1)[0]
        low, high = bounds[row // self.patch, column // self.patch]
        return f"heaviest ({row}, {column}) {weight:.3f} [{low:.3f}, {high:.3f}]"

    def _sureness(self) -> str:
        return f"{self.probabilities[self.label]:.1%}" if self.label in self.probabilities else ""
