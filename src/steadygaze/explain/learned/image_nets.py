"""Networks for images, as Bai et al. (Table 7) have them.  A unit is a square patch; a patch of one is a pixel.

    selector       which patches?   convolutions 32×3×3 and 64×3×3 that keep the size, then for each patch the sum of
                   what is seen there       → mean over the patch → hidden → score
                   what the whole says of it  → maximum of 2×2 → hidden → a score for each patch
                   with ŷ: what the black box says becomes one more colour, through a dense layer
    dense          what do the selected patches say?   all pixels → 128 → classes
    convolution    the same with the network of Table 7, without its dropout

Approximators see what the black box is shown: the selected patches, and the fill in place of the rest.

    x ⊙ m + fill ⊙ (1 − m)

Departs from the paper, which does not say how explainers differ from Table 7 "to incorporate global information".
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from steadygaze.explain.learned.views import Views

Shape = tuple[int, int, int]
"""Colours, height and width."""
SMALLEST = 6
"""Pixels of a side that the convolutions of Table 7 need."""
INNER = 128
"""Units of its dense layer."""


def table_seven(shape: Shape, classes: int, dropouts: tuple[float, float] = (0.0, 0.0)) -> nn.Sequential:
    """The classifier of Table 7.  (B,C,H,W) -> (B,classes)"""
    colours, height, width = shape
    return nn.Sequential(
        nn.Conv2d(colours, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropouts[0]),
        nn.Linear(64 * ((height - 4) // 2) * ((width - 4) // 2), INNER),
        nn.ReLU(),
        nn.Dropout(dropouts[1]),
        nn.Linear(INNER, classes),
    )


def spread(mask: Tensor, shape: Shape, patch: int) -> Tensor:
    """From patches to their pixels.  (B,D) -> (B,1,H,W)"""
    grid = mask.view(-1, 1, shape[1] // patch, shape[2] // patch)
    return grid.repeat_interleave(patch, 2).repeat_interleave(patch, 3)


def painted(pixels: Tensor, mask: Tensor, fill: Tensor, patch: int) -> Tensor:
    """Where the mask is 0 the fill, where it is 1 the image, between them a mixture.  (B,C,H,W), (B,D) -> (B,C,H,W)"""
    _, colours, height, width = pixels.shape
    kept = spread(mask.to(pixels.dtype), (colours, height, width), patch)
    return pixels * kept + fill.to(pixels) * (1 - kept)


class Selector(nn.Module):
    def __init__(self, shape: Shape, patch: int, query: int, hidden: int, dropout: float = 0.0) -> None:
        """`query`: how many numbers the black box says of an image; 0: it is not asked."""
        super().__init__()
        colours, self.height, self.width = shape
        self.patch = patch
        units = (self.height // patch) * (self.width // patch)
        self.said = nn.Linear(query, self.height * self.width) if query else None
        self.near = nn.Sequential(
            nn.Conv2d(colours + bool(query), 32, 3, padding="same"),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding="same"),
            nn.ReLU(),
        )
        self.inner = nn.Sequential(nn.Conv2d(64, hidden, 1), nn.ReLU(), nn.Dropout(dropout))
        self.score = nn.Conv2d(hidden, 1, 1)
        self.whole = nn.Sequential(
            nn.MaxPool2d(2, ceil_mode=True),
            nn.Flatten(),
            nn.Linear(64 * ((self.height + 1) // 2) * ((self.width + 1) // 2), hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, units),
        )

    def forward(self, views: Views, query: Tensor | None = None) -> Tensor:
        """(B,C,H,W), (B,classes) -> (B,D)"""
        seen = views.x
        if self.said is not None and query is not None:
            told = self.said(query.to(seen.dtype)).view(-1, 1, self.height, self.width)
            seen = torch.cat([seen, told], 1)
        hidden = self.near(seen)
        scores: Tensor = self.score(self.inner(avg_pool2d(hidden, self.patch))).flatten(1) + self.whole(hidden)
        return scores


class Approximator(nn.Module):
    """Any network on images, shown the selected patches alone."""

    fill: Tensor

    def __init__(self, layers: nn.Module, patch: int, fill: Tensor) -> None:
        super().__init__()
        self.layers, self.patch = layers, patch
        self.register_buffer("fill", fill.clone())  # kept with the weights: they mean nothing with another

    def forward(self, views: Views, mask: Tensor) -> Tensor:
        """(B,C,H,W), (B,D) -> (B,classes)"""
        logits: Tensor = self.layers(painted(views.x, mask, self.fill, self.patch))
        return logits


def dense(shape: Shape, classes: int) -> nn.Sequential:
    """(B,C,H,W) -> (B,classes)"""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], INNER), nn.ReLU(), nn.Linear(INNER, classes)
    )


APPROXIMATORS = {"simple": dense, "cnn": table_seven}
