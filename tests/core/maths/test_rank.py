"""Top tokens and rank correlations, against SciPy and against loops over the real tokens of each row."""

import warnings

import numpy as np
import pytest
import scipy.stats
import torch
from torch.nn.functional import pad

from steadygaze.core.maths.distributions import kendall, pearson, top_k, top_k_overlap

MASK = torch.tensor([[True] * 6, [True, False, True, True, False, True], [False] * 5 + [True], [False] * 6])
SCIPY = {pearson: scipy.stats.pearsonr, kendall: scipy.stats.kendalltau}


def tokens(row: torch.Tensor) -> list[int]:
    return row.nonzero().flatten().tolist()


def slow_top(row: torch.Tensor, real: torch.Tensor, k: int) -> list[int]:
    """Python's sort is stable: equals stay in reading order."""
    return sorted(sorted(tokens(real), key=lambda token: -row[token].item())[:k])


def varied_lengths(rows: int = 60, width: int = 15) -> torch.Tensor:
    """Rows of 0 to `width` real tokens, at random places."""
    return torch.rand(rows, width) < torch.rand(rows, 1)


def test_the_top_is_what_sorting_each_row_gives_with_ties_and_negative_weights():
    mask = varied_lengths()
    weights = torch.randint(-3, 4, mask.shape).double()  # 7 values in 15 places: many ties
    for k in (1, 3, 40):
        chosen = top_k(weights, mask, k)
        assert [tokens(row) for row in chosen] == [slow_top(w, m, k) for w, m in zip(weights, mask, strict=True)]
        assert torch.equal(chosen.sum(-1), mask.sum(-1).clamp_max(k))
        assert not (chosen & ~mask).any()


def test_of_equal_weights_the_earlier_words_come_first():
    assert tokens(top_k(torch.zeros(1, 500), torch.ones(1, 500, dtype=torch.bool), 7)[0]) == [0, 1, 2, 3, 4, 5, 6]
    assert tokens(top_k(torch.tensor([[0.2, 0.4, 0.2, 0.2]]), torch.ones(1, 4, dtype=torch.bool), 2)[0]) == [0, 1]


def test_a_masked_token_is_never_on_top_however_heavy():
    weights = torch.tensor([[9.0, 1.0, torch.nan, torch.inf, 2.0]])
    mask = torch.tensor([[False, True, False, False, True]])
    assert tokens(top_k(weights, mask, 1)[0]) == [4]
    assert tokens(top_k(weights, mask, 5)[0]) == [1, 4]
    assert tokens(top_k(torch.tensor([[0.0, -torch.inf, 0.0, 0.0, 2.0]]), mask, 2)[0]) == [1, 4]


def test_each_text_may_have_a_k_of_its_own():
    weights, sizes = torch.rand(4, 6), torch.tensor([2, 0, 3, 1])
    chosen = top_k(weights, MASK, sizes)
    assert [tokens(row) for row in chosen] == [
        slow_top(w, m, k) for w, m, k in zip(weights, MASK, sizes.tolist(), strict=True)
    ]


def test_a_k_under_one_is_refused():
    with pytest.raises(ValueError, match="k is 0"):
        top_k(torch.rand(4, 6), MASK, 0)


def test_the_overlap_is_the_shared_part_of_the_top():
    """Row 0: top 2 of p is {0, 1}, of q {0, 2}: they share 1 of 2.  Row 1 has two words, k = 2: both.  Row 2: none."""
    p = torch.tensor([[0.5, 0.3, 0.2, 0.0], [0.9, 0.0, 0.1, 0.0], [0.0] * 4])
    q = torch.tensor([[0.5, 0.1, 0.4, 0.0], [0.1, 0.0, 0.9, 0.0], [0.0] * 4])
    mask = torch.tensor([[True] * 4, [True, False, True, False], [False] * 4])
    assert top_k_overlap(p, q, mask, 2).tolist() == [0.5, 1.0, 1.0]
    assert top_k_overlap(p, q, mask, 1).tolist() == [1.0, 0.0, 1.0]


def test_the_overlap_is_that_of_sets_of_tokens():
    mask = varied_lengths()
    p, q = torch.randint(5, mask.shape).double(), torch.randint(5, mask.shape).double()
    for row, a, b, real in zip(top_k_overlap(p, q, mask, 3), p, q, mask, strict=True):
        first, second = set(slow_top(a, real, 3)), set(slow_top(b, real, 3))
        assert row.item() == (len(first & second) / len(first) if first else 1.0)


@pytest.mark.parametrize("correlation", SCIPY)
@pytest.mark.parametrize("values", [9, 3, 2])
def test_a_correlation_is_scipys_where_it_has_one_and_else_nan(correlation, values):
    """With 2 or 3 possible values most pairs tie, and some rows are constant."""
    mask = varied_lengths()
    x, y = (torch.randint(values, mask.shape) / 7 for _ in range(2))
    x, y = x.double(), y.double()
    defined = 0
    for result, a, b, real in zip(correlation(x, y, mask), x, y, mask, strict=True):
        a, b = a[real].numpy(), b[real].numpy()
        if len(a) < 3 or len(set(a)) == 1 or len(set(b)) == 1:
            assert result.isnan()
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = SCIPY[correlation](a, b).statistic
        np.testing.assert_allclose(result, expected, atol=1e-12)
        defined += 1
    assert 20 < defined < 60


def test_kendall_on_four_words_with_a_tie():
    """x = 1 2 3 4, y = 1 3 2 2.  Of 6 pairs: alike 12 13 14, opposite 23 24, tied in y 34.

    τ_b = (3 − 2) / √(6 · 5) = 1/√30.
    """
    x, y = torch.tensor([[1.0, 2, 3, 4]]), torch.tensor([[1.0, 3, 2, 2]])
    assert kendall(x, y, torch.ones(1, 4, dtype=torch.bool)).item() == pytest.approx(30**-0.5, rel=1e-6)


def test_pearson_on_three_words():
    """x = 1 2 3, y = 1 3 2: centered (−1, 0, 1) and (−1, 1, 0), so r = 1 / (√2 · √2) = ½."""
    x, y = torch.tensor([[1.0, 2, 3]]), torch.tensor([[1.0, 3, 2]])
    assert pearson(x, y, torch.ones(1, 3, dtype=torch.bool)).item() == pytest.approx(0.5)


@pytest.mark.parametrize("correlation", SCIPY)
def test_words_all_of_one_value_have_no_correlation_though_their_variance_rounds_above_zero(correlation):
    x = torch.tensor([[0.1, 0.1, 0.1]], dtype=torch.float64)
    assert (x - x.sum() / 3).any()
    assert correlation(x, torch.rand_like(x), torch.ones(1, 3, dtype=torch.bool)).isnan()


@pytest.mark.parametrize("correlation", SCIPY)
def test_weights_too_small_to_be_squared_still_correlate(correlation):
    x = torch.tensor([[1e-30, 2e-30, 4e-30]])
    assert correlation(x, x, torch.ones(1, 3, dtype=torch.bool)).item() == pytest.approx(1.0)


@pytest.mark.parametrize("measure", [pearson, kendall, lambda p, q, mask: top_k_overlap(p, q, mask, 2)])
def test_padding_order_of_tokens_and_batch_do_not_matter(measure):
    x, y = torch.randn(4, 6, dtype=torch.float64), torch.randn(4, 6, dtype=torch.float64)
    value, order = measure(x, y, MASK), torch.randperm(6)
    dirty = [pad(v.masked_fill(~MASK, torch.inf), (2, 3), value=torch.nan) for v in (x, y)]
    near = {"rtol": 1e-12, "atol": 1e-12, "equal_nan": True}
    torch.testing.assert_close(measure(*dirty, pad(MASK, (2, 3))), value, **near)
    torch.testing.assert_close(measure(x[:, order], y[:, order], MASK[:, order]), value, **near)
    rows = [measure(x[i : i + 1], y[i : i + 1], MASK[i : i + 1]) for i in range(4)]
    torch.testing.assert_close(torch.cat(rows), value, **near)
