"""The independent reader: a classifier of selected units, trained on random masks only.

    reader     minimizes   E over x and m ~ uniform of   CE(p(x), r(x ⊙ m))          so that   r(x ⊙ m) ≈ E[Y | x ⊙ m]

p(x) is the explained prediction, m a mask that is independent of x.  A selector and the network trained on its
selections can encode a label in the choice of units.  The reader does not learn this code: it recovers the label only
if the units carry it.  Bai et al. 2021 (arXiv:2006.05656, §4.1) train an approximator on such masks to prevent label
leakage; the reader detects it.

The masks have the form of the selections: the same number of units, or whole sentences.  `Draw` creates them.

Cost: at most STEPS steps of BATCH inputs, or EPOCHS epochs.  The black box is not run again.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import torch
from torch import Tensor, nn

from steadygaze.core.maths import k_subset
from steadygaze.core.random_key import RandomKey, derive_seed, forked_generators
from steadygaze.explainers.explainer import SelectionPredictions
from steadygaze.explainers.learned.l2x import BatchFunction, InputBatch, InputSplit
from steadygaze.models.inference import inference
from steadygaze.training.training_loop import fit_small_network

STREAM = 0x5EAD
"""Separates the reader's random draws from the explainer's with the same seed."""
STEPS, EPOCHS, BATCH = 1500, 100, 128
"""Most steps, most epochs, and inputs in a step."""
EVALUATE, PATIENCE = 50, 10
"""Steps between two validations, and validations without a lower loss after which training ends."""
DRAWS = 8
"""Random masks of each validation input, and of each input for the baseline of random units."""
LEARNING_RATE = 3e-3
AT_ONCE = 256

Draw = Callable[[InputBatch, RandomKey], Tensor]
"""Random masks of a batch: views, random key -> (B,D)."""


def uniform_subsets(k: int) -> Draw:
    """k units drawn uniformly, or all units of a smaller input."""

    def draw(views: InputBatch, key: RandomKey) -> Tensor:
        return k_subset.random_k_subset(views.selectable, k, key, views.rows)

    return draw


@dataclass(frozen=True)
class ReaderFit:
    """Trains an independent reader.  The weights with the lowest validation loss on random masks are kept."""

    make: Callable[[], nn.Module]
    """Creates a network `(views, mask) -> logits`; torch's generator is seeded before the call."""
    draw: Draw
    train: InputSplit
    validation: InputSplit
    device: torch.device
    seed: int = 0
    steps: int = STEPS
    """Most steps."""
    learning_rate: float = LEARNING_RATE
    decay: bool = False
    """True if the learning rate decays linearly to 0."""

    def execute(self) -> nn.Module:
        reader_seed = derive_seed(self.seed, STREAM)
        with forked_generators():
            torch.manual_seed(reader_seed)
            net = self.make().to(self.device)
        key = RandomKey(reader_seed)
        batches = (rows for epoch in count() for rows in self.train.shuffled(BATCH, (reader_seed, epoch)))

        def loss(views: InputBatch, key: RandomKey) -> Tensor:
            return _cross_entropy(net(views, self.draw(views, key)), views.probs).mean()

        random_loss = BatchFunction(self.validation, self.device, partial(_random_loss, net, self.draw))
        fit_small_network(
            net,
            loss,
            lambda step: (next(batches), key.child(step)),
            partial(self.validation_loss, random_loss),
            steps=min(self.steps, EPOCHS * -(-len(self.train) // BATCH)),
            interval=EVALUATE,
            patience=PATIENCE,
            learning_rate=self.learning_rate,
            decay=self.decay,
            capture=partial(BatchFunction, self.train, self.device),
        )
        return net.eval().requires_grad_(False)

    def validation_loss(self, random_loss: BatchFunction) -> float:
        """Cross-entropy on random masks of validation inputs, in nats."""
        key = RandomKey(derive_seed(self.seed, STREAM, 1))
        # Copied: the next call overwrites the sums.
        sums = [random_loss(rows, key).clone() for rows in self.validation.once(AT_ONCE)]
        total: float = sum(value for part in sums for value in part.tolist())
        return total / (DRAWS * max(1, len(self.validation)))


def _random_loss(net: nn.Module, draw: Draw, views: InputBatch, key: RandomKey) -> Tensor:
    """Sum over the inputs of the cross-entropy, for each of DRAWS random masks.  (DRAWS,)"""
    with inference(net):
        sums = [_cross_entropy(logits, views.probs).sum() for logits in _random_logits(net, views, draw, key)]
        return torch.stack(sums)


def read(
    reader: nn.Module,
    views: InputBatch,
    mask: Tensor,
    draw: Draw,
    approximator_logits: Tensor | None = None,
    approximator: nn.Module | None = None,
) -> SelectionPredictions:
    """The reader's predictions from a batch of selections, with baselines.  (B,D)

    `approximator` gave `approximator_logits`; it also reads the random masks.
    """
    with inference(reader):
        random = torch.stack(_random_logits(reader, views, draw, RandomKey(STREAM)), 1)
        readings = SelectionPredictions(
            reader(views, mask), random, reader(views, torch.zeros_like(mask)), approximator_logits
        )
    if approximator is None or approximator_logits is None:
        return readings
    with inference(approximator):
        others = torch.stack(_random_logits(approximator, views, draw, RandomKey(STREAM)), 1).argmax(-1)
    agrees = others == approximator_logits.argmax(-1, keepdim=True)
    return replace(readings, agreement=agrees.double().mean(-1))


def _random_logits(net: nn.Module, views: InputBatch, draw: Draw, key: RandomKey) -> list[Tensor]:
    """Logits of DRAWS random masks of each input.  (B,C) each"""
    return [net(views, draw(views, key.child(number))) for number in range(DRAWS)]


def _cross_entropy(logits: Tensor, probs: Tensor) -> Tensor:
    """(B,C), (B,C) -> (B,)"""
    return -(probs * logits.log_softmax(-1)).sum(-1)
