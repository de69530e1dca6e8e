"""The probe classifier: predictions on held-out masks."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from steadygaze.explainers.learned.selector_training import fit_probe
from steadygaze.models.probe_classifier import ProbeClassifier

MANY, PLACES = 3000, 12


def masks(seed: int = 0) -> Tensor:
    """Half of the places, by lot."""
    order = torch.rand(MANY, PLACES, generator=torch.Generator().manual_seed(seed)).argsort(-1)
    return order < PLACES // 2


def lost(probe: ProbeClassifier, mask: Tensor, label: Tensor) -> float:
    with torch.no_grad():
        return float(nll_loss(probe(mask), label))


def test_the_probe_predicts_class_shares_from_uninformative_masks() -> None:
    label = (torch.rand(MANY, generator=torch.Generator().manual_seed(7)) < 0.3).long()
    entropy = -0.3 * math.log(0.3) - 0.7 * math.log(0.7)
    result = lost(fit_probe(masks(), label, 2, seed=0), masks(1), label)
    assert result == pytest.approx(entropy, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["one place", "two places at odds"])
def test_the_probe_predicts_the_label_from_masks_that_encode_it(rule: str) -> None:
    def label(mask: Tensor) -> Tensor:
        return (mask[:, 3] if rule == "one place" else mask[:, 3] ^ mask[:, 8]).long()

    result = lost(fit_probe(masks(), label(masks()), 2, seed=0), masks(1), label(masks(1)))
    assert result < 0.01


def test_three_classes_and_few_masks() -> None:
    label = masks()[:40].long() @ torch.arange(PLACES) % 3
    probe = fit_probe(masks()[:40], label, 3, seed=0)
    assert probe(masks(1)).exp().sum(-1).allclose(torch.ones(MANY))
    assert lost(probe, masks(1), masks(1).long() @ torch.arange(PLACES) % 3) < 1.5, "it is not sure of what it learned"


@pytest.mark.usefixtures("short_probe_training")
def test_the_same_seed_teaches_the_same_and_nobody_else_is_disturbed() -> None:
    label = masks()[:, 0].long()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    probe, other = (fit_probe(masks()[:200], label[:200], 2, seed=4) for _ in range(2))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(a, b) for a, b in zip(probe.state_dict().values(), other.state_dict().values(), strict=True))
