"""Words added to the selected ones: uniform over all sets, listed where they are few, the same in any batch."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
import scipy.stats
import torch
from torch.nn.functional import pad

from contract.probing import spied
from contract.tiny import batch, cached_classifier, split
from properties.probes.test_erasure import prediction_without
from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.perturbations.word_removal import units_of
from steadygaze.properties.probes.added_words import (
    Additions,
    _every_set,
    _size_distribution,
    predict_extended,
    sets_of_words,
    top_words,
)
from steadygaze.properties.probes.erasure import Erasure

KEY = RandomKey(3)


@pytest.mark.parametrize(("words", "most"), [(0, 2), (1, 5), (5, 0), (5, 2), (6, 6)])
def test_every_set_is_listed_once(words, most):
    listed = _every_set(words, most, 64)
    assert len(listed) == sum(comb(words, size) for size in range(most + 1)) == len({*map(tuple, listed.tolist())})
    assert listed.sum(-1).max() <= most
    assert _every_set(words, most, len(listed)) is not None
    assert _every_set(words, most, len(listed) - 1) is None


def test_sizes_have_the_shares_of_their_sets():
    """Exact: of 7 words and at most 3, 1 set has none, 7 have one, 21 two, 35 three."""
    drawn = _size_distribution(torch.tensor([[7], [2]]), 3)
    np.testing.assert_allclose(drawn[0], np.cumsum([1, 7, 21, 35]) / 64, rtol=1e-12)
    np.testing.assert_allclose(drawn[1], [1 / 4, 3 / 4, 1, 1], rtol=1e-12)


def uniformity(sets: torch.Tensor, most: int) -> float:
    """The p-value of Pearson's test that all sets are equally likely.  (N,U)"""
    places = range(sets.shape[-1])
    kinds = {chosen: 0 for size in range(most + 1) for chosen in combinations(places, size)}
    for row in sets.numpy():
        kinds[tuple(np.flatnonzero(row).tolist())] += 1
    return scipy.stats.chisquare(list(kinds.values())).pvalue


def test_draws_are_uniform_over_the_sets():
    """22 sets; 20 draws of each of 1,000 texts."""
    added, members, exact = sets_of_words(
        torch.ones(1000, 6, dtype=torch.bool), RandomKey(1).scramble(torch.arange(1000)), Additions(2, 20, KEY)
    )
    assert members.all()
    assert not exact.any()
    assert uniformity(added.flatten(0, 1), 2) > 1e-3
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randint(3, (20_000, 1), generator=generator)  # the number of words first, all alike: not uniform
    order = torch.rand(20_000, 6, generator=generator).argsort(-1).argsort(-1)
    assert uniformity(order < sizes, 2) < 1e-12


def test_draws_do_not_depend_on_padding_and_batch():
    others = torch.tensor([[True, False, True, True, True, True]] * 2)
    key = torch.tensor([11, 12])
    assert len(_every_set(5, 3, 30)) == 26
    drawn, _, _ = sets_of_words(others, key, Additions(3, 25, KEY))
    assert not drawn[:, :, 1].any()
    wide, _, _ = sets_of_words(pad(others, (0, 3)).flip(0), key.flip(0), Additions(3, 25, KEY))
    assert wide[:, :, :6].flip(0).equal(drawn)
    assert not wide[:, :, 6:].any()
    assert not drawn[0].equal(drawn[1])


def test_draws_of_one_text_have_the_right_sizes_and_all_words_alike():
    """4,500 draws of the 4,526 sets of at most 3 of 30 words."""
    (drawn,), _, _ = sets_of_words(torch.ones(1, 30, dtype=torch.bool), torch.tensor([11]), Additions(3, 4500, KEY))
    sizes = drawn.sum(-1).bincount(minlength=4)[1:]
    expected = np.array([comb(30, size) for size in (1, 2, 3)]) / 4526 * 4500
    assert scipy.stats.chisquare(sizes, expected * sizes.sum().item() / expected.sum()).pvalue > 1e-3
    assert scipy.stats.chisquare(drawn.sum(0)).pvalue > 1e-3


def test_a_share_of_the_words_is_rounded_up_and_a_number_is_at_most_all():
    units = units_of(batch(split(["w" * n for n in (1, 5, 10, 11)])), question=False)
    assert top_words(units, 0.2).tolist() == [1, 1, 2, 3]
    assert top_words(units, 5).tolist() == [1, 5, 5, 5]


@pytest.mark.parametrize("removal", ["delete", "pad", "zero"])
def test_predictions_are_those_of_the_texts_with_the_other_words_erased(removal):
    model, texts = cached_classifier("bilstm"), batch(split(["swwwws", "wwwww", "sws"]))
    selected = torch.tensor(
        [[False, True, False, False, False], [True, False, False, True, False], [True] + [False] * 4]
    )
    predicted = predict_extended(
        model, texts, selected, text_key(texts), Additions(2, 7, KEY), Erasure(removal=removal)
    )
    assert predicted.exact.tolist() == [True, True, True]
    assert predicted.members.sum(-1).tolist() == [7, 7, 1]
    for row in range(3):
        places = texts.mask[row].nonzero().squeeze(-1)
        words = set(range(len(places)))
        top = set(selected[row].nonzero().squeeze(-1).tolist())
        sets = [set(some) for size in (0, 1, 2) for some in combinations(sorted(words - top), size)]
        for number, added in enumerate(sets):
            gone = [int(places[word]) for word in words - top - added]
            slow = prediction_without(model, texts, row, gone, removal)
            torch.testing.assert_close(predicted.extended[row, number], slow)
        assert predicted.extended[row, len(sets) :].isnan().all()
    torch.testing.assert_close(predicted.alone, predicted.extended[:, 0])


def test_equal_texts_are_predicted_once():
    model, texts = cached_classifier("bilstm"), batch(split(["w" * 9]))
    selected = torch.arange(9).unsqueeze(0) < 7
    with spied(model) as seen:
        predict_extended(model, texts, selected, text_key(texts), Additions(1, 2, KEY), Erasure())
    distinct = {
        tuple(row[there].tolist()) for inputs, _ in seen for row, there in zip(inputs.ids, inputs.present, strict=True)
    }
    assert sum(len(inputs) for inputs, _ in seen) == len(distinct) <= 3
