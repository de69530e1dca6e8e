"""An answer -> the probability of each label, by hand."""

import math

import numpy as np
import pytest

from steadygaze.adapters.hosted.label_reading import LabelWords, Reading, mean_of_readings
from steadygaze.adapters.hosted.request_form import Answer, request_forms
from steadygaze.core.errors import UserError

WORDS = LabelWords.of({"neg": " negative", "pos": " positive"})


def answer(**shares):
    """`shares`: token -> probability."""
    pairs = sorted(((token, math.log(share)) for token, share in shares.items()), key=lambda item: -item[1])
    return Answer("", tuple(pairs))


def test_the_tokens_that_begin_a_label_word_count_together():
    """negative: 0.2 + 0.1; positive: 0.3 + 0.2.  Of 0.8, 3/8 and 5/8; 0.2 is for other words."""
    reading = WORDS.read(
        answer(**{" Negative": 0.2, "neg": 0.1, "positive": 0.3, " POS": 0.2, "I": 0.1, "posit-": 1e-9})
    )
    assert reading.probabilities == pytest.approx([3 / 8, 5 / 8], abs=1e-8)
    assert reading.unanswered == pytest.approx(0.2)


def test_a_label_outside_of_the_list_has_at_most_what_the_list_leaves():
    assert WORDS.read(answer(positive=0.9, Sure=0.06)).probabilities == pytest.approx([0.04 / 0.94, 0.9 / 0.94])
    assert WORDS.read(answer(positive=0.5, Sure=0.001)).probabilities == pytest.approx([0.001 / 0.501, 0.5 / 0.501])


def test_a_letter_and_a_common_beginning_name_no_label():
    assert WORDS.read(answer(p=0.5, n=0.4)) == Reading(None, 1.0)
    same_start = LabelWords.of({"a": "very good", "b": "very bad"})
    assert same_start.read(answer(very=1.0)) == Reading(None, 1.0)
    letters = LabelWords.of({"a": "A", "b": "B"})
    assert letters.read(answer(A=0.75, b=0.25)).probabilities == pytest.approx([0.75, 0.25])


@pytest.mark.parametrize(
    ("text", "votes"),
    [
        ("Positive.", [0, 1]),
        ("**negative**, because", [1, 0]),
        ("negatively", None),
        ("It is positive", None),
        ("", None),
    ],
)
def test_a_vote_is_for_the_label_whose_word_begins_the_text(text, votes):
    reading = WORDS.read(Answer(text))
    assert (None if reading.probabilities is None else reading.probabilities.tolist()) == votes
    assert reading.unanswered == (votes is None)


def test_votes_without_a_label_do_not_count():
    votes = [WORDS.read(Answer(text)) for text in ("positive", "negative", "positive", "I cannot say")]
    assert mean_of_readings(votes, 2) == pytest.approx([1 / 3, 2 / 3])
    assert mean_of_readings(votes[3:], 2).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "words", [{"a": "pos", "b": "positive"}, {"a": "good", "b": " Good."}, {"a": "!", "b": "good"}]
)
def test_label_words_that_cannot_be_told_apart_are_refused(words):
    with pytest.raises(UserError, match="label word"):
        LabelWords.of(words)


@pytest.mark.parametrize("chat", [True, False])
def test_replies_of_another_form_are_no_answers(chat):
    """A reply is read without trust in its form; values that are no log-probabilities are left out."""
    form = request_forms(chat, votes=False)[0]
    for reply in ([], {}, {"choices": []}, {"choices": [3]}, {"choices": [{"message": 3}]}, None, "text"):
        with pytest.raises(ValueError, match="no choices"):
            form.read(reply, chat)
    wrong = {"a": float("nan"), "b": "x", "c": 2.0, "d": True, "e": None, "f": -1.0}
    entries = [{"token": token, "logprob": value} for token, value in wrong.items()]
    listed = {"content": [{"top_logprobs": entries}]} if chat else {"top_logprobs": [wrong]}
    choice = {"text": "t", "message": {"content": None}, "logprobs": listed}
    assert form.read({"choices": [choice]}, chat).top == (("f", -1.0),)
    assert np.isfinite([value for _, value in form.read({"choices": [choice]}, chat).top]).all()
