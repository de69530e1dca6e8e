"""Two texts side by side: what differs between them, and what of a long text is shown."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.audited import SHIFTS, explanation
from steadygaze.report.text_excerpts import GAP, LONG, changed_words, text_pair
from steadygaze.results.row import Shift


def texts(e):
    return [e.text[start:end] for start, end in e.rationales or ()]


def test_the_substituted_words_are_marked_in_both_texts():
    seen = text_pair(SHIFTS[0])
    assert texts(seen.before) == ["superb", "story", "drags"]
    assert texts(seen.after) == ["great", "tale", "plods"]
    assert not seen.shortened


def test_without_substitutions_nothing_is_marked():
    seen = text_pair(Shift("noise", 0.1, SHIFTS[1].before, SHIFTS[1].before))
    assert seen.before.rationales is seen.after.rationales is None


def test_words_are_found_where_the_texts_are_of_different_lengths():
    assert changed_words("a b c d".split(), "a x y c d".split()) == ([1], [1, 2])  # noqa: SIM905
    assert changed_words(["a"], []) == ([0], [])


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_without_the_marked_words_the_two_are_alike(before, after):
    old, new = changed_words(before, after)
    left = [word for i, word in enumerate(before) if i not in old]
    assert left == [word for i, word in enumerate(after) if i not in new]


def long_text(word: str, at: int, many: int = 400) -> str:
    words = [f"w{i}" for i in range(many)]
    words[at] = word
    return " ".join(words)


def test_a_long_text_shows_its_top_and_its_substituted_words_and_their_neighbors():
    before = explanation(long_text("fine", 200), {"w40": 0.5}, "positive", 0.9)
    after = explanation(long_text("good", 200), {"w390": 0.5}, "positive", 0.9)
    seen = text_pair(Shift("1-synonym", 0.1, before, after))
    assert seen.shortened
    for side, whole, word in ((seen.before, before, "fine"), (seen.after, after, "good")):
        assert texts(side) == [word]
        assert [side.text[start:end] for start, end in side.spans] == list(side.tokens)
        assert {"w40", "w390", "w199", word} <= set(side.tokens)
        assert len(side) <= LONG
        weights = dict(zip(whole.tokens, whole.weights, strict=True))
        assert side.weights == tuple(weights[token] for token in side.tokens)
    assert seen.before.tokens != seen.after.tokens
    assert len(seen.before) == len(seen.after)  # the same places, so that the eye can compare
    assert seen.before.text.count(GAP.strip()) >= 2


def test_what_was_not_read_is_left_out_of_an_excerpt_with_a_sign():
    e = dataclasses.replace(explanation(long_text("fine", 399), {"fine": 0.9}, "positive", 0.9), read_to=5000)
    seen = text_pair(Shift("noise", 0.1, e, e))
    assert seen.before.text.endswith(GAP)
    assert seen.before.read_to is None


def test_what_is_left_out_at_the_beginning_and_the_end_is_shown_by_a_sign():
    heavy = {f"w{i}": 0.1 for i in range(100, 105)}
    e = explanation(long_text("fine", 0), heavy, "positive", 0.9)
    text = text_pair(Shift("noise", 0.1, e, e)).before.text
    assert text == "[…] " + " ".join(f"w{i}" for i in range(91, 114)) + " […] "


@pytest.mark.parametrize("text", ["", " \n "])
def test_a_text_without_words_is_shown_as_it_is(text):
    e = explanation(text, {}, "positive", 0.9)
    assert text_pair(Shift("noise", 0.0, e, e)).before.text == text
