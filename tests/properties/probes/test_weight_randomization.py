"""A copy with its parameters dealt out anew: the same numbers in other places, and a model that is not touched."""

import numpy as np
import pytest
import torch
from torch import nn

from contract.probing import in_use, state
from contract.tiny import batch, cached_classifier, classifier, split
from steadygaze.core.random_key import RandomKey
from steadygaze.properties.probes.counterfactual_attention import randomized_copy
from steadygaze.properties.probes.text_perturbations import observe

ENCODER = pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average", "transformer"])


@ENCODER
def test_every_tensor_keeps_its_numbers_and_the_model_keeps_everything(encoder):
    model = in_use(encoder)
    before = state(model)
    other = randomized_copy(model, RandomKey(1))
    assert state(model) == before
    for (name, old), new in zip(model.named_parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(np.sort(old.detach().numpy(), None), np.sort(new.numpy(), None))
        if len(old.detach().unique()) > 6:
            assert not old.equal(new), name
        assert old.data_ptr() != new.data_ptr()
    assert not any(module.training for module in other.modules())
    assert not any(parameter.requires_grad for parameter in other.parameters())


def test_the_copy_depends_only_on_its_random_key():
    model, texts = cached_classifier(), batch(split())
    first, again, other = (observe(randomized_copy(model, RandomKey(seed)), texts).probs for seed in (1, 1, 2))
    torch.rand(3)
    assert first.equal(again)
    assert (first - other).abs().max() > 1e-3


def test_an_order_of_entries_is_as_likely_as_another():
    """Entry 0 of 1000 goes anywhere: its mean place over 200 draws is 499.5, give or take 289/√200 = 20."""
    model = nn.Linear(1000, 1, bias=False)
    model.weight.data = torch.arange(1000.0).unsqueeze(0)
    places = [int((randomized_copy(model, RandomKey(seed)).weight == 0).nonzero()[0, 1]) for seed in range(200)]
    assert np.mean(places) == pytest.approx(499.5, abs=100)
    assert len(set(places)) > 150


def test_tied_parameters_stay_tied_and_are_dealt_out_once():
    tied = nn.ModuleList([nn.Linear(30, 30, bias=False), nn.Linear(30, 30, bias=False)])
    tied[1].weight = tied[0].weight
    other = randomized_copy(tied, RandomKey(0))
    assert other[0].weight is other[1].weight
    assert not other[0].weight.equal(tied[0].weight)


def test_a_copy_made_of_a_model_with_gradients_half_gathered_has_none():
    model = classifier()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    assert all(parameter.grad is None for parameter in randomized_copy(model, RandomKey(0)).parameters())
