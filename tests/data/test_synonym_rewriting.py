"""Words replaced by the representatives of their groups."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.data.synonym_groups import SynonymGroups, fold_word
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


WORD = st.text(st.sampled_from("abcdefghijklmnéüж"), min_size=2, max_size=6).filter(
    lambda word: fold_word(word) == word
)
CASES = st.sampled_from([str.lower, str.title, str.upper])
JOINTS = st.sampled_from([" ", ", ", "-", "\n", "'s ", "n't ", "!", "…", " 7 ", "(", "#", "😀"])


@st.composite
def rewritten_pairs(draw: st.DrawFn) -> tuple[SynonymGroups, str, str]:
    """Groups, and two texts that differ inside the groups, in any case and punctuation."""
    words = draw(st.lists(WORD, min_size=4, max_size=10, unique=True))
    cut = draw(st.integers(2, len(words) - 2))
    groups = SynonymGroups((tuple(words[:cut]), tuple(words[cut:])))
    frame = draw(st.lists(st.tuples(st.sampled_from(words), CASES, JOINTS), min_size=1, max_size=8))
    others = [draw(st.sampled_from(groups.members(word))) for word, _, _ in frame]
    first = "".join(case(word) + joint for word, case, joint in frame)
    second = "".join(case(other) + joint for other, (_, case, joint) in zip(others, frame, strict=True))
    return groups, first, second


@given(rewritten_pairs())
def test_texts_that_differ_inside_groups_are_rewritten_alike(drawn: tuple[SynonymGroups, str, str]) -> None:
    groups, first, second = drawn
    rewrite = SynonymRewriter(groups)
    rewriting, other = rewrite([first, second])
    assert rewriting.text == other.text
    words = [(i, i + 1) for i, letter in enumerate(other.text) if letter in ",-!…7(#😀"]
    assert [second[a:b] for a, b in other.original_spans(words)] == [other.text[a:b] for a, b in words]


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
