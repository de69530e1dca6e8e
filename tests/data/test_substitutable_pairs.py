"""Which pairs of a table are substituted: no function words, no negations, no other word class."""

import pytest

from steadygaze.data.planted.lexicon import SYNONYMS
from steadygaze.data.substitutable_pairs import FUNCTION_WORDS, NEGATIONS, substitutable_pairs

WORDS = """film films movie movies love loves loved loving adore adores adored adoring quick quickly rapid rapidly happy
happier happiness glad gladness gladder stop stopped stopping halt halted halting carry carries carried bear misuse
misused abuse abused abuses stare stares stared blank blankly motivate motivated motivating box boxes crate crates
simple simply plain plainly enjoy enjoyment entertain entertainment fast"""
KNOWN = {word: [word] for word in WORDS.split()}
"""What the table shows of its words."""


def kept(word: str, other: str) -> bool:
    return other in substitutable_pairs({**KNOWN, word: [other]}).get(word, [])


@pytest.mark.parametrize(
    ("word", "other"),
    [
        *(("film", "movie"), ("films", "movies"), ("loved", "adored"), ("loving", "adoring"), ("quickly", "rapidly")),
        *(("stopped", "halted"), ("happier", "gladder"), ("enjoyment", "entertainment"), ("boxes", "crates")),
        *(("boring", "dull"), ("amazing", "wonderful"), ("king", "ruler"), ("bus", "coach"), ("red", "crimson")),
        ("Good", "FINE"),
    ],
)
def test_words_of_one_class_and_inflection_are_substituted(word, other):
    assert kept(word, other)
    assert kept(other, word)


@pytest.mark.parametrize(
    ("word", "other"),
    [
        *(("film", "movies"), ("films", "movie"), ("loved", "adore"), ("loving", "adore"), ("loves", "adore")),
        *(("quickly", "rapid"), ("happier", "glad"), ("happiness", "glad"), ("stopped", "halt"), ("carried", "halt")),
        *(("motivated", "motivating"), ("misused", "abuses"), ("blankly", "stare"), ("boxes", "crate")),
        *(("simply", "plain"), ("enjoyment", "entertain"), ("stopping", "stop")),
        *(("new", "for"), ("The", "which"), ("good", "not"), ("never", "hardly"), ("don", "n't"), ("two", "pair")),
        *(("happy", "unhappy"), ("hopeful", "hopeless"), ("hope", "hopeless"), ("able", "disable")),
        *(("3d", "solid"), ("route", "a1"), ("x", "ex")),
    ],
)
def test_function_words_negations_and_other_classes_are_not(word, other):
    assert not kept(word, other)
    assert not kept(other, word)


def test_without_classes_only_closed_classes_numbers_and_negative_affixes_are_dropped():
    table = {"films": ["movie", "the"], "movies": ["film"], "happy": ["unhappy", "glad"]}
    assert substitutable_pairs(table, classes=False) == {"films": ["movie"], "movies": ["film"], "happy": ["glad"]}


def test_the_order_of_synonyms_is_kept_and_the_table_is_not_changed():
    table = {"good": ["fine", "of", "nice"], "of": ["from"], "odd": []}
    assert substitutable_pairs(table) == {"good": ["fine", "nice"]}
    assert table == {"good": ["fine", "of", "nice"], "of": ["from"], "odd": []}
    assert substitutable_pairs({}) == {}


def test_the_planted_synonyms_are_all_substituted():
    """All of them are of one class, by construction."""
    assert substitutable_pairs(SYNONYMS) == {word: list(others) for word, others in SYNONYMS.items()}


def test_negations_are_function_words_in_lower_case():
    assert {"no", "not", "never", "n't"} <= NEGATIONS < FUNCTION_WORDS
    assert all(word == word.lower() for word in FUNCTION_WORDS)
