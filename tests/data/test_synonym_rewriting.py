"""Words replaced by the representatives of their groups."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.synonym_rewriting import SynonymRewriter, match_case

GROUPS = SynonymGroups((("movie", "film"), ("good", "fine", "splendid"), ("naïve", "green")))
REWRITE = SynonymRewriter(GROUPS)


def test_words_are_replaced_in_their_own_case() -> None:
    texts = ["A fine FILM, well-shot.", "Nothing here", "", "Splendid! Filmed don't green"]
    assert [item.text for item in REWRITE(texts)] == [
        "A good MOVIE, well-shot.",
        "Nothing here",
        "",
        "Good! Filmed don't naïve",
    ]


def test_spans_are_those_of_the_original_text() -> None:
    text = "A fine FILM, well-shot."
    rewritten = REWRITE([text])[0]
    words = [(0, 1), (2, 6), (7, 12), (12, 13), (14, 18)]
    assert [rewritten.text[a:b] for a, b in words] == ["A", "good", "MOVIE", ",", "well"]
    assert [text[a:b] for a, b in rewritten.original_spans(words)] == ["A", "fine", "FILM", ",", "well"]
    # MO|VIE of five letters: FILM is cut after 4 · 2 / 5 = 1.6 letters, rounded down
    assert rewritten.original_spans([(7, 9), (9, 12)]) == [(7, 8), (8, 11)]


PARTS = st.sampled_from(
    ["film", "FILM", "Fine", "splendid", "plot", "naïve", "e\u0301", " ", ", ", "-", "'s ", "😀", "\ud800", "中"]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(PARTS, max_size=12).map("".join))
def test_positions_map_back_for_any_text(text: str) -> None:
    rewritten = REWRITE([text])[0]
    spans = [(i, i + 1) for i in range(len(rewritten.text))]
    mapped = rewritten.original_spans(spans)
    assert mapped == sorted(mapped)
    assert all(0 <= start <= end <= len(text) for start, end in mapped)
    assert rewritten.original_spans([(0, len(rewritten.text))]) == [(0, len(text))]
    unchanged = [(i, a) for i, (a, b) in enumerate(mapped) if b - a == 1 and rewritten.text[i] == text[a]]
    assert len(unchanged) >= sum(letter in " ,-😀中" for letter in text)
    assert REWRITE([rewritten.text])[0].text == rewritten.text


@pytest.mark.parametrize(
    ("word", "other", "expected"),
    [
        ("good", "fine", "fine"),
        ("Good", "fine", "Fine"),
        ("GOOD", "fine", "FINE"),
        ("I", "we", "We"),
        ("x", "TV", "TV"),
    ],
)
def test_case_is_kept(word, other, expected):
    assert match_case(word, other) == expected
