"""A stack of models against its models one by one: outputs, gradients and weights."""

from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from contract import tiny
from contract.tiny import assert_close
from steadygaze.core.types import Batch
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.models.encoders import ENCODERS
from steadygaze.models.stacking.stacked_layers import is_stackable, stack, unstack

MODELS = 3
CHOSEN = ([0, 2, 6, 5], [4, 1, 2, 3], [6, 0, 3, 2])
"""The texts of each model."""


def models(encoder: str = "bilstm", pair: bool = False, **settings: str) -> list[Classifier]:
    torch.manual_seed(0)
    architecture = Architecture(hidden=4, dimension=5, **settings)
    make = [word_encoder(encoder, architecture, tiny.VOCABULARY, pair) for _ in range(MODELS)]
    return [Classifier(network, architecture, tiny.CLASSES, pair).double() for network in make]


def alternate(values: list[Tensor]) -> Tensor:
    """Rows of each model -> rows of the stack.  K × (B,…) -> (B·K,…)"""
    return torch.stack(values, 1).flatten(0, 1)


def batches(pair: bool) -> tuple[list[Batch], Batch]:
    """The batch of each model, padded to one width, and their alternating rows as one batch."""
    data = tiny.split(pair=pair)
    whole = tiny.batch(data)
    names = [field.name for field in fields(whole) if getattr(whole, field.name) is not None]
    own = [replace(whole, **{name: getattr(whole, name)[rows] for name in names}) for rows in CHOSEN]
    return own, replace(whole, **{name: alternate([getattr(batch, name) for batch in own]) for name in names})


def loss(model: Classifier, batch: Batch) -> Tensor:
    output = model(batch)
    probs = output.logits.log_softmax(-1).gather(1, batch.gold.unsqueeze(1)).squeeze(1)
    return probs + output.weights.square().sum(-1)  # (N,)


CASES = [
    *((name, pair, {}) for name in ENCODERS for pair in (False, True)),
    ("bilstm", False, {"score": "dot"}),
    ("bilstm", True, {"score": "dot", "decoder": "mlp"}),
    ("average", False, {"attention": "entmax15", "decoder": "mlp"}),
]


@pytest.mark.sweep
@pytest.mark.parametrize(("encoder", "pair", "settings"), CASES)
def test_losses_and_gradients_are_those_of_each_model(encoder, pair, settings):
    group, (own, together) = models(encoder, pair, **settings), batches(pair)
    assert is_stackable(group[0])
    stacked = stack(group)
    losses = [loss(model, batch) for model, batch in zip(group, own, strict=True)]
    combined = loss(stacked, together)
    assert_close(combined, alternate(losses))
    combined.sum().backward()
    for values in losses:
        values.sum().backward()
    gradients = dict(stacked.named_parameters())
    for number, model in enumerate(group):
        for name, parameter in model.named_parameters():
            assert_close(gradients[name].grad[number], parameter.grad)


def test_concatenated_batches_keep_the_model_of_each_row():
    group, (own, together) = models(), batches(False)
    stacked = stack(group)
    names = [field.name for field in fields(together) if getattr(together, field.name) is not None]
    twice = replace(together, **{name: torch.cat([getattr(together, name)] * 2) for name in names})
    assert_close(loss(stacked, twice), alternate([loss(m, b) for m, b in zip(group, own, strict=True)]).repeat(2))


def test_the_change_of_logits_per_unit_of_attention_is_that_of_each_model():
    group, (own, together) = models(), batches(False)
    stacked = stack(group)
    reach = [model.reach(model.encode(batch)) for model, batch in zip(group, own, strict=True)]
    assert_close(stacked.reach(stacked.encode(together)), alternate(reach))


def test_an_unstacked_model_has_its_weights_back():
    group = models("bigru", pair=True)
    before = [{name: value.clone() for name, value in model.state_dict().items()} for model in group]
    stacked = stack(group)
    assert stacked.state_dict().keys() == before[0].keys()
    with torch.no_grad():
        for parameter in stacked.parameters():
            parameter.mul_(2)
    unstack(stacked, group)
    for model, weights in zip(group, before, strict=True):
        for name, value in model.state_dict().items():
            assert torch.equal(value, 2 * weights[name])


def test_the_padding_vector_gets_no_gradient_and_frozen_vectors_stay_frozen():
    group, (_, together) = models(), batches(False)
    stacked = stack(group)
    loss(stacked, together).sum().backward()
    assert not stacked.encoder.embedding.weight.grad[:, 0].any()
    for model in group:
        model.encoder.embedding.weight.requires_grad_(False)
    assert not stack(group).encoder.embedding.weight.requires_grad


def test_a_transformer_is_not_stackable():
    model = Classifier(tiny.bert(8), Architecture(hidden=4), tiny.CLASSES, pair=False)
    assert not is_stackable(model)
