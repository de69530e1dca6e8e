"""Classifier and its settings: the requested parts, in the requested shapes."""

from typing import get_args, get_type_hints

import pytest
import torch

from contract.tiny import CLASSES, assert_close, batch, classifier, encoder, split
from steadygaze.core.errors import UserError
from steadygaze.core.settings import build
from steadygaze.models.attention_layers import ATTENTIONS, DECODERS, SCORES
from steadygaze.models.classifier import Architecture, Classifier, word_encoder

REGISTRIES = {"score": SCORES, "attention": ATTENTIONS, "decoder": DECODERS}


@pytest.mark.parametrize("field", REGISTRIES)
def test_a_user_may_choose_every_registered_part_and_no_other(field):
    assert set(get_args(get_type_hints(Architecture)[field])) == set(REGISTRIES[field])
    with pytest.raises(UserError, match=f"setting '{field}': found 'nonsense'"):
        build(Architecture, {field: "nonsense"})


@pytest.mark.parametrize("field", REGISTRIES)
def test_the_model_has_the_requested_parts(field):
    part = {"score": "scorer"}.get(field, field)
    for name, kind in REGISTRIES[field].items():
        assert type(getattr(classifier("average", **{field: name}), part)) is kind


@pytest.mark.parametrize("values", [{"hidden": 1}, {"dimension": 0}, {"dropout": 1.0}, {"dropout": -0.1}])
def test_shapes_out_of_range_are_refused(values):
    with pytest.raises(UserError, match=f"setting '{next(iter(values))}'"):
        build(Architecture, values)


def test_embeddings_that_are_given_take_the_place_of_the_batchs_own():
    model, texts = classifier(), batch(split())
    embedded = model.embed(texts)
    assert_close(model.encode(texts, embedded).hidden, model.encode(texts).hidden)
    assert (model.encode(texts, embedded + 1).hidden - model.encode(texts).hidden).abs().max() > 0.01
    assert embedded.shape == (*texts.ids.shape, 5)


def test_other_weights_can_be_put_through_the_decoder():
    model, texts = classifier(), batch(split())
    encoded = model.encode(texts)
    uniform = texts.mask.double() / texts.mask.sum(-1, keepdim=True).clamp_min(1)
    logits = model.decode(encoded, uniform)
    expected = torch.stack(
        [model.decoder.output(h[m].mean(0)) for h, m in zip(encoded.hidden, texts.mask, strict=True)]
    )
    words = texts.mask.any(-1)
    assert_close(logits[words], expected[words])


@pytest.mark.parametrize("classes", [2, 5])
def test_there_is_one_logit_per_class(classes):
    model = Classifier(encoder("gru", False), Architecture(), classes, False)
    assert model(batch(split())).logits.shape == (len(split()), classes)
    assert classes != CLASSES


def test_an_encoder_that_is_too_large_is_refused_before_it_is_allocated():
    with pytest.raises(
        UserError, match=r"parameters, but at most 2,147,483,648 are allowed: lower 'hidden' or 'dimension'"
    ):
        word_encoder("average", build(Architecture, {"dimension": 4096}), 1 << 31, pair=False)
