"""What every classifier promises, whatever its parts: padding and company change neither a value nor a gradient."""

from itertools import cycle, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.tiny import (
    CLASSES,
    ENCODER_NAMES,
    TEXTS,
    assert_close,
    batch,
    cached_classifier,
    gradients,
    littered,
    read,
    rows,
    split,
    widened,
)
from steadygaze.models.attention_layers import ATTENTIONS, DECODERS, SCORES

PAIR = pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])
SHAPES = [(torch.float64, *shape) for shape in product(SCORES, ATTENTIONS, DECODERS)]
SHAPES += [(torch.float32, s, a, d) for a in ATTENTIONS for s, d in zip(cycle(SCORES), DECODERS, strict=False)]
SHAPE = pytest.mark.parametrize(("dtype", "score", "attention", "decoder"), SHAPES)
ENCODER = pytest.mark.parametrize("encoder", ENCODER_NAMES)
FEW = settings(max_examples=8, deadline=None)


@pytest.mark.sweep
@SHAPE
@PAIR
@ENCODER
def test_padding_and_company_change_neither_value_nor_gradient(encoder, pair, dtype, score, attention, decoder):
    model = cached_classifier(encoder, pair, dtype, score=score, attention=attention, decoder=decoder)
    data = split(pair=pair)
    whole, wide = batch(data), widened(batch(data), 3)
    parts = [batch(data, chosen) for chosen in ([4, 1, 0], [2], [6, 3, 5])]
    (expected,), reference = read(model, whole)
    assert expected.logits.shape == (len(TEXTS), CLASSES)
    assert expected.logits.isfinite().all()
    assert all(value.isfinite().all() for value in reference.values())

    (result,), gradient = read(model, wide)
    width = whole.ids.shape[1]
    assert_close(result.logits, expected.logits, dtype)
    assert_close(result.weights[:, :width], expected.weights, dtype)
    assert not result.weights[~wide.mask].any()
    assert_close(gradient, reference, dtype)

    result, gradient = read(model, *parts)
    assert_close(torch.cat([forward.logits for forward in result]), expected.logits[[4, 1, 0, 2, 6, 3, 5]], dtype)
    assert_close(gradient, reference, dtype)


@pytest.mark.sweep
@PAIR
@ENCODER
@FEW
@given(texts=rows, questions=rows, columns=st.integers(0, 4))
def test_a_text_reads_the_same_alone_and_in_any_batch(encoder, pair, texts, questions, columns):
    model = cached_classifier(encoder, pair)
    data = split(texts, pair, questions)
    together = model(widened(batch(data), columns))
    for row, text in enumerate(texts):
        alone = model(batch(data, [row]))
        assert_close(together.logits[row : row + 1], alone.logits)
        assert_close(together.weights[row : row + 1, : len(text)], alone.weights)
        assert_close(together.encoded.hidden[row : row + 1, : len(text)], alone.encoded.hidden)


@pytest.mark.sweep
@PAIR
@ENCODER
def test_what_stands_in_the_padding_is_never_read(encoder, pair):
    model = cached_classifier(encoder, pair)
    clean = widened(batch(split(pair=pair)), 2)
    dirty = littered(clean)
    assert not torch.equal(clean.ids, dirty.ids)
    assert_close(model(dirty).logits, model(clean).logits)
    assert_close(gradients(model, dirty), gradients(model, clean))


@PAIR
@ENCODER
def test_embeddings_of_padding_get_no_gradient_and_those_of_tokens_do(encoder, pair):
    model = cached_classifier(encoder, pair)
    texts = batch(split(("swwws", "sws"), pair))
    embedded = model.embed(texts).detach().requires_grad_()
    encoded = model.encode(texts, embedded)
    logits = model.decode(encoded, model.attend(model.score(encoded), texts.mask))
    (gradient,) = torch.autograd.grad(logits.square().sum(), embedded)
    assert not gradient[~texts.present].any()
    assert gradient[texts.mask].any(-1).all()


@pytest.mark.sweep
@pytest.mark.parametrize("attention", ATTENTIONS)
@PAIR
@ENCODER
def test_a_text_without_any_word_gets_no_attention_and_finite_logits(encoder, pair, attention):
    model = cached_classifier(encoder, pair, attention=attention)
    (forward,), result = read(model, batch(split(("s", "ss"), pair)))
    assert torch.equal(forward.weights, torch.zeros(2, 2, dtype=torch.float64))
    assert forward.logits.isfinite().all()
    assert all(value.isfinite().all() for value in result.values())
    assert any(value.any() for name, value in result.items() if name.startswith("decoder"))


@PAIR
@ENCODER
def test_the_extension_points_in_sequence_are_the_forward_pass(encoder, pair):
    model = cached_classifier(encoder, pair)
    texts = batch(split(pair=pair))
    encoded = model.encode(texts, model.embed(texts))
    scores = model.score(encoded)
    weights = model.attend(scores, texts.mask)
    forward = model(texts)
    assert torch.equal(forward.scores, scores)
    assert torch.equal(forward.weights, weights)
    assert torch.equal(forward.logits, model.decode(encoded, weights))


@PAIR
@ENCODER
def test_every_parameter_is_used(encoder, pair):
    model = cached_classifier(encoder, pair)
    result = gradients(model, batch(split(pair=pair)))
    assert [name for name, _ in model.named_parameters() if name not in result or not result[name].any()] == []
