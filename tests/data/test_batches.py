"""Batches: every row once, from the seed alone, padded no further than their own longest text."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from contract.tiny import ragged, rows
from steadygaze.core.ragged import TokenArray
from steadygaze.data.batches import NOISE, Data, by_length, collate, shuffled

lengths = st.lists(st.integers(0, 60), max_size=40)
sizes = st.integers(1, 9)
seeds = st.tuples(st.integers(0, 2**32), st.integers(0, 50))


def of_lengths(counts: list[int] | np.ndarray, question: list[int] | None = None) -> Data:
    return Data(ragged(["w" * count for count in counts]), None if question is None else of_lengths(question).text)


def padded(data: Data, batches: list[np.ndarray]) -> float:
    """Cells of all batches per token."""
    return sum(data.text.lengths[chosen].max() * len(chosen) for chosen in batches) / data.text.lengths.sum()


@given(lengths, sizes, seeds)
def test_an_epoch_has_every_row_exactly_once_in_batches_of_the_requested_size(counts, size, seed):
    batches = shuffled(of_lengths(counts), size, seed)
    assert sorted(np.concatenate([[], *batches]).tolist()) == list(range(len(counts)))
    assert sorted(map(len, batches), reverse=True) == [
        min(size, len(counts) - start) for start in range(0, len(counts), size)
    ]


@given(lengths, sizes, seeds)
def test_an_epoch_depends_on_its_seed_alone(counts, size, seed):
    np.random.seed(1)
    first = shuffled(of_lengths(counts), size, seed)
    np.random.seed(2)
    torch.manual_seed(2)
    again = shuffled(of_lengths(counts), size, seed)
    assert [chosen.tolist() for chosen in first] == [chosen.tolist() for chosen in again]


def test_another_epoch_has_another_order_and_other_company():
    data = of_lengths(np.random.default_rng(0).integers(5, 50, 200).tolist())
    first, second = ({frozenset(chosen.tolist()) for chosen in shuffled(data, 8, (0, epoch))} for epoch in (1, 2))
    assert len(first & second) < len(first) / 10


def test_batches_do_not_come_by_length():
    data = of_lengths(range(5, 205))
    means = [data.text.lengths[chosen].mean() for chosen in shuffled(data, 8, (0,))]
    assert abs(np.corrcoef(means, range(len(means)))[0, 1]) < 0.5


def test_a_batch_holds_texts_of_like_length():
    data = of_lengths(np.random.default_rng(0).integers(20, 400, 3000).tolist())
    for chosen in shuffled(data, 16, (3,)):
        result = data.text.lengths[chosen]
        assert (
            result.min() > result.max() * (1 - NOISE) / (1 + NOISE) * 0.95
        )  # 0.95: 16 neighbors in 3000 differ a little


def test_bucketing_pads_far_less_than_random_batches():
    random = np.random.default_rng(0)
    data = of_lengths(random.lognormal(3, 0.6, 2000).astype(int) + 1)
    random_padding = padded(data, np.split(random.permutation(2000), range(32, 2000, 32)))
    assert random_padding > 1.8
    assert padded(data, shuffled(data, 32, (0,))) < 1.15
    assert padded(data, list(by_length(data, 32))) < 1.05


@given(lengths, sizes, st.integers(1, 200))
def test_reading_has_every_row_once_by_rising_length_within_the_most_tokens(counts, size, most):
    data = of_lengths(counts)
    batches = list(by_length(data, size, most))
    order = [row for chosen in batches for row in chosen.tolist()]
    assert sorted(order) == list(range(len(counts)))
    assert [counts[row] for row in order] == sorted(counts)
    for chosen in batches:
        assert 1 <= len(chosen) <= size
        assert len(chosen) == 1 or len(chosen) * max(counts[row] for row in chosen) <= most


def test_the_question_counts_among_the_most_tokens():
    data = of_lengths([2] * 8, [2, 2, 2, 30, 2, 2, 2, 2])
    batches = list(by_length(data, 8, 40))
    assert sorted(np.concatenate(batches).tolist()) == list(range(8))
    for chosen in batches:
        assert len(chosen) == 1 or len(chosen) * (2 + data.question.lengths[chosen].max()) <= 40
    assert [len(chosen) for chosen in by_length(of_lengths([2] * 8, [2] * 8), 8, 40)] == [8]


def slow(part: TokenArray, chosen: list[int]) -> tuple[list[list[int]], list[list[bool]], list[list[bool]]]:
    """Ids, present and mask of these rows, token by token."""
    width = max([1, *(int(part.lengths[row]) for row in chosen)])
    ids, present, mask = [], [], []
    for row in chosen:
        tokens = range(part.starts[row], part.starts[row + 1])
        rest = width - len(tokens)
        ids.append([int(part.ids[token]) for token in tokens] + [0] * rest)
        present.append([True] * len(tokens) + [False] * rest)
        mask.append([bool(part.words[token]) for token in tokens] + [False] * rest)
    return ids, present, mask


@given(st.data(), rows, rows)
def test_collate_is_what_a_slow_loop_makes(draw, texts, questions):
    row_questions = [questions[i % len(questions)] for i in range(len(texts))]
    label, weight = np.arange(len(texts)), np.linspace(0, 1, len(texts), dtype=np.float32)
    data = Data(ragged(texts), ragged(row_questions, 1), label, weight)
    chosen = draw.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=6))
    result = collate(data, np.array(chosen))
    assert (result.ids.tolist(), result.present.tolist(), result.mask.tolist()) == slow(data.text, chosen)
    assert (result.question_ids.tolist(), result.question_present.tolist()) == slow(data.question, chosen)[:2]
    assert result.index.tolist() == result.label.tolist() == chosen
    assert result.weight.tolist() == weight[chosen].tolist()
    assert (result.ids.dtype, result.mask.dtype, result.weight.dtype) == (torch.int64, torch.bool, torch.float32)


def test_a_batch_is_padded_to_its_own_longest_text_and_no_further():
    data = of_lengths([3, 50, 7, 1], [1, 40, 2, 5])
    result = collate(data, np.array([0, 2]))
    assert result.ids.shape == (2, 7)
    assert result.question_ids.shape == (2, 2)


def test_a_single_text_has_no_question_no_label_and_no_weight():
    result = collate(of_lengths([2, 3]), np.array([1]))
    assert (result.question_ids, result.question_present, result.label, result.weight) == (None, None, None, None)
    with pytest.raises(ValueError, match="no labels"):
        _ = result.gold


@pytest.mark.parametrize("counts", [[0], [0, 0], [0, 3]])
def test_texts_without_any_token_are_all_padding(counts):
    result = collate(of_lengths(counts), np.arange(len(counts)))
    assert result.ids.shape == (len(counts), max(1, *counts, 0))
    assert result.present.sum() == sum(counts)
