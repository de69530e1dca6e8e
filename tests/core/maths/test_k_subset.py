"""k of D units: hard, relaxed, at random."""

import pytest
import torch

from steadygaze.core.maths import k_subset
from steadygaze.core.random_key import RandomKey

SCORES = torch.tensor([[2.0, -1.0, 0.5, 0.0, 9.0], [0.1, 0.3, 0.2, 9.0, 9.0]], dtype=torch.float64)
ABLE = torch.tensor([[True, True, True, True, False], [True, True, True, False, False]])
ROWS = torch.tensor([7, 8])


def drawn(k: int, stream: int = 0, rows: torch.Tensor = ROWS, units: int = 5) -> torch.Tensor:
    return RandomKey(3).child(stream).uniform(rows, units, k, dtype=torch.float64)


def test_a_hard_mask_is_exactly_k_hot_and_never_takes_what_may_not_be_taken() -> None:
    assert k_subset.top_k_subset(SCORES, ABLE, 2).tolist() == [[1, 0, 1, 0, 0], [0, 1, 1, 0, 0]]


def test_a_text_of_fewer_words_than_k_is_taken_whole() -> None:
    assert k_subset.top_k_subset(SCORES, ABLE, 4).tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]]


def test_a_relaxed_mask_lies_between_0_and_1_and_is_0_where_nothing_may_be_taken() -> None:
    mask = k_subset.relaxed_k_subset(SCORES, ABLE, 0.5, drawn(3))
    assert ((mask >= 0) & (mask <= 1)).all()
    assert (mask[~ABLE] == 0).all()


def test_cold_draws_are_hard_and_at_most_k() -> None:
    mask = k_subset.relaxed_k_subset(SCORES, ABLE, 1e-6, drawn(2))
    assert set(mask.round(decimals=6).flatten().tolist()) <= {0.0, 1.0}
    assert (mask.sum(-1) <= 2 + 1e-9).all()


def test_one_draw_is_the_gumbel_softmax_worked_by_hand() -> None:
    """u = (1/e, 1/e): both Gumbels are −ln(−ln(1/e)) = −ln 1 = 0, so m = softmax(z / τ) = softmax(2, 0)."""
    half = torch.full((1, 2, 1), torch.e**-1, dtype=torch.float64)
    scores = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    result = k_subset.relaxed_k_subset(scores, torch.ones(1, 2, dtype=torch.bool), 0.5, half)
    torch.testing.assert_close(result, torch.tensor([[2.0, 0.0]], dtype=torch.float64).softmax(-1))


def test_slopes_reach_every_score_that_may_be_taken_and_no_other() -> None:
    scores = SCORES.clone().requires_grad_()
    (slope,) = torch.autograd.grad((k_subset.relaxed_k_subset(scores, ABLE, 0.5, drawn(2)) ** 2).sum(), scores)
    assert (slope[ABLE] != 0).all()
    assert (slope[~ABLE] == 0).all()


def test_what_scores_highest_is_drawn_most_often() -> None:
    """A draw takes unit d with probability softmax(z)_d: 20,000 draws, within four standard errors."""
    rows = torch.arange(20_000)
    scores = SCORES[:1].expand(len(rows), -1)
    able = ABLE[:1].expand(len(rows), -1)
    taken = k_subset.relaxed_k_subset(scores, able, 1e-4, drawn(1, rows=rows)).round()
    result, right = taken.mean(0), SCORES[0, :4].softmax(-1)
    assert (result[:4] - right).abs().max() < 4 * (0.25 / len(rows)) ** 0.5
    assert result[:4].argsort().tolist() == SCORES[0, :4].argsort().tolist()


def test_every_step_has_noise_of_its_own_and_the_same_step_the_same() -> None:
    subset, same, other = (k_subset.relaxed_k_subset(SCORES, ABLE, 0.5, drawn(2, stream)) for stream in (0, 0, 1))
    assert torch.equal(subset, same)
    assert not torch.allclose(subset, other)


@pytest.mark.parametrize("make", ["relaxed", "random"])
def test_neither_padding_nor_company_changes_a_mask(make: str) -> None:
    def masks(scores: torch.Tensor, able: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        if make == "random":
            return k_subset.random_k_subset(able, 2, RandomKey(3), rows)
        return k_subset.relaxed_k_subset(scores, able, 0.5, drawn(2, rows=rows, units=able.shape[1]))

    together = masks(SCORES, ABLE, ROWS)
    wide = torch.nn.functional.pad(SCORES[1:], (0, 4)), torch.nn.functional.pad(ABLE[1:], (0, 4)), ROWS[1:]
    torch.testing.assert_close(masks(*wide)[:, :5].double(), together[1:].double())


def test_random_masks_take_every_word_equally_often() -> None:
    """2 of 4: each in half of 10,000 masks, within four standard errors."""
    able = ABLE[:1].expand(10_000, -1)
    result = k_subset.random_k_subset(able, 2, RandomKey(0), torch.arange(10_000))
    assert (result.sum(-1) == 2).all()
    assert (result.mean(0)[:4] - 0.5).abs().max() < 4 * (0.25 / 10_000) ** 0.5


def test_a_sure_selector_leaves_no_numbers_too_small_to_be_stored_in_full() -> None:
    """On them a CPU takes several times as long."""
    scores = torch.tensor([[0.0, 30.0, 60.0, 45.0]]).requires_grad_()
    able = torch.tensor([[True, True, True, False]])
    mask = k_subset.relaxed_k_subset(scores, able, 0.5, torch.full((1, 4, 2), 0.5))
    (slope,) = torch.autograd.grad(mask.square().sum(), scores)
    tiny = torch.finfo(mask.dtype).tiny
    assert mask[0].tolist() == [pytest.approx(0, abs=1e-17), pytest.approx(0, abs=1e-17), 1.0, 0.0]
    assert all(value == 0 or abs(value) >= tiny for value in (*mask[0].tolist(), *slope[0].tolist()))
