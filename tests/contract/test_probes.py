"""The contract of every probe: an unchanged model, no change at strength zero, each text by itself."""

from collections.abc import Iterator
from dataclasses import fields

import pytest
import torch
from torch import Tensor
from torch.backends import cudnn

from contract.probing import IDLE, PROBES, PlantedError, failing, in_use, spied, state
from contract.tiny import QUESTIONS, TEXTS, assert_close, batch, cached_classifier, classifier, littered, split, widened
from steadygaze.models.attention_layers import ATTENTIONS
from steadygaze.properties.probes.text_perturbations import gradient, observe

EXTENSION_POINTS = ("embed", "encode", "score", "attend", "decode")
PROBE = pytest.mark.parametrize("name", PROBES)
MODEL = pytest.mark.parametrize("encoder", ["bilstm", "cnn", "transformer"])
PAIR = pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])


# --- inert


@pytest.fixture
def unusual_flags() -> Iterator[None]:
    """Not the defaults, so that putting those back would be seen."""
    with cudnn.flags(enabled=True, benchmark=True, deterministic=True, allow_tf32=True):
        yield


@pytest.mark.sweep
@pytest.mark.usefixtures("unusual_flags")
@PAIR
@MODEL
@PROBE
def test_a_probe_leaves_model_batch_generator_and_flags_unchanged(name, encoder, pair):
    model, texts = in_use(encoder, pair), batch(split(pair=pair))
    copies = {field.name: getattr(texts, field.name) for field in fields(texts)}
    copies = {key: None if value is None else value.clone() for key, value in copies.items()}
    before = state(model)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            PROBES[name](model, texts)
    assert state(model) == before
    for key, value in copies.items():
        assert value is None or value.equal(getattr(texts, key))


@pytest.mark.sweep(keep=5)
@pytest.mark.usefixtures("unusual_flags")
@PROBE
def test_a_probe_leaves_the_model_unchanged_if_any_call_of_an_extension_point_fails(name):
    model, texts = in_use("bilstm"), batch(split())
    before = state(model)
    for extension_point in EXTENSION_POINTS:
        with failing(model, extension_point, -1) as calls:
            PROBES[name](model, texts)
        assert calls, f"{name} does not go through {extension_point}"
        for at in sorted({0, len(calls) // 2, len(calls) - 1}):
            with failing(model, extension_point, at), pytest.raises(PlantedError):
                PROBES[name](model, texts)
            assert state(model) == before


@pytest.mark.sweep
@MODEL
@PROBE
def test_a_model_in_training_shows_what_it_shows_in_evaluation(name, encoder):
    model, texts = in_use(encoder), batch(split())
    result = PROBES[name](model, texts)
    for actual, other in zip(result, PROBES[name](model.eval(), texts), strict=True):
        assert actual.equal(other)


# --- strength zero, no change


@pytest.mark.sweep
@PAIR
@MODEL
@pytest.mark.parametrize("name", IDLE)
def test_a_probe_of_strength_zero_changes_nothing(name, encoder, pair):
    model, texts = cached_classifier(encoder, pair), widened(batch(split(pair=pair)), 2)
    clean = observe(model, texts)
    *weights, probs = IDLE[name](model, texts)
    assert probs.reshape(clean.probs.shape).equal(clean.probs)
    for result in weights:
        assert result.equal(clean.weights)


# --- each text by itself


def of_text(values: Tensor, row: int, length: int, width: int) -> Tensor:
    """The result of one text, without padding if it is about tokens."""
    return values[row, :length] if values.shape[1:] == (width,) else values[row]


@pytest.mark.sweep(keep=6)
@PAIR
@MODEL
@PROBE
def test_a_text_gets_the_same_answer_in_any_batch_padded_or_not(name, encoder, pair):
    model, data, probe = cached_classifier(encoder, pair), split(pair=pair), PROBES[name]
    texts = batch(data)
    together = probe(model, texts)
    order = [*range(len(TEXTS))][::-1]
    turned, wide = probe(model, batch(data, order)), probe(model, littered(widened(texts, 3)))
    for row, text in enumerate(TEXTS):
        alone = probe(model, batch(data, [row]))
        for i, values in enumerate(together):
            expected = of_text(values, row, len(text), texts.ids.shape[1])
            assert_close(of_text(alone[i], 0, len(text), len(text)), expected)
            assert_close(of_text(turned[i], order.index(row), len(text), texts.ids.shape[1]), expected)
            assert_close(of_text(wide[i], row, len(text), texts.ids.shape[1] + 3), expected)


@PROBE
def test_a_probe_of_the_same_batch_gives_the_same_again_whatever_was_drawn_between(name):
    model, texts = cached_classifier(), batch(split())
    first = PROBES[name](model, texts)
    torch.rand(3)
    for actual, other in zip(first, PROBES[name](model, texts), strict=True):
        assert actual.equal(other)


# --- what may be touched


@pytest.mark.sweep
@PAIR
@MODEL
@PROBE
def test_special_tokens_padding_and_questions_are_never_touched(name, encoder, pair):
    model, texts = cached_classifier(encoder, pair), widened(batch(split(pair=pair)), 2)
    clean = model.embed(texts).detach()
    special = texts.present & ~texts.mask
    with spied(model) as seen:
        PROBES[name](model, texts)
    assert seen
    for inputs, embedded in seen:
        rows, width = inputs.index, inputs.ids.shape[1]  # erasure reads what is left of texts in batches of its own
        assert (inputs.present.sum(-1) <= texts.present.sum(-1)[rows]).all()
        left = inputs.present & ~inputs.mask
        assert [row[keep].tolist() for row, keep in zip(inputs.ids, left, strict=True)] == [
            row[keep].tolist() for row, keep in zip(texts.ids[rows], special[rows], strict=True)
        ]
        assert not inputs.ids[~inputs.present].any()
        if embedded is not None:
            assert inputs.mask.equal(texts.mask[rows, :width])
            assert embedded[~inputs.mask].equal(clean[rows, :width][~inputs.mask])
        if pair:
            assert inputs.question_ids.equal(texts.question_ids[rows])
            assert inputs.question_present.equal(texts.question_present[rows])


@pytest.mark.parametrize("name", [name for name in PROBES if name not in ("look", "gradient")])
def test_a_probe_of_positive_strength_changes_something(name):
    """So the tests above are about something."""
    model, texts = cached_classifier(), batch(split())
    clean = observe(model, texts)
    compared = {"gradient-through-attention": gradient(model, texts)}.get(name, clean.probs)
    result = PROBES[name](model, texts)
    result = result[1] if len(result) > 1 else result[0]
    result = result[:, 1] if result.ndim == 3 else result
    several = texts.mask.sum(-1) > 1
    assert (result - compared).abs().amax(-1)[several].min() > 1e-6


@pytest.mark.sweep
@PAIR
@MODEL
@PROBE
def test_texts_of_one_word_or_none_give_finite_numbers_of_the_right_shape_and_no_gradients(name, encoder, pair):
    model, texts = cached_classifier(encoder, pair), batch(split(pair=pair, questions=[*QUESTIONS[1:], "w"]))
    assert {0, 1} < set(texts.mask.sum(-1).tolist())
    for values in PROBES[name](model, texts):
        assert len(values) == len(texts)
        assert values.isfinite().all()
        assert not values.requires_grad
        if values.shape == texts.ids.shape:
            assert not values[~texts.mask].any()
        if values.is_floating_point():
            assert values.dtype == torch.float64


@pytest.mark.sweep
@pytest.mark.parametrize("attention", ATTENTIONS)
@PROBE
def test_numbers_are_finite_under_every_attention_in_single_precision(name, attention):
    model = classifier("cnn", False, torch.float32, attention=attention)
    model.decoder.output.weight.data *= 300  # as sure as can be
    for values in PROBES[name](model, batch(split())):
        assert values.isfinite().all()
