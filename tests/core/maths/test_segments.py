"""Sentences by number: against loops over the tokens of each text."""

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

from contract.tiny import assert_close
from steadygaze.core.ragged import segment_count, segment_exists, segment_ids, segment_max, segment_spread, segment_sum

STOP, BANG, WORDS = 1, 2, 7
ENDS = torch.tensor([False, True, True, False, False, False, False])


def some(seed: int, rows: int = 12, width: int = 11) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts of 0 to `width` tokens at random places, many of which end a sentence."""
    draw = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, WORDS, (rows, width), generator=draw)
    mask = torch.rand(rows, width, generator=draw) < torch.rand(rows, 1, generator=draw) * 1.4
    mask[0], mask[1] = True, False
    return ids, mask


def slow_numbers(ids: torch.Tensor, mask: torch.Tensor) -> list[int]:
    results, number, before = [], 0, False
    for token, real in zip(ids.tolist(), mask.tolist(), strict=True):
        ended = bool(ENDS[token])
        number += real and before and not ended
        results.append(number if real else -1)
        before = ended if real else before
    return results


def test_a_run_of_stops_ends_one_sentence_and_padding_belongs_to_none():
    """The text of the docstring: good beer . . thin ! and a pad; and one that begins with a stop."""
    ids = torch.tensor([[3, 4, STOP, STOP, 5, BANG, 0], [STOP, 3, BANG, STOP, 0, 0, 0]])
    mask = torch.tensor([[True] * 6 + [False], [True] * 4 + [False] * 3])
    numbers = segment_ids(ids, mask, ENDS)
    assert numbers.tolist() == [[0, 0, 0, 0, 1, 1, -1], [0, 1, 1, 1, -1, -1, -1]]
    assert segment_count(numbers).tolist() == [2, 2]


def test_a_text_without_a_stop_is_one_sentence_and_a_stop_outside_the_mask_ends_none():
    ids = torch.tensor([[3, 4, 5, 6], [3, STOP, 4, 5]])
    mask = torch.tensor([[True] * 4, [True, False, True, True]])
    assert segment_ids(ids, mask, ENDS).tolist() == [[0, 0, 0, 0], [0, -1, 0, 0]]


@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_those_of_a_loop_and_count_up_without_a_gap(seed):
    ids, mask = some(seed)
    numbers = segment_ids(ids, mask, ENDS)
    assert numbers.tolist() == [slow_numbers(*row) for row in zip(ids, mask, strict=True)]
    counts = segment_count(numbers)
    assert counts.tolist() == [len(set(row) - {-1}) for row in numbers.tolist()]
    sentences = int(counts.max())
    assert torch.equal(segment_exists(numbers, sentences), torch.arange(sentences) < counts.unsqueeze(-1))


@pytest.mark.parametrize("seed", range(5))
def test_reductions_are_those_of_a_loop(seed):
    ids, mask = some(seed)
    numbers = segment_ids(ids, mask, ENDS)
    sentences = int(segment_count(numbers).max()) + 1  # one more than any text has
    values = torch.randn(*ids.shape, 3, dtype=torch.float64) - 5  # all below 0: an empty sentence's 0 would win
    largest, sums = segment_max(values, numbers, sentences), segment_sum(values[..., 0], numbers, sentences)
    back = segment_spread(sums, numbers)
    for text in range(len(ids)):
        for sentence in range(sentences):
            own = numbers[text] == sentence
            expected = values[text, own].amax(0) if own.any() else torch.zeros(3, dtype=torch.float64)
            assert_close(largest[text, sentence], expected)
            assert_close(sums[text, sentence], values[text, own, 0].sum())
            assert (back[text, own] == sums[text, sentence]).all()
    assert (back[numbers < 0] == 0).all()


def test_what_belongs_to_no_sentence_is_seen_by_none_in_value_or_gradient():
    values = torch.tensor([[[1.0], [9.0], [2.0]]], dtype=torch.float64, requires_grad=True)
    numbers = torch.tensor([[0, -1, 0]])
    result = segment_max(values, numbers, 2)
    assert result.flatten().tolist() == [2.0, 0.0]
    (slope,) = torch.autograd.grad(result.sum(), values)
    assert slope.flatten().tolist() == [0.0, 0.0, 1.0]
    (slope,) = torch.autograd.grad(segment_sum(values[..., 0], numbers, 2).sum(), values)
    assert slope.flatten().tolist() == [1.0, 0.0, 1.0]


def test_gradients_are_those_of_finite_differences():
    ids, mask = some(3, rows=4, width=6)
    numbers = segment_ids(ids, mask, ENDS)
    values = torch.randn(4, 6, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: segment_max(v, numbers, 6), values)
    assert torch.autograd.gradcheck(lambda v: segment_spread(segment_sum(v[..., 0], numbers, 6), numbers), values)


def test_padding_the_batch_and_the_order_of_texts_change_nothing():
    ids, mask = some(7)
    values = torch.randn(*ids.shape, 2, dtype=torch.float64)
    numbers = segment_ids(ids, mask, ENDS)
    result = segment_max(values, numbers, 9)
    wide = segment_ids(pad(ids, (2, 3)), pad(mask, (2, 3)), ENDS)
    assert torch.equal(wide, pad(numbers, (2, 3), value=-1))
    assert torch.equal(segment_max(pad(values, (0, 0, 2, 3)), wide, 12)[:, :9], result)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(ids)))
    for position, row in enumerate(order):
        alone = segment_ids(ids[row : row + 1], mask[row : row + 1], ENDS)
        assert torch.equal(alone[0], numbers[order][position])
        assert torch.equal(segment_max(values[row : row + 1], alone, 9)[0], result[order][position])


def test_nothing_larger_than_the_values_is_ever_made():
    """64 sentences over 64 tokens: a tensor of both would be 64 times the values."""
    seen = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            seen.append(out.untyped_storage().nbytes() if isinstance(out, torch.Tensor) else 0)
            return out

    values, numbers = torch.randn(4, 64, 32), torch.arange(64).expand(4, 64).contiguous()
    with Watch():
        segment_max(values, numbers, 64)
    assert 0 < max(seen) <= 1.1 * values.untyped_storage().nbytes()
