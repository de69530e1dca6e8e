"""Reading with a model: every row once, in order, and nothing left behind."""

import threading

import numpy as np
import pytest
import torch
from torch import nn

from contract.tiny import CLASSES, TEXTS, batch, classifier, encoder, split
from steadygaze.adapters.streaming import map_in_lanes
from steadygaze.models import inference as infer
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.models.inference import evaluation, inference

LONG = [TEXTS[i % len(TEXTS)] for i in range(23)]


def in_use() -> Classifier:
    """A model in the middle of its training: dropout on, one part frozen in evaluation mode, gradients gathered."""
    made = word_encoder("bilstm", Architecture(hidden=4, dimension=5, dropout=0.5), 23, False)
    model = Classifier(made, Architecture(), CLASSES, False).train()
    model.decoder.eval()
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 2.0)
    return model


def look(model: nn.Module) -> tuple[object, ...]:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    hooks = [list(getattr(module, kind)) for module in model.modules() for kind in kinds]
    return [module.training for module in model.modules()], hooks, torch.is_grad_enabled()


@pytest.mark.parametrize("size", [1, 4, 100])
def test_logits_stand_in_the_order_of_the_split(size):
    model, data = classifier(dtype=torch.float32), split(LONG)
    result = infer.logits(model, data, size)
    expected = torch.cat([model(batch(data, [row])).logits for row in range(len(data))])
    assert result.shape == (len(LONG), CLASSES)
    torch.testing.assert_close(result, expected.detach(), rtol=1e-5, atol=1e-5)
    assert (expected[0] - expected[1]).abs().max() > 1e-3  # rows differ, so an order can be wrong


@pytest.mark.sweep
@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize("pair", [False, True])
def test_readings_are_the_forward_passes_of_the_texts_one_by_one(size, pair):
    """Shortest texts are read first and come back in the order of the split, as wide as its longest text."""
    model, data = classifier(pair=pair, dtype=torch.float32), split(LONG, pair)
    read = infer.split_outputs(model, data, size)
    assert read.logits.shape == (len(LONG), CLASSES)
    assert read.weights.shape == read.mask.shape == read.ids.shape == (len(LONG), max(map(len, LONG)))
    for row, text in enumerate(LONG):
        alone, wide = batch(data, [row]), slice(len(text), None)
        forward = model(alone)
        torch.testing.assert_close(read.logits[row], forward.logits[0].detach(), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(read.weights[row, : len(text)], forward.weights[0].detach(), rtol=1e-5, atol=1e-5)
        assert read.ids[row, : len(text)].equal(alone.ids[0])
        assert read.mask[row, : len(text)].tolist() == [kind == "w" for kind in text]
        for padding in (read.weights[row, wide], read.mask[row, wide], read.ids[row, wide]):
            assert not padding.any()
    assert (read.weights[0] - read.weights[2]).abs().max() > 1e-3  # rows differ, so an order can be wrong


def test_readings_of_a_double_model_in_training_are_plain_numbers_that_leave_it_as_it_was():
    model = in_use().double()
    before = look(model)
    read = infer.split_outputs(model, split(LONG), 4)
    assert look(model) == before
    assert read.logits.dtype == read.weights.dtype == torch.float32
    assert [read.logits.requires_grad, read.weights.requires_grad] == [False, False]
    logits = infer.logits(model, split(LONG))
    assert logits.dtype == torch.float64
    torch.testing.assert_close(read.logits, logits.float())


def test_every_row_is_read_once_with_its_own_batch_and_forward_pass():
    model, data = classifier(), split(LONG)
    seen = []
    for rows, texts, forward in infer.forwards(model, data, 4):
        assert texts.index.tolist() == rows.tolist()
        assert len(forward.logits) == len(rows) <= 4
        assert not forward.logits.requires_grad
        seen += rows.tolist()
    assert sorted(seen) == list(range(len(LONG)))
    assert np.diff([len(LONG[row]) for row in seen]).min() >= 0


def test_reading_leaves_a_model_as_it_was():
    model = in_use()
    before, values = look(model), {name: value.clone() for name, value in model.state_dict().items()}
    infer.logits(model, split(LONG), 4)
    assert look(model) == before
    assert all(torch.equal(values[name], value) for name, value in model.state_dict().items())
    assert all((parameter.grad == 2).all() for parameter in model.parameters())


def test_dropout_is_off_while_reading():
    model, data = in_use(), split(LONG)
    assert torch.equal(infer.logits(model, data), infer.logits(model, data))
    assert not torch.equal(model(batch(data)).logits, model(batch(data)).logits)


def test_the_modes_are_back_while_a_forward_pass_is_in_the_callers_hands():
    model = in_use()
    before = look(model)
    reading = infer.forwards(model, split(LONG), 4)
    next(reading)
    assert look(model) == before
    reading.close()
    assert look(model) == before


def test_an_exception_inside_gives_the_modes_back():
    model = in_use()
    before = look(model)

    def fail() -> None:
        with infer.inference(model):
            assert not any(module.training for module in model.modules())
            assert not torch.is_grad_enabled()
            raise KeyError("planted")

    with pytest.raises(KeyError, match="planted"):
        fail()
    assert look(model) == before


def test_what_was_read_may_be_a_constant_of_a_later_loss():
    model, data = classifier(), split(LONG)
    [(_, texts, reference)] = infer.forwards(model, data)
    weights = model.train()(texts).weights
    (weights * reference.weights).sum().backward()
    assert any(parameter.grad is not None and parameter.grad.any() for parameter in model.scorer.parameters())


def test_a_pair_is_read_with_its_question():
    model = Classifier(encoder("gru", True), Architecture(), CLASSES, True).eval()
    logits, other = (infer.logits(model, split(LONG, True, questions)) for questions in (["wws"], ["s"]))
    assert (logits - other).abs().max() > 1e-3


def test_threads_that_enter_evaluation_once_leave_nothing_behind():
    """Modes and cuDNN's flags belong to the process: two threads inside `inference` must not undo each other's."""
    model, cudnn = classifier().train(), torch.backends.cudnn
    before, seen = cudnn.allow_tf32, []
    both = threading.Barrier(2, timeout=60)

    def work(i):
        with inference(model):
            both.wait()
            seen.append((model.training, cudnn.allow_tf32))
            both.wait()

    with evaluation(model):
        list(map_in_lanes(work, range(4), 2))
    assert seen == [(False, False)] * 4
    assert model.training
    assert cudnn.allow_tf32 == before
