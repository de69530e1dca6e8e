"""Coalitions: complete sizes first, then distinct stratified pairs; closer to Shapley values than plain draws."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
import torch

from explainers.worked import random_texts
from steadygaze.core.random_key import RandomKey
from steadygaze.explainers.kernel_shap import _ranks, coalitions, pairs, strata, unranked, values
from steadygaze.perturbations.word_removal import take_rows

KEY = RandomKey(3)


def some(*lengths: int, samples: int = 1024, key: RandomKey = KEY):
    return coalitions(random_texts(*lengths), samples, key)


def test_four_words_have_every_subset_once_with_the_weight_of_the_kernel():
    """1/k(4−k): 1/3, 1/4, 1/3 for k = 1, 2, 3, so 4/11, 3/11, 4/11 of 4, 6 and 4 subsets."""
    result = some(4)
    assert result.masks.shape == (1, 14, 4)
    assert len(result.masks[0].unique(dim=0)) == 14
    expected = {1: 1 / 11, 2: 1 / 22, 3: 1 / 11}
    np.testing.assert_allclose(result.share[0], [expected[int(k)] for k in result.masks[0].sum(-1)], rtol=1e-12)


def test_ranks_are_the_lexicographic_order_of_all_subsets():
    size = np.full(comb(7, 3), 3)
    kept = unranked(7, size, np.arange(len(size), dtype=float))
    assert [tuple(np.flatnonzero(mask)) for mask in kept] == list(combinations(range(7), 3))


def test_whole_sizes_are_read_while_the_readings_suffice():
    """Twelve words, 512 pairs, masses 2/11, 2/20, 2/27, 2/32, 2/35, 1/36 of 0.5033.

    512 · 0.3612 = 185 ≥ 12, so k = 1 is whole; then 500 · 0.3111 = 156 ≥ 66; then 434 · 0.3345 = 145 < 220.
    """
    known = strata(12, 512)
    assert (known.complete_sizes, known.sampled_sizes, known.samples) == ((1, 2), (3, 4, 5, 6), 512 - 12 - 66)
    result = some(12)
    sizes = result.masks[0].sum(-1).bincount(minlength=13).tolist()
    assert sizes[:3] == [0, 12, 66]
    assert sizes == sizes[::-1]
    mass = [0.0, *(1 / (k * (12 - k)) for k in range(1, 12)), 0.0]
    by_size = torch.zeros(13, dtype=torch.float64).index_add(0, result.masks[0].sum(-1), result.share[0])
    np.testing.assert_allclose(by_size, np.array(mass) / sum(mass), rtol=1e-12)


@pytest.mark.parametrize("words", [2, 3, 9, 10, 11, 12, 16, 25, 54, 70, 300])
def test_no_subset_is_read_twice_and_each_has_its_opposite(words):
    result = some(words)
    kept = result.masks[0]
    assert len(kept) == min(2**words - 2, max(1024, 4 * words))
    assert len(kept.unique(dim=0)) == len(kept)
    assert torch.equal(kept[::2], ~kept[1::2])
    assert result.share.sum().item() == pytest.approx(1.0)
    assert (result.share > 0).all()


@pytest.mark.slow
@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(("total", "many"), [(7, 5), (7, 7), (20, 6)])
def test_ranks_are_distinct_and_equally_probable(total, many):
    """2,000 draws: the standard error of a frequency is at most 0.0112; 5 of them are allowed."""
    draws = [_ranks(total, many, KEY, torch.tensor(key)) for key in range(2000)]
    assert all(len(set(ranks)) == many and set(ranks) <= set(range(total)) for ranks in draws)
    frequency = np.bincount(np.concatenate(draws).astype(int), minlength=total) / len(draws)
    np.testing.assert_allclose(frequency, many / total, atol=0.056)


def test_ranks_cover_the_whole_range():
    ranks = np.sort(_ranks(1000, 10, KEY, torch.tensor(1)))
    assert (np.diff(ranks) < 200).all()
    assert len(ranks) == 10


def test_a_middle_size_has_each_pair_once():
    assert pairs(10, 5) == comb(10, 5) // 2
    assert some(10).masks.shape[1] == 2**10 - 2


def test_what_a_text_draws_does_not_depend_on_its_company_and_does_on_the_seed():
    batch = random_texts(14, 40, 3, 1)
    together = coalitions(batch, 64, KEY)
    for place in range(4):
        alone = coalitions(take_rows(batch, torch.tensor([place])), 64, KEY)
        many, words = alone.masks.shape[1:]
        assert torch.equal(together.masks[place, :many, :words], alone.masks[0])
        torch.testing.assert_close(together.share[place, :many], alone.share[0], rtol=0, atol=1e-12)
        assert not together.share[place, many:].any()
    other = coalitions(batch, 64, RandomKey(4))
    assert (other.masks[0] != together.masks[0]).any()


def table(n: int) -> np.ndarray:
    """Every subset as a row.  (2ⁿ,n)"""
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1


def games(n: int, many: int) -> np.ndarray:
    """Random games with interactions of all pairs and triples, squashed as a probability is.  (many,2ⁿ)"""
    rng, z = np.random.default_rng(n), table(n)
    pair = np.array(list(combinations(range(n), 2)))
    triple = np.array(list(combinations(range(n), 3)))
    two, three = z[:, pair].prod(-1), z[:, triple].prod(-1)
    drawn = [
        z @ rng.normal(size=n) + two @ rng.normal(size=len(pair)) / 2 + three @ rng.normal(size=len(triple)) / 4
        for _ in range(many)
    ]
    return 1 / (1 + np.exp(-np.array(drawn)))


def solved(kept: np.ndarray, share: np.ndarray, game: np.ndarray) -> np.ndarray:
    n = kept.shape[1]
    index = kept @ (1 << np.arange(n))
    return values(
        torch.from_numpy(kept[None].astype(float)),
        torch.from_numpy(game[index][None] - game[0]),
        torch.from_numpy(share[None]),
        torch.tensor([game[-1] - game[0]]),
        torch.ones(1, n) > 0,
    )[0].numpy()


def plain_pairs(n: int, samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sizes drawn in proportion to their weight, each subset with its complement, duplicates merged."""
    sizes = np.arange(1, n)
    mass = 1 / (sizes * (n - sizes))
    order = rng.random((samples // 2, n)).argsort(-1)
    drawn = order < rng.choice(sizes, (samples // 2, 1), p=mass / mass.sum())
    kept, counts = np.unique(np.concatenate([drawn, ~drawn]), axis=0, return_counts=True)
    return kept, counts / counts.sum()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("words", [11, 12, 13])
def test_just_above_the_exact_limit_the_error_is_below_that_of_plain_sampling(words):
    """Twelve games and as many texts; the reference is the regression on all 2ⁿ − 2 subsets, which is exact."""
    z = table(words).astype(bool)[1:-1]
    size = z.sum(-1)
    kernel = np.array([1 / (comb(words, int(k)) * k * (words - k)) for k in size])
    ours, plain = [], []
    for i, game in enumerate(games(words, 12)):
        exact = solved(z, kernel / kernel.sum(), game)
        result = coalitions(random_texts(words), 1024, RandomKey(i))
        ours.append(np.linalg.norm(solved(result.masks[0].numpy(), result.share[0].numpy(), game) - exact))
        plain.append(np.linalg.norm(solved(*plain_pairs(words, 1024, np.random.default_rng(i)), game) - exact))
    assert np.mean(ours) < 0.7 * np.mean(plain)
