"""Weights dealt out anew among the words: which permutations there are, and what is predicted under them."""

from collections import Counter
from itertools import permutations

import pytest
import torch
from scipy import stats

from contract.tiny import batch, cached_classifier, classifier, littered, split, widened
from steadygaze.core.random_key import RandomKey
from steadygaze.models.inference import inference
from steadygaze.properties.probes.counterfactual_attention import CHUNK, permuted_predictions
from steadygaze.properties.probes.text_perturbations import observe
from techniques.byhand import by_hand, texts

KEY = RandomKey(2)
PATTERNS = ["s" + "w" * n + "s" for n in range(9)]
LN3 = torch.tensor(3.0).double().log().item()
DECODER = pytest.mark.parametrize("decoder", ["linear", "mlp"])


def test_two_words_by_hand():
    """Words of vectors (ln 3, 4 ln 3) and 0: w = (¾, ¼), z = (0, 3 ln 3), p = 27/28; permuted z = (0, ln 3), p = ¾."""
    result = permuted_predictions(by_hand([(LN3, 4 * LN3), (0, 0)]), texts([1, 2]), KEY, 400)[0, :, 1]
    same, other = (result - 27 / 28).abs() < 1e-12, (result - 3 / 4).abs() < 1e-12
    assert (same | other).all()
    assert stats.binomtest(int(same.sum()), 400).pvalue > 0.01


@DECODER
def test_every_permutation_of_three_words_is_as_likely_as_every_other(decoder):
    """The six predictions, by decoding the six orders of the weights; a special token and padding keep their 0."""
    model, inputs = classifier("bilstm", decoder=decoder), batch(split(["swsww", "swwwws"]), [0, 1])
    with inference(model):
        forward = model(inputs)
        places = inputs.mask[0].nonzero().squeeze(-1).tolist()
        expected = []
        for order in permutations(places):
            moved = forward.weights.clone()
            moved[0, places] = forward.weights[0, list(order)]
            expected.append(model.decode(forward.encoded, moved)[0].softmax(-1))
    result = permuted_predictions(model, inputs, KEY, 600)[0]
    distance = (result.unsqueeze(1) - torch.stack(expected)).abs().amax(-1)  # (600,6)
    assert distance.amin(-1).max() < 1e-12
    counts = Counter(distance.argmin(-1).tolist())
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > 0.01


@DECODER
@pytest.mark.parametrize("pair", [False, True])
def test_a_text_gets_the_same_permutations_in_any_batch(decoder, pair):
    model, data = classifier("bilstm", pair, decoder=decoder), split(PATTERNS, pair)
    result = permuted_predictions(model, batch(data), KEY, 30)
    torch.testing.assert_close(permuted_predictions(model, littered(widened(batch(data), 4)), KEY, 30), result)
    torch.testing.assert_close(permuted_predictions(model, batch(data, [7, 2, 5]), KEY, 30), result[[7, 2, 5]])


def test_there_are_as_many_permutations_as_requested_and_no_two_parts_are_equal():
    result = permuted_predictions(cached_classifier(), batch(split(["w" * 12])), KEY, 2 * CHUNK + 3)[0, :, 0]
    assert len(result) == 2 * CHUNK + 3
    assert len(result.unique()) == len(result)


def test_one_word_or_none_has_but_one_order_and_even_weights_no_other():
    model = classifier()
    inputs = batch(split(["sws", "s", "swwww"]))
    result, clean = permuted_predictions(model, inputs, KEY, 10), observe(model, inputs).probs
    torch.testing.assert_close(result[:2], clean[:2].unsqueeze(1).expand(-1, 10, -1), rtol=0, atol=1e-15)
    assert (result[2] - clean[2]).abs().max() > 1e-4
    model.scorer.weigh.weight.data.zero_()
    even, clean = permuted_predictions(model, inputs, KEY, 10), observe(model, inputs).probs
    torch.testing.assert_close(even, clean.unsqueeze(1).expand_as(even), rtol=0, atol=1e-15)
