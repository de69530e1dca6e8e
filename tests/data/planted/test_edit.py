"""The truth decides: changing it flips the label, and changing anything else does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.planted.planted_texts import WORD, aspect_of, aspects_in, sentences, some_examples, words
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.planted.lexicon import SYNONYMS
from steadygaze.data.planted.reviews import flip_label, read_planted_review, redraw_review, swap_words


def sentence_about(example):
    return next(text for text in sentences(example) if aspect_of(example) in aspects_in(text))


def test_flipping_one_word_flips_the_label():
    for example in some_examples():
        flipped = flip_label(example)
        assert {example.label, flipped.label} == {"negative", "positive"}
        assert read_planted_review(flipped.text, aspect_of(example)) == flipped.label
        changed = [pair for pair in zip(example.text.split(), flipped.text.split(), strict=True) if len(set(pair)) > 1]
        assert len(changed) == 1
        assert flip_label(flipped) == example


def test_a_redrawn_review_keeps_its_label_and_rationale():
    for example in some_examples():
        other = redraw_review(example, seed=1)
        assert other.label == example.label == read_planted_review(other.text, aspect_of(example))
        assert words(other) == words(example)
        assert other.text != example.text
        assert set(sentences(other)) & set(sentences(example)) >= {sentence_about(example)}
        shuffled = " ".join(sorted(sentences(example)))
        assert read_planted_review(shuffled, aspect_of(example)) == example.label


def test_redrawing_changes_the_opinions_about_other_aspects():
    example = some_examples(1)[0]
    redrawn = [redraw_review(example, seed) for seed in range(40)]
    assert aspect_of(example) == "appearance"
    assert {read_planted_review(other.text, "aroma") for other in redrawn} == {"negative", "positive"}
    assert {read_planted_review(other.text, "palate") for other in redrawn} == {"negative", "positive"}
    assert redraw_review(example, 7) == redraw_review(example, 7) != redraw_review(example, 8)


@given(example=st.sampled_from(some_examples()), choose=st.randoms(use_true_random=False))
def test_synonyms_never_change_the_label(example, choose):
    replaced = example
    for index, word in enumerate(words(example)):
        if options := SYNONYMS.get(word.lower()):
            replaced = swap_words(replaced, replaced.rationales[index], choose.choice(options))
    assert replaced.text != example.text
    assert replaced.label == example.label == read_planted_review(replaced.text, aspect_of(replaced))
    assert len(words(replaced)) == len(words(example))
    assert all(WORD.fullmatch(word) for word in words(replaced))


def test_swapping_keeps_every_span_on_its_word():
    example = Example("Nice nose. A nice head.", "positive", rationales=((0, 4), (5, 9)), sentences=((0, 10), (11, 23)))
    longer = swap_words(example, (0, 4), "wonderful")
    assert (longer.text, words(longer)) == ("Wonderful nose. A nice head.", ["Wonderful", "nose"])
    assert sentences(longer) == ["Wonderful nose.", "A nice head."]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: flip_label(Example("A film.", "positive")),
            "only a planted example with its rationales can be edited",
        ),
        (lambda: redraw_review(some_examples(1)[0], split="dev"), "unknown split 'dev'"),
    ],
)
def test_what_cannot_be_edited_is_refused(call, sentence):
    with pytest.raises(UserError, match=sentence):
        call()
