"""KernelSHAP: Shapley values by their definition, additive to the last digit, near Captum's where both draw."""

import math

import numpy as np
import pytest
import torch
from captum._utils.models.linear_model import SkLearnLinearRegression

from contract.tiny import CLASSES, batch, cached_classifier, split
from explainers.worked import WORTH, Line, captum_weights, game, random_texts, row, subsets_of, texts
from steadygaze.core.random_key import RandomKey
from steadygaze.explainers.kernel_shap import KernelShap, coalitions, values


def shapley(value, n: int) -> list[float]:
    """By the definition: Σ over subsets without the word of k! (n−1−k)! / n! times what it adds."""
    total = [0.0] * n
    for t in range(n):
        for some in subsets_of(n):
            if t not in some:
                k = len(some)
                share = math.factorial(k) * math.factorial(n - 1 - k) / math.factorial(n)
                total[t] += share * (value(some | {t}) - value(some))
    return total


def test_three_players_by_hand():
    """v = 6 if words 1 and 2 are both there, plus 3 for word 3: the pair shares its 6, so φ = (3, 3, 3).

    All six proper subsets, 1/k(3−k) even over sizes 1 and 2: shares of 1/6 each.
    """
    z = torch.tensor([[[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]]], dtype=torch.float64)
    gained = torch.tensor([[0, 0, 3, 6, 3, 3]], dtype=torch.float64)
    result = values(z, gained, torch.full((1, 6), 1 / 6).double(), torch.tensor([9.0]).double(), torch.ones(1, 3) > 0)
    torch.testing.assert_close(result, torch.full((1, 3), 3.0).double(), rtol=0, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    "encoder", ["bilstm", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cnn", "transformer"))]
)
def test_texts_of_up_to_six_words_get_their_shapley_values(encoder):
    model, words = cached_classifier(encoder), batch(split())
    target = torch.arange(len(words)) % CLASSES
    result = KernelShap().explain(model, words, target).weights
    for place in (0, 2, 5, 6):
        text = row(words, place)
        expected = shapley(game(model, text, int(target[place])), int(text.mask.sum()))
        np.testing.assert_allclose(result[place][words.mask[place]].numpy(), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("lengths", [(1,), (3, 1, 6), (20, 12, 1), (70,)])
def test_the_weights_of_a_text_sum_to_what_all_its_words_change(lengths):
    """Short texts, which are enumerated, and long ones, which are not: the sum is exact in both."""
    model, words = cached_classifier("bilstm"), random_texts(*lengths)
    result = KernelShap(samples=64).explain(model, words).weights.sum(-1)
    for place, n in enumerate(lengths):
        text = row(words, place)
        value = game(model, text, int(model(text).logits.argmax()))
        assert result[place].item() == pytest.approx(value(frozenset(range(n))) - value(frozenset()), abs=1e-12)


def test_of_a_straight_line_every_word_gets_what_it_adds_however_few_are_drawn():
    words = texts([1, 2, 4], [6, 3], [1, 2, 3, 4, 5, 6, 1, 2, 3])
    result = KernelShap(samples=64).explain(Line(), words, torch.tensor([1, 0, 1])).weights
    expected = torch.tensor(WORTH, dtype=torch.float64)[words.ids] * torch.tensor([[1.0], [-1.0], [1.0]]) * words.mask
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-8)


def test_drawn_values_come_near_the_exact_ones():
    """Twelve words: 4096 subsets are all there are, 1024 are drawn."""
    model, words = cached_classifier("bilstm"), random_texts(12)
    exact = KernelShap(samples=4096).explain(model, words).weights
    err = [(KernelShap(samples=n).explain(model, words).weights - exact).norm() / exact.norm() for n in (64, 2048)]
    assert err[1] < 0.1
    assert err[1] < err[0] / 3


@pytest.mark.slow
def test_captum_solves_the_same_subsets_to_the_same_values():
    """Captum holds the sum by a weight of a million, in single precision."""
    model, words = cached_classifier("bilstm"), random_texts(11)
    result = KernelShap(samples=200).explain(model, words, torch.tensor([1])).weights[0, 1:]
    drawn = coalitions(words, 200, RandomKey(0).child(2))
    value, weight = game(model, words, 1), iter([1e6, 1e6, *(200 * drawn.share[0]).tolist()])

    subsets = torch.cat([torch.ones(1, 11), torch.zeros(1, 11), drawn.masks[0].float()])
    theirs = captum_weights(value, subsets, SkLearnLinearRegression(), lambda *_: next(weight))
    torch.testing.assert_close(result, theirs.double(), rtol=1e-2, atol=2e-5)


def test_a_word_that_changes_nothing_gets_nothing_and_twins_get_the_same():
    """Two of the axioms, on texts that are enumerated: id 0's vector is 0 to `Line`, and 6 stands there twice."""
    result = KernelShap().explain(Line(), texts([6, 0, 2, 6]), torch.tensor([1])).weights[0]
    torch.testing.assert_close(result, torch.tensor([0.06, 0.0, -0.04, 0.06]).double(), rtol=0, atol=1e-8)


def test_words_that_no_coalition_separates_are_solved():
    """Only {1} and {2, 3} were drawn: 2 and 3 are twins as far as anybody knows, and share alike."""
    z = torch.tensor([[[1, 0, 0], [0, 1, 1]]], dtype=torch.float64)
    result = values(
        z,
        torch.tensor([[1.0, 4.0]]).double(),
        torch.full((1, 2), 0.5).double(),
        torch.tensor([5.0]).double(),
        torch.ones(1, 3) > 0,
    )
    torch.testing.assert_close(result, torch.tensor([[1.0, 2.0, 2.0]]).double(), rtol=0, atol=1e-5)
