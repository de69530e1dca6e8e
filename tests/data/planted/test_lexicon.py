"""The words of the planted corpora: those that decide stand nowhere else, and may be swapped freely."""

import re

from data.planted.planted_texts import WORD
from steadygaze.data.planted.lexicon import (
    ANTONYMS,
    ASPECT_OF,
    CLOSERS,
    NEUTRAL,
    OPINIONS,
    OWN_ADJECTIVES,
    POLARITY,
    SYNONYMS,
    TEMPLATES,
)


def test_neutral_words_and_frames_hold_no_word_that_decides():
    fixed = [
        *(word for choices in NEUTRAL.values() for word in choices),
        *(part for parts in (*TEMPLATES.values(), *CLOSERS.values()) for part in parts),
    ]
    neutral = {word for text in fixed for word in WORD.findall(re.sub(r"{.+?}", " ", text).lower())}
    assert not neutral & (POLARITY.keys() | ASPECT_OF.keys())


def test_antonyms_turn_round_and_synonyms_do_not():
    for word, antonym in ANTONYMS.items():
        assert ANTONYMS[antonym] == word
        assert POLARITY[antonym] is not POLARITY[word]
    for word, synonyms in SYNONYMS.items():
        assert synonyms
        assert word not in synonyms
        assert all(
            (POLARITY.get(other), ASPECT_OF.get(other)) == (POLARITY.get(word), ASPECT_OF.get(word))
            for other in synonyms
        )
    assert SYNONYMS.keys() == POLARITY.keys() | ASPECT_OF.keys()


def test_no_swap_needs_another_article():
    shared = [word for slot in ("adjective", "thing") for words in OPINIONS[slot].values() for word in words]
    own = [word for adjectives in OWN_ADJECTIVES.values() for words in adjectives.values() for word in words]
    for word in shared + own:
        assert len({other[0] in "aeiou" for other in (word, ANTONYMS[word], *SYNONYMS[word])}) == 1
