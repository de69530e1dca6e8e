"""The words of the planted corpora: those that decide stand nowhere else, and may be swapped freely."""

import re

from hypothesis import given
from hypothesis import strategies as st

from data.planted.planted_texts import WORD, aspect_of, some_examples
from steadygaze.data.planted.lexicon import (
    ASPECT_OF,
    CLOSERS,
    NEUTRAL,
    OPINIONS,
    OWN_ADJECTIVES,
    POLARITY,
    SYNONYMS,
    TEMPLATES,
)
from steadygaze.data.planted.reviews import read_planted_review


def test_neutral_words_and_frames_hold_no_word_that_decides():
    fixed = [
        *(word for choices in NEUTRAL.values() for word in choices),
        *(part for parts in (*TEMPLATES.values(), *CLOSERS.values()) for part in parts),
    ]
    neutral = {word for text in fixed for word in WORD.findall(re.sub(r"{.+?}", " ", text).lower())}
    assert not neutral & (POLARITY.keys() | ASPECT_OF.keys())


def test_synonyms_have_the_same_polarity_and_aspect():
    for word, synonyms in SYNONYMS.items():
        assert synonyms
        assert word not in synonyms
        assert all(
            (POLARITY.get(other), ASPECT_OF.get(other)) == (POLARITY.get(word), ASPECT_OF.get(word))
            for other in synonyms
        )
    assert SYNONYMS.keys() == POLARITY.keys() | ASPECT_OF.keys()


@given(example=st.sampled_from(some_examples()), choose=st.randoms(use_true_random=False))
def test_synonyms_never_change_the_label(example, choose):
    text = example.text
    for start, end in reversed(example.rationales):
        if options := SYNONYMS.get(text[start:end].lower()):
            text = text[:start] + choose.choice(options) + text[end:]
    assert text.lower() != example.text.lower()
    assert read_planted_review(text, aspect_of(example)) == example.label


def test_no_swap_needs_another_article():
    shared = [word for slot in ("adjective", "thing") for words in OPINIONS[slot].values() for word in words]
    own = [word for adjectives in OWN_ADJECTIVES.values() for words in adjectives.values() for word in words]
    for word in shared + own:
        assert len({other[0] in "aeiou" for other in (word, *SYNONYMS[word])}) == 1
