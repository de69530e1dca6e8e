"""How much the predicted class hangs on each word: by hand, in closed form, and by small steps."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from contract.tiny import batch, cached_classifier, classifier, split
from steadygaze.core.types import Batch
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.properties.probes.text_perturbations import gradient

PATTERNS = ["s" + "w" * n + "s" for n in (5, 0, 1, 9, 3)] + ["ww"]
DETACH = pytest.mark.parametrize("detach", [True, False], ids=["weights-fixed", "through-weights"])
PAIR = pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])


def two_words(third: float = 0.0) -> Classifier:
    """Two hidden units, hidden = ReLU(x + b), b = (−1, 0); logits = hidden; equal scores for all words."""
    shape = Architecture(hidden=2, dimension=2)
    model = Classifier(word_encoder("average", shape, 4, False), shape, 2, False).double().eval()
    values = {
        "encoder.embedding.weight": [[0, 0], [2, 1], [3, 1], [1, third]],
        "encoder.text.project.weight": [[1, 0], [0, 1], [0, 0], [0, 0]],
        "encoder.text.project.bias": [-1, 0, 0, 0],
        "scorer.weigh.weight": [[0, 0]],
        "decoder.output.weight": [[1, 0, 0, 0], [0, 1, 0, 0]],
        "decoder.output.bias": [0, 0],
    }
    parameters = dict(model.named_parameters())
    for name, value in values.items():
        parameters[name].data = torch.tensor(value, dtype=torch.float64)
    return model


def texts(ids: list[list[int]]) -> Batch:
    rows = torch.tensor(ids)
    return Batch(rows, rows > 0, rows > 0, torch.arange(len(ids)))


@DETACH
def test_two_words_by_hand(detach):
    """x = (2, 1) and (3, 1): hidden (1, 1) and (2, 1), weights ½ and ½, logits (3/2, 1): c = 0.

    p = 1 / (1 + e^−½) and ∂p/∂z = p(1 − p)·(1, −1), so g_t = p(1 − p)·½·|x_t1 − x_t2| = p(1 − p)·(½, 1).
    Weights that are always even have no slope of their own.
    """
    p = 1 / (1 + np.exp(-0.5))
    result = gradient(two_words(), texts([[1, 2, 0]]), detach_attention=detach)
    assert result[0].tolist() == pytest.approx([p * (1 - p) / 2, p * (1 - p), 0], abs=1e-15)


def test_of_classes_alike_the_first_is_the_predicted_one():
    """x = (2, 1) alone: logits (1, 1), p = ½: g = ¼·|2 − 1|.  A mean over both classes would be 0."""
    assert gradient(two_words(), texts([[1]])).item() == pytest.approx(0.25, abs=1e-15)


def test_a_unit_that_is_off_passes_nothing_on():
    """x = (1, −2): hidden (0, 0) with both units off (the first at its corner): 0."""
    assert gradient(two_words(-2.0), texts([[3]])).item() == 0


def closed_form(model: Classifier, batch: Batch, detach: bool) -> list[list[float]]:
    """With h_t = ReLU(P x_t + b), s_t = v·tanh(W h_t + a), w = softmax(s), z = Θ Σ w_t h_t + β, by the chain rule:

    ∂p_c/∂z = p_c (e_c − p),   u = Θᵀ ∂p_c/∂z
    ∂p_c/∂h_t = w_t u  [+ w_t (u·h_t − u·Σ w_s h_s) · Wᵀ(v ∘ (1 − tanh²))]
    g_t = |∂p_c/∂h_t · (P x_t where h_t > 0)|
    """
    value = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    rows = []
    for ids, mask in zip(batch.ids.tolist(), batch.mask.tolist(), strict=True):
        x = value["encoder.embedding.weight"][ids]
        flat = x @ value["encoder.text.project.weight"].T
        h = np.maximum(flat + value["encoder.text.project.bias"], 0)
        inner = np.tanh(h @ value["scorer.project.weight"].T + value["scorer.project.bias"])
        w = np.exp(inner @ value["scorer.weigh.weight"][0]) * mask
        w = w / max(w.sum(), 1e-300)
        z = value["decoder.output.weight"] @ (w @ h) + value["decoder.output.bias"]
        p = np.exp(z) / np.exp(z).sum()
        c = int(p.argmax())
        u = value["decoder.output.weight"].T @ (p[c] * (np.eye(len(p))[c] - p))
        slope = w[:, None] * u
        if not detach:
            bend = (value["scorer.weigh.weight"] * (1 - inner**2)) @ value["scorer.project.weight"]
            slope = slope + (w * (h @ u - w @ h @ u))[:, None] * bend
        rows.append([abs(float(slope_sum)) for slope_sum in (slope * flat * (h > 0)).sum(-1) * mask])
    return rows


@DETACH
def test_the_closed_form_of_words_without_context(detach):
    model, inputs = classifier("average"), batch(split(PATTERNS))
    for parameter in (model.scorer.weigh.weight, model.decoder.output.weight):
        parameter.data *= 4
    result = gradient(model, inputs, detach_attention=detach)
    for row, expected in zip(result.tolist(), closed_form(model, inputs, detach), strict=True):
        assert row == pytest.approx(expected, abs=1e-14)
    assert float(result.max()) > 0.01


def by_steps(model: Classifier, batch: Batch, detach: bool, step: float = 1e-5) -> Tensor:
    """Σ_d ∂p_c/∂x_td · x_td is the slope of p_c along x_t itself: (p_c(x_t(1 + ε)) − p_c(x_t(1 − ε))) / 2ε."""
    with torch.no_grad():
        embedded, forward = model.embed(batch), model(batch)
        predicted = forward.logits.argmax(-1, keepdim=True)

        def chance(vectors: Tensor) -> Tensor:
            encoded = model.encode(batch, vectors)
            weights = forward.weights if detach else model.attend(model.score(encoded), batch.mask)
            return model.decode(encoded, weights).softmax(-1).gather(-1, predicted).squeeze(-1)

        columns = []
        for place in range(batch.ids.shape[1]):
            moved = torch.zeros_like(embedded)
            moved[:, place] = step * embedded[:, place]
            columns.append((chance(embedded + moved) - chance(embedded - moved)).abs() / (2 * step))
    return torch.stack(columns, -1).masked_fill(~batch.mask, 0.0)


@pytest.mark.sweep
@pytest.mark.parametrize(("encoder", "pair"), list(product(["bilstm", "cnn", "average", "transformer"], [False, True])))
@DETACH
def test_the_gradient_is_what_small_steps_find(detach, encoder, pair):
    model, inputs = cached_classifier(encoder, pair), batch(split(PATTERNS, pair))
    result = gradient(model, inputs, detach_attention=detach)
    torch.testing.assert_close(result, by_steps(model, inputs, detach), rtol=1e-6, atol=1e-9)
    assert (result[inputs.mask] > 0).double().mean() > 0.9


def test_weights_held_fixed_give_another_gradient_than_weights_that_move():
    model, inputs = cached_classifier("bilstm"), batch(split(PATTERNS))
    fixed, free = gradient(model, inputs), gradient(model, inputs, detach_attention=False)
    assert (fixed - free)[inputs.mask.sum(-1) > 1].abs().amax(-1).min() > 1e-6
    assert torch.allclose(fixed[2], free[2], rtol=0, atol=1e-15)  # the one weight of one word is 1, come what may


def test_a_sure_prediction_has_a_gradient_in_single_precision_too():
    """Logits 20 and more apart: a single rounds p to 1, and the slope of a constant is 0."""
    model, inputs = classifier("bilstm", dtype=torch.float32), batch(split(PATTERNS))
    model.decoder.output.weight.data *= 10
    model.decoder.output.bias.data[0] += 30
    assert (model(inputs).logits.softmax(-1).amax(-1) == 1).all()
    result = gradient(model, inputs)[inputs.mask]
    assert (result > 0).all()
    torch.testing.assert_close(result, gradient(model.double(), inputs)[inputs.mask], rtol=1e-2, atol=0)
