"""The draw of substitutions, and the figures of their ratings."""

import pytest

from studies.verified_substitutions.plan import BEFORE, by_length, draw, without_seen
from studies.verified_substitutions.table import area, kappa, mixture

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"]
TEXTS = [f"{' '.join(WORDS)} Film {' '.join(WORDS)} {i}" for i in range(5)]


def test_a_draw_shows_nineteen_words_of_different_texts() -> None:
    draws = draw({"film": ["a", *"bcdefghi"], "absent": ["x"], "two": []}, TEXTS, 3, 0)
    assert len({item.window for item in draws}) <= len(draws) == 3
    for item in draws:
        assert item.word == "film"
        assert item.substitute in "abcdefgh"  # eight at most
        window = f"{' '.join(WORDS[-BEFORE:])} [Film>{item.substitute}] {' '.join(WORDS[:8])}"
        assert item.window == window
    assert len(draw({"film": ["a"]}, TEXTS, 9, 0)) == 5  # each text once
    assert draw({"seen": ["a"]}, TEXTS, 3, 0) == []


def test_texts_with_the_letters_of_a_seen_text_are_left_out() -> None:
    assert without_seen(["A film , 's", "a movie"], ["a Film's.", "other"]) == ["a movie"]


def test_groups_of_lengths_share_no_text() -> None:
    texts = [" ".join(["word"] * number) for number in (1, 10, 11, 20, 21, 40, 41, 400)]
    groups = by_length([*texts, "..."])
    assert list(groups) == ["1-10", "11-20", "21-40", "41+"]
    assert list(groups.values()) == [texts[:2], texts[2:4], texts[4:6], texts[6:]]


def test_kappa_and_area_by_hand() -> None:
    assert kappa([1, 1, 0, 0], [1, 0, 0, 0]) == 0.5
    records = [{"a": 1, "b": 1, "s": 3}, {"a": 1, "b": 1, "s": 1}, {"a": 1, "b": 0, "s": 1}, {"a": 0, "b": 0, "s": 2}]
    assert area(records, "s") == pytest.approx((1 + 1 + 0.5 + 0) / 4)


def test_the_precision_of_two_tables_is_weighted_by_their_words() -> None:
    assert mixture([(0.9, 3.0), (0.5, 1.0)]) == pytest.approx(0.8)
