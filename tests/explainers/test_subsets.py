"""Subsets of words: all of them for short texts, else drawn from the distribution with the text's own key."""

import pytest
import torch
from scipy.stats import binom, chisquare

from contract.tiny import assert_close
from explainers.worked import Line, random_texts, subsets_of, texts
from steadygaze.core.random_key import RandomKey
from steadygaze.explainers import word_deletion as module
from steadygaze.explainers.lime import subsets
from steadygaze.explainers.word_deletion import groups
from steadygaze.perturbations.word_removal import take_rows

KEY = RandomKey(3)


def even(k, _):
    return torch.ones_like(k)


def kernel(k, n):
    """The Shapley kernel of all subsets of one size: 1 / k(n−k)."""
    inside = (k > 0) & (k < n)
    return torch.where(inside, 1 / torch.where(inside, k * (n - k), 1.0), 0.0)


def some(batch, samples=64, law=even, **how):
    return subsets(batch, law, samples, KEY, **how)


def test_of_a_short_text_every_subset_is_there_once_with_its_share():
    """Three words, each size as likely: none, all: ¼ each; the three of one word and the three of two: ¼ / 3 each."""
    result = some(texts([5, 1, 2, 3], specials=True))
    kept = [frozenset(mask.nonzero().flatten().tolist()) for mask in result.masks[0]]
    assert sorted(map(sorted, kept)) == sorted(sorted(subset) for subset in subsets_of(3))
    shares = {0: 1 / 4, 1: 1 / 12, 2: 1 / 12, 3: 1 / 4}
    assert_close(result.share[0], torch.tensor([shares[len(subset)] for subset in kept], dtype=torch.float64))


def test_the_shapley_kernel_leaves_out_the_empty_and_the_whole():
    """Four words, 1/k(4−k): 1/3, 1/4, 1/3 for k = 1, 2, 3, so 4/11, 3/11, 4/11 of 4, 6 and 4 subsets."""
    result = some(texts([1, 2, 3, 4]), law=kernel)
    expected = {0: 0.0, 1: 1 / 11, 2: 1 / 22, 3: 1 / 11, 4: 0.0}
    assert_close(
        result.share[0], torch.tensor([expected[int(k)] for k in result.masks[0].sum(-1)], dtype=torch.float64)
    )


@pytest.mark.parametrize("law", [even, kernel])
def test_subsets_of_a_long_text_have_the_sizes_of_the_distribution(law):
    """χ² over the sizes of 4000 subsets of ten words, at a level that random subsets exceed once in 10 000."""
    result = subsets(random_texts(12), law, 4000, KEY)
    k = torch.arange(13.0, dtype=torch.float64)
    expected = law(k, torch.tensor(12.0, dtype=torch.float64))
    expected = (expected / expected.sum() * 4000).numpy()
    seen = result.masks[0].sum(-1).bincount(minlength=13).numpy()
    assert seen[expected == 0].sum() == 0
    assert chisquare(seen[expected > 0], expected[expected > 0]).pvalue > 1e-4


def test_every_word_is_kept_as_often():
    result = subsets(random_texts(12), even, 4000, KEY).masks[0].sum(0)
    assert ((result >= binom.ppf(1e-5, 4000, 0.5)) & (result <= binom.ppf(1 - 1e-5, 4000, 0.5))).all()


def test_a_long_text_has_four_subsets_for_each_word_at_least():
    result = some(random_texts(30, 7, 2))
    assert (result.share > 0).sum(-1).tolist() == [120, 64, 4]
    assert_close(result.share.sum(-1), torch.ones(3, dtype=torch.float64))


def test_what_a_text_draws_does_not_depend_on_its_company_or_on_how_many_are_drawn():
    batch = random_texts(30, 9, 3, 12)
    together = some(batch)
    for place in range(4):
        alone = some(take_rows(batch, torch.tensor([place])))
        many, words = alone.masks.shape[1:]
        assert torch.equal(together.masks[place, :many, :words] & (alone.share[0] > 0)[:, None], alone.masks[0])
        torch.testing.assert_close(together.share[place, :many], alone.share[0], rtol=0, atol=1e-12)
        assert not together.share[place, many:].any()
    more = some(batch, samples=100)
    assert torch.equal(more.masks[0, :100], together.masks[0, :100])


def test_another_seed_draws_others():
    batch = random_texts(9)
    masks, other = (subsets(batch, even, 64, RandomKey(seed)).masks[0] for seed in (0, 1))
    assert (masks == other).all(-1).float().mean() < 0.2


def test_each_is_read_as_a_text_of_those_words_alone():
    model, batch = Line(), texts([6, 1, 2, 4], [6, 3], specials=True)
    drawn = some(batch)
    result = drawn.read(model, batch, torch.tensor([1, 1]), "probability")
    worth = torch.tensor([[0.03, -0.04, -0.11], [-0.01, 0.0, 0.0]], dtype=torch.float64)
    expected = 0.5 + 0.06 + (worth.unsqueeze(1) * drawn.masks).sum(-1)  # 0.06: the special token, always there
    assert_close(result, expected * (drawn.share > 0))
    assert sum(map(len, model.read)) == 8 + 2


def test_memory_does_not_grow_with_the_batch(monkeypatch):
    monkeypatch.setattr(module, "ENTRIES", 4000)
    batch = random_texts(*[7] * 20)
    parts = list(groups(batch, 64))
    assert torch.equal(torch.cat(parts), torch.arange(20))
    assert {len(part) for part in parts} == {4000 // (8 * 64), 20 % 7}
    assert [len(part) for part in groups(random_texts(100, 1), 64)] == [1, 1]
