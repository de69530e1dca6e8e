"""The best windows: against loops over each text, and their promises on random texts."""

import itertools

import pytest
import torch
from torch.nn.functional import pad

from steadygaze.core.maths.rationale_windows import best_windows, token_budget


def some(seed: int, rows: int = 30, width: int = 40) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores, and texts of 0 to `width` tokens that begin anywhere."""
    draw = torch.Generator().manual_seed(seed)
    first = torch.randint(0, 5, (rows, 1), generator=draw)
    length = torch.randint(0, width - 4, (rows, 1), generator=draw)
    places = torch.arange(width)
    mask = (places >= first) & (places < first + length)
    return torch.randn(rows, width, generator=draw, dtype=torch.float64), mask


def slow(scores: list[float], share: float, spans: int) -> set[int]:
    """The greedy windows of one text without padding, by loops."""
    tokens = len(scores)
    size = min(max(1, int(share * tokens + 1e-9)), tokens)
    if size == tokens:
        return set(range(tokens))
    many = min(spans, size)
    taken: set[int] = set()
    for turn in range(many):
        width = size // many + (turn < size % many)
        free = [s for s in range(tokens - width + 1) if not taken & set(range(s, s + width))]
        if not free:
            continue
        start = max(free, key=lambda s: (sum(scores[s : s + width]) / width, -s))
        taken |= set(range(start, start + width))
    return taken


def pieces(row: torch.Tensor) -> int:
    return sum(1 for chosen, _ in itertools.groupby(row.tolist()) if chosen)


def test_by_hand():
    """Ten tokens, share .4: k = 4; in at most 2 windows they are 2 wide.

    Means of the pairs: .5 2.5 2.5 .5 0 0 2 3.5 2   The best is (7, 8) with 3.5; (1, 2) and (2, 3) tie with 2.5: the
    earlier.  In one window of 4: sums 6 6 5 1 4 7 8: the last.  In four of 1: the scores 4 4 3 and the earliest 1.
    In three: one of 2, (7, 8), then two of 1: the score 4, and the earliest 1.
    """
    scores = torch.tensor([[0.0, 1.0, 4.0, 1.0, 0.0, 0.0, 0.0, 4.0, 3.0, 1.0]])
    mask = torch.ones_like(scores, dtype=torch.bool)
    expected = {1: [6, 7, 8, 9], 2: [1, 2, 7, 8], 3: [1, 2, 7, 8], 4: [1, 2, 7, 8], None: [1, 2, 7, 8]}
    for spans, places in expected.items():
        assert best_windows(scores, mask, 0.4, spans)[0].nonzero().flatten().tolist() == places, spans


@pytest.mark.parametrize(("share", "tokens", "size"), [(0.29, 100, 29), (0.7, 10, 7), (1 / 3, 9, 3), (0.2, 4, 1)])
def test_the_share_is_exact_and_at_least_one(share, tokens, size):
    """0.29 · 100 is 28.999999999999996 in floating point."""
    mask = torch.ones(1, tokens, dtype=torch.bool)
    assert token_budget(mask, share).tolist() == [size]
    assert token_budget(torch.zeros(1, tokens, dtype=torch.bool), share).tolist() == [0]


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("spans", [1, 2, 3, 10])
def test_windows_are_those_of_a_loop(share, spans):
    scores, mask = some(spans)
    chosen = best_windows(scores, mask, share, spans)
    for row, real, weights in zip(chosen, mask, scores, strict=True):
        expected = slow(weights[real].tolist(), share, spans) if real.any() else set()
        assert set(row[real].nonzero().flatten().tolist()) == expected
    assert not (chosen & ~mask).any()


@pytest.mark.parametrize("spans", [1, 3, 10, None])
@pytest.mark.parametrize("share", [0.05, 0.2, 0.6])
def test_no_text_keeps_more_than_its_share_or_in_more_pieces(share, spans):
    scores, mask = some(1)
    chosen = best_windows(scores, mask, share, spans)
    size, tokens = token_budget(mask, share), mask.sum(-1)
    assert (chosen.sum(-1) <= size).all()
    assert (chosen.sum(-1) >= tokens.clamp_max(1)).all()
    assert all(pieces(row) <= (spans or 10**6) for row in chosen)
    if spans is None:
        assert torch.equal(chosen.sum(-1), size)


@pytest.mark.parametrize("tokens", [7, 49, 99, 599])
def test_at_a_fifth_of_a_text_all_of_the_share_is_used(tokens):
    """119 of 599 in ten windows: nine of 12 and one of 11."""
    scores, mask = torch.randn(20, tokens), torch.ones(20, tokens, dtype=torch.bool)
    assert (best_windows(scores, mask, 0.2, 10).sum(-1) == tokens // 5).all()


def test_equal_scores_give_the_earliest_windows_whatever_the_sums_round_to():
    scores = torch.full((1, 200), 0.1, dtype=torch.float64)
    chosen = best_windows(scores, torch.ones(1, 200, dtype=torch.bool), 0.2, 4)
    assert chosen[0].nonzero().flatten().tolist() == list(range(40))


def test_a_window_does_not_reach_over_what_is_no_token():
    scores = torch.tensor([[0.0, 5.0, 9.0, 5.0, 1.0, 1.0]])
    mask = torch.tensor([[True, True, False, True, True, True]])
    assert best_windows(scores, mask, 0.4, 1)[0].tolist() == [False, False, False, True, True, False]


def test_padding_the_batch_and_the_order_of_texts_change_nothing():
    scores, mask = some(4)
    for spans in (3, None):
        chosen = best_windows(scores, mask, 0.3, spans)
        wide = best_windows(pad(scores, (2, 7), value=torch.nan), pad(mask, (2, 7)), 0.3, spans)
        assert torch.equal(wide, pad(chosen, (2, 7)))
        assert torch.equal(best_windows(scores.flip(0), mask.flip(0), 0.3, spans), chosen.flip(0))
        alone = [best_windows(scores[i : i + 1], mask[i : i + 1], 0.3, spans) for i in range(len(scores))]
        assert torch.equal(torch.cat(alone), chosen)


@pytest.mark.parametrize(
    ("share", "spans", "message"), [(0.0, 1, "share is 0"), (1.5, 1, "share is 1.5"), (0.5, 0, "spans is 0")]
)
def test_shares_and_spans_that_select_nothing_are_refused(share, spans, message):
    with pytest.raises(ValueError, match=message):
        best_windows(torch.zeros(1, 3), torch.ones(1, 3, dtype=torch.bool), share, spans)


@pytest.mark.parametrize("peak", [20.0, 40.0, 80.0])
def test_values_beside_a_peak_remain_distinct(peak):
    """A softmax with one score far above the others: windows of one token are the top ten, as without windows."""
    scores = torch.randn(4, 100, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores[:, 50] += peak
    probabilities, mask = scores.softmax(-1).float(), torch.ones(4, 100, dtype=torch.bool)
    assert (best_windows(probabilities, mask, 0.1, 10) == best_windows(scores, mask, 0.1, None)).all()


def test_more_spans_than_tokens_may_be_kept_are_as_many_as_there_are():
    scores, mask = some(3)
    assert (best_windows(scores, mask, 0.2, 10_000) == best_windows(scores, mask, 0.2, 40)).all()
