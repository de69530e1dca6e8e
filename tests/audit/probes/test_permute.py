"""Weights dealt out anew among the words: which permutations there are, and what is predicted under them."""

from collections import Counter
from itertools import permutations

import pytest
import torch
from scipy import stats

from contract.tiny import batch, cached_classifier, classifier, littered, split, widened
from steadygaze.audit.probes.counterfactual_attention import CHUNK, permuted_predictions
from steadygaze.audit.probes.text_perturbations import observe
from steadygaze.core.random_key import RandomKey
from steadygaze.models.inference import inference
from techniques.byhand import by_hand, texts

KEY = RandomKey(2)
PATTERNS = ["s" + "w" * n + "s" for n in range(9)]
LN3 = torch.tensor(3.0).double().log().item()
DECODER = pytest.mark.parametrize("decoder", ["linear", "mlp"])


def test_two_words_by_hand():
    """Words of vectors (ln 3, 4 ln 3) and 0: w = (¾, ¼), z = (0, 3 ln 3), p = 27/28; exchanged z = (0, ln 3), p = ¾."""
    found = permuted_predictions(by_hand([(LN3, 4 * LN3), (0, 0)]), texts([1, 2]), KEY, 400)[0, :, 1]
    same, other = (found - 27 / 28).abs() < 1e-12, (found - 3 / 4).abs() < 1e-12
    assert (same | other).all()
    assert stats.binomtest(int(same.sum()), 400).pvalue > 0.01


@DECODER
def test_every_permutation_of_three_words_is_as_likely_as_every_other(decoder):
    """The six predictions, by decoding the six orders of the weights; a special token and padding keep their 0."""
    model, given = classifier("bilstm", decoder=decoder), batch(split(["swsww", "swwwws"]), [0, 1])
    with inference(model):
        forward = model(given)
        places = given.mask[0].nonzero().squeeze(-1).tolist()
        expected = []
        for order in permutations(places):
            moved = forward.weights.clone()
            moved[0, places] = forward.weights[0, list(order)]
            expected.append(model.decode(forward.encoded, moved)[0].softmax(-1))
    found = permuted_predictions(model, given, KEY, 600)[0]
    apart = (found.unsqueeze(1) - torch.stack(expected)).abs().amax(-1)  # (600,6)
    assert apart.amin(-1).max() < 1e-12
    counts = Counter(apart.argmin(-1).tolist())
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > 0.01


@DECODER
@pytest.mark.parametrize("pair", [False, True])
def test_a_text_gets_the_same_permutations_in_any_batch(decoder, pair):
    model, data = classifier("bilstm", pair, decoder=decoder), split(PATTERNS, pair)
    found = permuted_predictions(model, batch(data), KEY, 30)
    torch.testing.assert_close(permuted_predictions(model, littered(widened(batch(data), 4)), KEY, 30), found)
    torch.testing.assert_close(permuted_predictions(model, batch(data, [7, 2, 5]), KEY, 30), found[[7, 2, 5]])


def test_as_many_permutations_as_asked_and_no_two_parts_alike():
    found = permuted_predictions(cached_classifier(), batch(split(["w" * 12])), KEY, 2 * CHUNK + 3)[0, :, 0]
    assert len(found) == 2 * CHUNK + 3
    assert len(found.unique()) == len(found)


def test_one_word_or_none_has_but_one_order_and_even_weights_no_other():
    model = classifier()
    given = batch(split(["sws", "s", "swwww"]))
    found, clean = permuted_predictions(model, given, KEY, 10), observe(model, given).probs
    torch.testing.assert_close(found[:2], clean[:2].unsqueeze(1).expand(-1, 10, -1), rtol=0, atol=1e-15)
    assert (found[2] - clean[2]).abs().max() > 1e-4
    model.scorer.weigh.weight.data.zero_()
    even, clean = permuted_predictions(model, given, KEY, 10), observe(model, given).probs
    torch.testing.assert_close(even, clean.unsqueeze(1).expand_as(even), rtol=0, atol=1e-15)
