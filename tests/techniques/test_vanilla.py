"""Cross-entropy, on numbers worked out by hand."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from steadygaze.core.types import Batch
from steadygaze.techniques.technique import LossContext, Player, Stage
from steadygaze.techniques.vanilla import Vanilla


@dataclass
class Fixed:
    """A model with a constant prediction."""

    logits: Tensor

    def __call__(self, batch: Batch) -> "Fixed":
        return self


def test_the_loss_of_each_text_is_minus_the_log_of_its_labels_probability() -> None:
    """Logits (0, ln 3) give probabilities (1/4, 3/4); logits (0, 0) give halves."""
    ids = torch.ones(3, 1, dtype=torch.long)
    batch = Batch(ids, ids.bool(), ids.bool(), torch.arange(3), label=torch.tensor([0, 1, 1]))
    logits = torch.tensor([[0, math.log(3)], [0, math.log(3)], [0, 0]], dtype=torch.float64)
    terms = Vanilla().loss(Fixed(logits), batch, LossContext())  # type: ignore[arg-type]
    assert list(terms) == ["task"]
    assert terms["task"].tolist() == pytest.approx([math.log(4), math.log(4 / 3), math.log(2)], abs=1e-12)


def test_vanilla_needs_nothing_from_the_loop() -> None:
    technique = Vanilla()
    assert technique.stages(0) == (Stage("train"),)
    assert technique.players() == (Player(),)
    assert technique.modules(None) == {}  # type: ignore[arg-type]
    assert technique.after_step({}) is technique
