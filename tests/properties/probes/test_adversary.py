"""The farthest attention that changes nothing: exact for two classes, searched for with more."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from torch.nn.functional import one_hot

from contract import tiny
from contract.tiny import batch, classifier, littered, split, widened
from steadygaze.core.random_key import RandomKey
from steadygaze.models.classifier import Classifier
from steadygaze.properties.probes import counterfactual_attention as exact
from steadygaze.properties.probes.counterfactual_attention import (
    MAX_CHANGE,
    FoundAttention,
    adversarial_attention,
    farthest_attention,
    hidden_states,
    search_attention,
)
from techniques.byhand import by_hand, texts

KEY = RandomKey(3)
PATTERNS = ["s" + "w" * n + "s" for n in (3, 9, 1, 0, 5, 2, 7)]
ROUNDING = 1e-12
LN3 = math.log(3)


def opinionated(encoder: str = "bilstm", **shape: str) -> Classifier:
    """Attention and decoder that care."""
    model = classifier(encoder, **shape)
    model.decoder.output.weight.data *= 8
    for parameter in model.scorer.parameters():
        parameter.data *= 4
    return model


@pytest.fixture
def two_classes(monkeypatch):
    monkeypatch.setattr(tiny, "CLASSES", 2)


# --- exact


def even_pair(allowed: float) -> FoundAttention:
    """Even weights on two words of margins v = (0, 4 ln 3): m = 2 ln 3, p = 9/10."""
    own, nothing = torch.full((1, 2), 0.5, dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64)
    reach = torch.stack([nothing, nothing + torch.tensor([0, 4 * LN3], dtype=torch.float64)], -1)
    logits = torch.tensor([[0, 2 * LN3]], dtype=torch.float64)
    return farthest_attention(own, logits, reach, torch.ones(1, 2, dtype=torch.bool), allowed)


def test_two_words_by_hand():
    """ε = 3/20: p may be ¾ and more, so that m ≥ ln 3, and λ ≤ ¾ on the first word.

    All on the second: p = 81/82, within ε, and JSD((½, ½), (0, 1)) = ¼ ln 2 + ¼ ln ⅔ + ½ ln 4/3 = 0.216.  That is more
    than JSD((½, ½), (¾, ¼)) = 0.034.
    """
    result = even_pair(0.15)
    assert result.weights.tolist() == [[0.0, 1.0]]
    expected = 0.25 * math.log(2) + 0.25 * math.log(2 / 3) + 0.5 * math.log(4 / 3)
    assert result.distance.item() == pytest.approx(expected, abs=ROUNDING)
    assert result.change.item() == pytest.approx(81 / 82 - 0.9, abs=ROUNDING)


def test_two_words_by_hand_with_a_smaller_bound():
    """ε = 1/20: 81/82 is too far from 9/10.  p = 0.95 = 19/20 has m = ln 19, so 1 − λ = ln 19 / (4 ln 3) = 0.670;
    p = 0.85 = 17/20 has m = ln 17/3, 1 − λ = 0.395.  The first is farther from ½."""
    result = even_pair(0.05)
    second = math.log(19) / (4 * LN3)
    assert result.weights[0].tolist() == pytest.approx([1 - second, second], abs=ROUNDING)
    assert result.distance.item() == pytest.approx(jensenshannon([0.5, 0.5], [1 - second, second]) ** 2, abs=ROUNDING)
    assert result.change.item() == pytest.approx(0.05, abs=ROUNDING)


@pytest.mark.usefixtures("two_classes")
@pytest.mark.parametrize("seed", range(6))
def test_no_attention_of_a_fine_grid_is_farther_and_some_come_near(seed):
    """Every attention in steps of 1/60 over four words, decoded by the model itself, and SciPy's distance."""
    torch.manual_seed(seed)
    model, inputs = opinionated(), batch(split(["swwwws"]))
    torch.nn.init.normal_(model.decoder.output.weight, std=4.0)
    result, held = adversarial_attention(model, inputs, KEY), hidden_states(model, inputs)
    steps = np.array([(i, j, k, 60 - i - j - k) for i in range(61) for j in range(61 - i) for k in range(61 - i - j)])
    other = torch.from_numpy(steps / 60)
    wide = torch.zeros(len(other), 6, dtype=torch.float64)
    wide[:, inputs.mask[0]] = other
    with torch.no_grad():
        encoded = model.encode(inputs)
        many = replace(encoded, hidden=encoded.hidden.expand(len(other), -1, -1))
        probs = model.decode(many, wide).softmax(-1)
    change = (probs - held.logits.softmax(-1)).abs().sum(-1) / 2
    own = held.weights[0, inputs.mask[0]].numpy()
    distance = jensenshannon(np.broadcast_to(own, other.shape), other.numpy(), axis=1) ** 2
    highest = np.where(change.numpy() <= MAX_CHANGE, distance, 0).max()
    assert result.distance.item() >= highest - ROUNDING
    assert result.distance.item() <= highest + 0.05


@pytest.mark.usefixtures("two_classes")
@pytest.mark.parametrize("encoder", ["bilstm", "transformer"])
def test_the_reported_divergence_of_the_attention_is_correct_and_no_search_exceeds_it(encoder):
    model, inputs = opinionated(encoder), batch(split(PATTERNS))
    held, result = hidden_states(model, inputs), adversarial_attention(model, inputs, KEY)
    own = held.weights.numpy()
    for row in range(len(inputs)):
        if inputs.mask[row].any():
            real = inputs.mask[row].numpy()
            distance = jensenshannon(own[row, real], result.weights[row].numpy()[real]) ** 2
            assert result.distance[row].item() == pytest.approx(distance, abs=1e-9)
    with torch.no_grad():
        probs = model.decode(model.encode(inputs), result.weights).softmax(-1)
    change = (probs - held.logits.softmax(-1)).abs().sum(-1) / 2
    torch.testing.assert_close(result.change, change, rtol=0, atol=1e-10)
    assert (result.change <= MAX_CHANGE + ROUNDING).all()
    assert not result.weights[~inputs.mask].any()
    torch.testing.assert_close(result.weights.sum(-1), inputs.mask.any(-1).double())
    near = search_attention(held, inputs, KEY, restarts=3, steps=80)
    assert (near.distance <= result.distance + ROUNDING).all()
    assert (near.distance >= 0.2 * result.distance).all()
    assert (result.distance[inputs.mask.sum(-1) < 2] == 0).all()


@pytest.mark.usefixtures("two_classes")
def test_tokens_with_equal_decoder_outputs_leave_attention_free():
    """All words one word: any attention decodes alike, and the farthest is all on the lightest."""
    model, inputs = by_hand([(1.0, 2.0), (0.0, 2.0)]), texts([1, 1, 1, 2])
    own = hidden_states(model, inputs).weights[0]
    result = adversarial_attention(model, inputs, KEY)
    assert result.weights[0].tolist() == one_hot(own.argmin(), 4).tolist()
    assert result.distance.item() == pytest.approx(jensenshannon(own.numpy(), result.weights[0].numpy()) ** 2, abs=1e-9)


@pytest.mark.usefixtures("two_classes")
def test_a_sure_prediction_may_become_surer_without_end():
    """p = 1 to the last digit: any margin above that of 0.95 will do."""
    model, inputs = opinionated(), batch(split(["swwwws"]))
    model.decoder.output.bias.data += torch.tensor([0.0, 60.0])
    assert hidden_states(model, inputs).logits.softmax(-1)[0, 1] == 1
    result = adversarial_attention(model, inputs, KEY)
    lightest = hidden_states(model, inputs).weights.masked_fill(~inputs.mask, 2.0).argmin()
    assert result.weights[0].argmax() == lightest
    assert result.weights.max() == 1


@pytest.mark.usefixtures("two_classes")
def test_pairs_in_parts_are_the_same(monkeypatch):
    model, inputs = opinionated(), batch(split(PATTERNS))
    whole = adversarial_attention(model, inputs, KEY)
    monkeypatch.setattr(exact, "MAX_PAIRS", 1)
    parts = adversarial_attention(model, inputs, KEY)
    assert parts.distance.equal(whole.distance)
    assert parts.weights.equal(whole.weights)


# --- searched for


@pytest.mark.parametrize(("decoder", "encoder"), [("linear", "transformer"), ("mlp", "bilstm")])
def test_a_search_stays_within_the_bound_and_is_reported_correctly(decoder, encoder):
    model, inputs = opinionated(encoder, decoder=decoder), batch(split(PATTERNS))
    held = hidden_states(model, inputs)
    result = search_attention(held, inputs, KEY, restarts=2, steps=100)
    assert (result.change <= MAX_CHANGE).all()
    with torch.no_grad():
        encoded = model.encode(inputs)
        probs = model.decode(encoded, result.weights).softmax(-1)
    change = (probs - held.logits.softmax(-1)).abs().sum(-1) / 2
    torch.testing.assert_close(result.change, change, rtol=0, atol=1e-10)
    several = inputs.mask.sum(-1) > 2
    assert (result.distance[several] > 0.05).all()
    assert (result.distance[inputs.mask.sum(-1) < 2] < ROUNDING).all()
    for row in several.nonzero().squeeze(-1).tolist():
        real = inputs.mask[row].numpy()
        distance = jensenshannon(held.weights[row].numpy()[real], result.weights[row].numpy()[real]) ** 2
        assert result.distance[row].item() == pytest.approx(distance, abs=1e-9)


def test_more_starts_and_more_steps_find_no_less():
    model, inputs = opinionated(), batch(split(PATTERNS))
    held = hidden_states(model, inputs)
    few, long, many = (
        search_attention(held, inputs, KEY, restarts=r, steps=s).distance for r, s in ((1, 20), (1, 60), (3, 20))
    )
    assert (long >= few).all()
    assert (many >= few).all()
    assert (many > few).any()


def test_where_any_attention_will_do_every_step_leads_away_from_the_models_own():
    model, inputs = opinionated(), batch(split(PATTERNS))
    model.decoder.output.weight.data.zero_()
    held = hidden_states(model, inputs)
    start, way, end = (search_attention(held, inputs, KEY, restarts=1, steps=s).distance for s in (0, 50, 100))
    several = inputs.mask.sum(-1) > 1
    assert (way > start)[several].all()
    assert (end > way)[several].all()


def test_an_attention_that_matters_to_every_word_cannot_be_moved():
    """Hidden states far apart: any other attention is another prediction, and the search comes back to its own."""
    model, inputs = by_hand([(0.0, 400.0), (0.0, -400.0)], ((0, 0), (0, 1), (1, 0))), texts([1, 2])
    result = search_attention(hidden_states(model, inputs), inputs, KEY, restarts=2, steps=30)
    assert result.distance.item() < 1e-4
    assert (result.weights - 0.5).abs().max() < 0.01


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decoder", ["linear", "mlp"])
def test_a_text_gets_the_same_attention_in_any_batch(decoder, dtype):
    data = split(PATTERNS)
    model = opinionated(decoder=decoder).to(dtype)

    def search(inputs):
        return search_attention(hidden_states(model, inputs), inputs, KEY, restarts=2, steps=60)

    whole = search(batch(data))
    for other, rows in ((littered(widened(batch(data), 4)), range(7)), (batch(data, [6, 1, 4]), [6, 1, 4])):
        again = search(other)
        torch.testing.assert_close(again.distance, whole.distance[list(rows)], rtol=0, atol=1e-5)
        assert not again.weights.requires_grad
