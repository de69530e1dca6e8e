"""Human rationales in the forms that people have: masks, graded marks, phrases."""

import numpy as np
import pytest

from steadygaze.core.types import Example
from steadygaze.data.rationale_spans import annotate, with_sentences
from steadygaze.data.token_alignment import grade_tokens

TEXT = "Not a good, witty film."


def phrases(rationale, text=TEXT):
    return [text[start:end] for start, end in annotate(Example(text), rationale).rationales]


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ([0, 0, 1, 1, 0], ["good, witty"]),  # words between white space
        ([0, 0, 1, 0, 1, 0, 0], ["good", "witty"]),  # with punctuation: Not a good , witty film .
        ([True, False, False, False, True], ["Not", "film."]),
        (np.array([0, 0, 1, 1, 0]), ["good, witty"]),
        ((1.0, 0.0, 0.0, 0.0, 0.0), ["Not"]),
        ("[1, 0, 0, 0, 0]", ["Not"]),
        ([0] * 5, []),
    ],
)
def test_a_mask_marks_words_between_white_space_or_our_tokens(mask, expected):
    assert phrases(mask) == expected
    assert annotate(Example(TEXT), mask).graded is None


def test_a_mask_of_another_length_names_both_counts():
    with pytest.raises(
        ValueError, match="found 6 marks; words between white space in the text: 5; words and punctuation marks: 7;"
    ):
        annotate(Example(TEXT), [0, 0, 1, 1, 0, 0])


def test_words_without_spaces_are_counted_as_the_tokenizer_counts_them():
    assert phrases([0, 0, 1, 0, 0, 0], "我非常喜欢这部电影") == ["喜欢"]


def test_graded_marks_are_kept_and_the_rationale_has_those_from_one_half():
    example = annotate(Example(TEXT), [0, 0.0, 0.5, 0.9, 0.2])
    assert [TEXT[slice(*span)] for span in example.rationales] == ["good, witty"]
    assert [(TEXT[start:end], mark) for start, end, mark in example.graded] == [
        ("good,", 0.5),
        ("witty", 0.9),
        ("film.", 0.2),
    ]


@pytest.mark.parametrize("mark", [1.5, -0.1, float("nan"), 2])
def test_marks_outside_0_to_1_are_refused(mark):
    with pytest.raises(ValueError, match=r"found the mark .*; a rationale is character spans"):
        annotate(Example(TEXT), [0, 0, mark, 0, 0])


def test_a_phrase_is_matched_as_a_whole_word_if_possible():
    assert annotate(Example("a party of art"), "art").rationales == ((11, 14),)
    assert annotate(Example("a party"), "art").rationales == ((3, 6),)
    assert annotate(Example("so good!"), ["good!"]).rationales == ((3, 8),)


def test_an_ambiguous_phrase_is_refused_with_its_count_and_all_can_be_marked():
    with pytest.raises(ValueError, match=r"the phrase 'good' occurs 2 times in the text: list it 2 times"):
        annotate(Example("good, good"), ["good"])
    assert annotate(Example("good, good"), ["good", "good"]).rationales == ((0, 4), (6, 10))
    assert annotate(Example("good"), ["good", "good"]).rationales == ((0, 4),)  # two annotators


@pytest.mark.parametrize("rationale", [None, "", "  ", float("nan")])
def test_a_text_without_a_rationale_stays_as_it_is(rationale):
    assert annotate(Example(TEXT), rationale) == Example(TEXT)


def test_tokens_get_the_mark_of_their_word():
    pieces = [(0, 3), (4, 5), (6, 8), (8, 10), (10, 11), (12, 17)]  # Not a go|od| , witty
    assert grade_tokens(pieces, [(6, 11, 0.5), (12, 17, 0.25)]).tolist() == [0, 0, 0.5, 0.5, 0.5, 0.25]
    assert grade_tokens([], [(0, 1, 0.5)]).tolist() == []
    assert grade_tokens([(0, 1)], []).tolist() == [0]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('["A b.", "C d e."]', ((0, 4), (5, 11))),
        ("[[0, 4], [5, 11]]", ((0, 4), (5, 11))),
        ([[0, 4], [5, 11]], ((0, 4), (5, 11))),
        (["A  b.", "C d"], ((0, 4), (5, 8))),
        ("", None),
        (None, None),
        ([], None),
    ],
)
def test_sentences_are_spans_or_strings(cell, expected):
    assert with_sentences(Example("A b. C d e."), cell).sentences == expected


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        (["C d e.", "A b."], "not in the order of the text"),
        (["A b.", "X."], "'X.' is not in the text"),
        ([[0, 5], [4, 11]], "begins at 4, before the previous one ends at 5"),
        ([[5, 11], [0, 4]], "begins at 0, before the previous one ends at 11"),
        ([[0, 99]], "outside of a text of 11 characters"),
        ([1, 0], "sentences are character spans"),
        ("{not", "is not JSON; sentences are"),
        (3, "found 3; sentences are"),
    ],
)
def test_sentences_that_are_not_in_the_text_are_refused(cell, problem):
    with pytest.raises(ValueError, match=problem):
        with_sentences(Example("A b. C d e."), cell)
