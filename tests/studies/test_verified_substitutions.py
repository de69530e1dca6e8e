"""The draw of substitutions, and the figures of their ratings."""

import pytest

from studies.verified_substitutions.plan import PUBLISHED_HALF, draw, half
from studies.verified_substitutions.table import area, kappa

TEXTS = [f"One two three four five six seven Film eight nine ten eleven twelve {i}" for i in range(5)]


def test_a_draw_shows_twelve_words_of_different_texts() -> None:
    assert half("film") == 1 - PUBLISHED_HALF  # SHA-256 of the word
    assert draw({"film": ["movie"]}, TEXTS, 3, 0) == []
    assert half("seven") == PUBLISHED_HALF
    draws = draw({"seven": ["a", *"bcdefghi"]}, TEXTS, 3, 0)
    assert len(draws) == 3
    for item in draws:
        assert item.substitute in "abcdefgh"  # eight at most
        assert item.window == f"One two three four five six [seven>{item.substitute}] Film eight nine ten eleven"
    assert draw({"seven": ["a"]}, TEXTS, 9, 0) == draw({"seven": ["a"]}, TEXTS, 5, 0)


def test_kappa_and_area_by_hand() -> None:
    assert kappa([1, 1, 0, 0], [1, 0, 0, 0]) == 0.5
    records = [{"a": 1, "b": 1, "s": 3}, {"a": 1, "b": 1, "s": 1}, {"a": 1, "b": 0, "s": 1}, {"a": 0, "b": 0, "s": 2}]
    assert area(records, "s") == pytest.approx((1 + 1 + 0.5 + 0) / 4)
