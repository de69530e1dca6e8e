"""Small images in which the reason is known: shared by the tests of images."""

import numpy as np
import torch
from torch import nn

ROWS, COLUMNS = slice(2, 4), slice(4, 6)
"""The patch of 2 × 2 pixels that decides."""
PLACE = (2, 4)


def planted(many, seed=0):
    """Noise of 8 × 8 pixels, but for one patch, which is bright in class 1 and dark in class 0."""
    random = np.random.default_rng(seed)
    images = random.integers(0, 256, (many, 8, 8)).astype(np.uint8)
    labels = random.integers(0, 2, many)
    bright, dark = random.integers(200, 256, (many, 2, 2)), random.integers(0, 56, (many, 2, 2))
    images[:, ROWS, COLUMNS] = np.where(labels[:, None, None] == 1, bright, dark)
    return images, labels


def knows(images):
    """A black box that looks at that patch and nothing else."""
    light = images[:, ROWS, COLUMNS].astype(np.float64).mean((1, 2)) / 255
    p = 1 / (1 + np.exp(-20 * (light - 0.5)))
    return np.stack([1 - p, p], 1)


class Watched:
    """A black box that remembers what it was shown."""

    classes_ = np.array([0, 1])

    def __init__(self):
        self.shown = []

    def predict_proba(self, images):
        self.shown.append(images)
        return knows(images)


def straight(channels=1, side=6, seed=0):
    """A network whose logits are linear in the pixels."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * side * side, 2)).double().eval()
