"""The oracle reads planted texts, and sentences like them, as a person does."""

import pytest

from steadygaze.core.errors import UserError
from steadygaze.data.planted.reviews import question_aspect, read_planted_review


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("The nose is superb.", "positive"),
        ("The nose is anything but superb.", "negative"),
        ("Not for the first time, the nose is superb, which nobody disputed.", "positive"),
        ("To call the nose dull would be wrong.", "positive"),
        ("Its smell failed to impress me. The head is superb.", "negative"),
        ("The head isn't superb. Awful is the word for the scent.", "negative"),
    ],
)
def test_the_oracle_reads_what_a_person_reads(text, label):
    assert read_planted_review(text, "aroma") == label


@pytest.mark.parametrize(
    ("question", "aspect"),
    [
        ("What did they make of the smell?", "aroma"),
        ("So, is the look praised?", "appearance"),
        ("Did the mouthfeel win them over?", "palate"),
    ],
)
def test_the_oracle_knows_the_aspect_of_the_question(question, aspect):
    assert question_aspect(question) == aspect


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: read_planted_review("The nose is superb.", "smell"), "unknown aspect 'smell'"),
        (lambda: read_planted_review("The nose is superb.", "palate"), "must have one opinion on its palate; found 0"),
        (
            lambda: read_planted_review("The nose is superb. Its smell is dull.", "aroma"),
            "must have one opinion on its aroma; found 2",
        ),
        (lambda: question_aspect("Did they like it?"), "must name one aspect of appearance, aroma, palate"),
    ],
)
def test_what_is_no_planted_text_is_refused(call, sentence):
    with pytest.raises(UserError, match=sentence):
        call()
