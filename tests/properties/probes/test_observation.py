"""What a model shows, and the number that belongs to a text."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from torch import Tensor
from torch.backends import cudnn

from contract.tiny import TEXTS, assert_close, batch, cached_classifier, classifier, littered, rows, split, widened
from steadygaze.core.random_key import text_key
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data
from steadygaze.models.inference import with_gradients
from steadygaze.properties.probes.text_perturbations import observe


def test_a_look_is_the_forward_pass_in_double_precision():
    model, texts = classifier(dtype=torch.float32), batch(split())
    seen, forward = observe(model, texts), model(texts)
    assert seen.weights.dtype == seen.probs.dtype == torch.float64
    assert seen.weights.equal(forward.weights.double())
    assert seen.probs.equal(forward.logits.double().softmax(-1))


def test_a_look_at_other_embeddings_reads_those():
    model, texts = cached_classifier(), batch(split())
    embedded = model.embed(texts).detach()
    assert observe(model, texts, embedded).probs.equal(observe(model, texts).probs)
    turned = observe(model, texts, -embedded)
    encoded = model.encode(texts, -embedded)
    assert_close(turned.weights, model.attend(model.score(encoded), texts.mask).detach())
    assert not torch.allclose(turned.probs, observe(model, texts).probs)


def test_slopes_has_gradients_evaluation_mode_and_no_cudnn_and_puts_all_back():
    model = classifier().train()
    before = cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32
    with torch.no_grad(), with_gradients(model):
        assert torch.is_grad_enabled()
        assert not any(module.training for module in model.modules())
        assert not cudnn.enabled
        assert not cudnn.allow_tf32
    assert all(module.training for module in model.modules())
    assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32) == before


# --- text_key


def texts(ids: Tensor) -> Batch:
    there = ids > 0
    return Batch(ids, there, there, torch.arange(len(ids)))


@given(rows)
def test_a_text_has_the_same_key_in_any_batch_padding_and_split(patterns):
    data = split(patterns)
    keys = text_key(batch(data))
    assert text_key(littered(widened(batch(data), 4))).equal(keys)
    assert text_key(batch(data, range(len(data))[::-1])).equal(keys.flip(0))
    for row in range(len(data)):
        assert text_key(batch(data, [row])).equal(keys[row : row + 1])
        elsewhere = Data(data.text.select([0, row, row]))
        assert text_key(batch(elsewhere))[1:].tolist() == [keys[row].item()] * 2


def test_neither_label_nor_question_enters_the_key():
    alone, pairs = split(), split(pair=True)
    assert text_key(batch(Data(alone.text, None, np.zeros(len(TEXTS), np.int64)))).equal(text_key(batch(pairs)))


@pytest.mark.parametrize("first", [1, 29_000])  # the first words of a vocabulary, and late ones
def test_different_texts_have_different_keys(first):
    """Every text of one to four tokens out of ten: orders, repetitions, beginnings of one another."""
    every = [[*row, *[0] * (4 - n)] for n in range(1, 5) for row in product(range(first, first + 10), repeat=n)]
    keys = text_key(texts(torch.tensor(every)))
    assert len(keys.unique()) == len(every) == 11_110


def test_keys_are_spread_over_all_64_bits():
    keys = text_key(texts(torch.arange(1, 4001).unsqueeze(-1)))
    bits = (keys.unsqueeze(-1) >> torch.arange(64)) & 1
    assert (bits.double().mean(0) - 0.5).abs().max() < 5 * 0.5 / 4000**0.5


def test_a_long_text_does_not_run_out_of_places():
    ids = torch.full((2, 512), 30_521)
    ids[1, -1] = 30_520
    first, second = text_key(texts(ids)).tolist()
    assert first != second
