"""Image networks of other libraries, and calls that are for texts."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import steadygaze as sg
from steadygaze.core.errors import UserError


class WithLogits(nn.Module):
    """Returns an output with `logits`, as image classifiers of transformers do."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, pixels: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.linear(pixels.flatten(1)))


IMAGES = np.random.default_rng(0).random((3, 4, 4))


@pytest.fixture
def linear() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(16, 2)


@pytest.mark.parametrize("explainer", ["gradient", "leave-one-out"])
def test_an_output_with_logits_is_explained_as_its_logits(linear: nn.Linear, explainer: str) -> None:
    plain = nn.Sequential(nn.Flatten(), linear)
    expected, actual = (
        sg.explain_images(network, IMAGES, explainer, k=2, classes=["a", "b"])
        for network in (plain, WithLogits(linear))
    )
    for one, other in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
        assert one.label == other.label


def test_another_output_is_refused(linear: nn.Linear) -> None:
    class Pair(WithLogits):
        def forward(self, pixels: Tensor) -> tuple[Tensor]:
            return (self.linear(pixels.flatten(1)),)

    with pytest.raises(UserError, match="must return logits of shape"):
        sg.explain_images(Pair(linear), IMAGES, k=2, classes=["a", "b"])


def test_explain_names_the_call_for_images(linear: nn.Linear) -> None:
    with pytest.raises(UserError, match=r"this call explains texts\.  Use sg\.explain_images"):
        sg.explain(nn.Sequential(nn.Flatten(), linear), IMAGES, classes=["a", "b"])


@pytest.mark.slow
@pytest.mark.usefixtures("short_probe_training")
def test_the_independent_reader_of_images_is_trained_only_if_asked_for(tmp_path: Path) -> None:
    """The label is whether the first pixel is bright."""
    network, images = nn.Sequential(nn.Flatten(), nn.Linear(64, 2)), np.random.default_rng(1).random((40, 8, 8))
    with torch.no_grad():
        network[1].weight.zero_()[1, 0] = 10.0
        network[1].bias.copy_(torch.tensor([0.0, -5.0]))
    for reader in (False, True):
        settings = {"patch": 2, "epochs": 1, **({"reader": True} if reader else {})}
        fitted = sg.fit_explainer(network, images, "l2x", k=3, classes=["a", "b"], settings=settings)
        assert ("independent-reader-accuracy" in {row.measure for row in fitted.rows}) == reader
        assert not any("independent reader was trained" in warning for warning in fitted.warnings)
        fitted.save(tmp_path / str(reader))
        loaded = sg.load_explainer(tmp_path / str(reader), network, classes=["a", "b"])
        assert loaded.explain(images[:1])[0].label == fitted.explain(images[:1])[0].label
