"""How a classifier of images is trained: cross-entropy by Adadelta, from a seed alone."""

from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from steadygaze.config import Field, settings
from steadygaze.errors import UserError
from steadygaze.explain.learned.image_nets import SMALLEST, Shape, table_seven
from steadygaze.explain.learned.images import Canvas
from steadygaze.images.pixels import Images
from steadygaze.train.seed import derive, own_chance

DROPOUTS = (0.25, 0.5)
"""Before each of the dense layers."""
FORGETS, SMALL = 0.95, 1e-7
"""Of Adadelta, as Keras has it."""


@settings
class Learning:
    """How it is trained."""

    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 12
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 128
    learning_rate: Annotated[float, Field(gt=0, le=1000)] = 1.0


def network_for(shape: Shape, classes: int) -> nn.Sequential:
    """With fresh weights, and a place for the mean of the images it will be trained on."""
    if min(shape[1:]) < SMALLEST:
        raise UserError(f"images of {shape[1]} × {shape[2]} pixels are too small: each side needs {SMALLEST} or more")
    network = table_seven(shape, classes, DROPOUTS)
    network.register_buffer("mean", torch.zeros(shape))
    return network


def train(
    how: Learning, images: Images, labels: Tensor, device: torch.device
) -> tuple[nn.Module, list[dict[str, Any]]]:
    """The network, in evaluation mode, and a record of each epoch."""
    history = []
    with own_chance():
        torch.manual_seed(derive(how.seed))
        network = network_for(images.shape, int(labels.max()) + 1).to(device)
        network.get_buffer("mean").copy_(Canvas(fill="mean").blank(images.pixels, images.whole))
        pixels, labels = images.pixels.to(device), labels.to(device)
        steps = torch.optim.Adadelta(network.parameters(), how.learning_rate, FORGETS, SMALL)
        for epoch in range(how.epochs):
            loss, right = _epoch(network, steps, (pixels, labels), how, epoch)
            if loss != loss:
                raise UserError("the loss is not a number any more: a smaller learning_rate is needed")
            history.append({"epoch": epoch + 1, "loss": loss, "accuracy": right})
    return network.eval(), history


def _epoch(
    network: nn.Module, steps: torch.optim.Optimizer, data: tuple[Tensor, Tensor], how: Learning, epoch: int
) -> tuple[float, float]:
    """Mean loss, and the share that was right."""
    pixels, labels = data
    order = torch.from_numpy(np.random.default_rng((how.seed, epoch)).permutation(len(labels))).to(labels.device)
    total, right = torch.zeros(2, device=labels.device)
    network.train()
    for rows in torch.split(order, how.batch_size):
        logits = network(pixels[rows])
        loss = cross_entropy(logits, labels[rows])
        steps.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        steps.step()
        total += loss.detach() * len(rows)
        right += (logits.argmax(-1) == labels[rows]).sum()
    return float(total) / len(labels), float(right) / len(labels)
