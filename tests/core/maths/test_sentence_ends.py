"""Sentences by role: against a loop over the tokens of each text."""

import pytest
import torch

from steadygaze.core.maths.sentence_ends import MOST_CLOSING, SentenceRole, sentence_numbers

R = SentenceRole


def slow_numbers(roles: list[int]) -> list[int]:
    """Sentences of the real tokens of one text, token by token."""
    numbers: list[int] = []
    number, quotes, closed = 0, 0, MOST_CLOSING + 1  # closed: marks since the end
    ended = listed = numbered = low = False
    for place, role in enumerate(roles):
        before, second = (roles[place - back] if place >= back else R.OTHER for back in (1, 2))
        quotes += role in (R.QUOTE, R.END_QUOTE)
        quotes = 0 if role == R.QUOTE and before == R.NUMBER else quotes
        closes = role == R.CLOSING or (role == R.QUOTE and quotes % 2 == 0) or (role == R.LEFT_QUOTE and low)
        low = role == R.LOW_QUOTE or (low and role != R.LEFT_QUOTE)
        part = role == R.SUFFIX or (role == R.NUMBER and second == R.NUMBERED)
        may_begin = ended and role not in (R.END, R.END_QUOTE, R.FULL_STOP) and not (before == R.FULL_STOP and part)
        begins = may_begin and not (listed and before == R.FULL_STOP)
        number += begins
        closed = closed + 1 if closes and (begins or closed <= MOST_CLOSING) else MOST_CLOSING + 1
        closed = 0 if begins and closes else closed
        numbers.append(number - (closed <= MOST_CLOSING))
        ended = role in (R.END, R.END_QUOTE) or (role == R.FULL_STOP and before != R.ABBREVIATION)
        listed, numbered = numbered, role == R.NUMBER and (may_begin or place == 0)
    return numbers


@pytest.mark.parametrize("seed", range(40))
def test_numbers_are_those_of_a_loop(seed):
    draw = torch.Generator().manual_seed(seed)
    roles = torch.randint(0, len(R), (64, 24), generator=draw)
    roles = torch.where(torch.rand(64, 24, generator=draw) < 0.4, R.FULL_STOP, roles)
    mask = torch.rand(64, 24, generator=draw) < torch.rand(64, 1, generator=draw) * 1.4
    numbers = sentence_numbers(roles, mask)
    assert (numbers[~mask] == -1).all()
    for row, real, result in zip(roles, mask, numbers, strict=True):
        assert result[real].tolist() == slow_numbers(row[real].tolist())


def test_a_list_number_does_not_end_a_sentence():
    """3 . open ( it . ) 4 . shut"""
    roles = [R.NUMBER, R.FULL_STOP, R.OTHER, R.OTHER, R.OTHER, R.FULL_STOP, R.CLOSING, R.OTHER]
    numbers = sentence_numbers(torch.tensor([roles]), torch.ones(1, 8, dtype=torch.bool))
    assert numbers.tolist() == [[0, 0, 0, 0, 0, 0, 0, 1]]


def test_a_quotation_mark_in_one_token_with_an_end_closes():
    """ " yes ." she left . " no ." """
    roles = [R.QUOTE, R.OTHER, R.END_QUOTE, R.OTHER, R.OTHER, R.FULL_STOP, R.QUOTE, R.OTHER, R.END_QUOTE]
    numbers = sentence_numbers(torch.tensor([roles]), torch.ones(1, 9, dtype=torch.bool))
    assert numbers.tolist() == [[0, 0, 0, 1, 1, 1, 2, 2, 2]]
