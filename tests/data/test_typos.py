"""Typos against edit distances, and groups with spellings."""

from functools import cache
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.data.class_frequencies import class_frequencies
from steadygaze.data.synonym_grouping import words_by_frequency
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.synonym_rewriting import SynonymRewriter
from steadygaze.data.typos import SHORTEST, TypoIndex
from steadygaze.data.word_tokenizer import build_word_tokenizer

LETTERS = "abc"
WORDS = st.text(LETTERS, min_size=2, max_size=6)


def all_typos(word: str) -> set[str]:
    """Every typo of a word, by the definition."""
    if len(word) < SHORTEST:
        return set()
    inner, result = word[1:-1], set()
    result |= {"".join(row) for row in permutations(inner)}
    for i in range(len(inner)):
        result.add(inner[:i] + inner[i + 1 :])
        result |= {inner[:i] + letter + inner[i + 1 :] for letter in LETTERS}
    for i in range(len(inner) + 1):
        result |= {inner[:i] + letter + inner[i:] for letter in LETTERS}
    return {word[0] + middle + word[-1] for middle in result} - {word}


@given(st.lists(WORDS, unique=True, max_size=8), WORDS)
def test_a_word_is_read_as_the_most_frequent_word_that_it_is_a_typo_of(words: list[str], typo: str) -> None:
    index = TypoIndex(words)
    expected = [word for word in words if typo in all_typos(word)]
    assert index.nearest(typo) == (None if typo in words or not expected else expected[0])


GROUPS = SynonymGroups((("good", "fine", "great"), ("film", "movie")), ("movie", "brilliant", "great", "dull"))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("moive", "film"),
        ("MOVVIE", "film"),
        ("Brilliannt", "brilliant"),
        ("grreat", "good"),
        ("dulll", "dull"),
        ("fiml", "fiml"),
        ("dull", "dull"),
        ("du11", "du11"),
        ("ovie", "ovie"),
        ("", ""),
    ],
)
def test_typos_have_the_representative_of_their_word(word: str, expected: str) -> None:
    assert GROUPS.representative(word) == expected


GROUP_TOKENIZER = build_word_tokenizer(["a great brilliant film", "a dull movie"], synonym_groups=GROUPS)


@cache
def spellings(word: str) -> list[str]:
    """The word and its typos in the same group."""
    return sorted(
        {word} | {form for form in all_typos(word) if GROUPS.representative(form) == GROUPS.representative(word)}
    )


@given(
    st.lists(st.sampled_from(["movie", "film", "great", "brilliant", "dull", "a"]), min_size=1, max_size=6), st.data()
)
def test_texts_with_typos_have_the_same_ids(words: list[str], data: st.DataObject) -> None:
    typos = [data.draw(st.sampled_from(spellings(word))).title() for word in words]
    encoded = GROUP_TOKENIZER.encode([" ".join(words), " ".join(typos)])
    first, second = (encoded.select([row]).ids.tolist() for row in (0, 1))
    assert first == second


def test_typos_are_rewritten_for_transformers_and_keep_their_spans() -> None:
    rewritten = SynonymRewriter(GROUPS)(["A Moive, ul and unknown!"])[0]
    assert rewritten.text == "A Film, ul and unknown!"
    assert rewritten.original_spans([(2, 6)]) == [(2, 7)]


def test_training_words_that_are_typos_count_as_their_word() -> None:
    groups = SynonymGroups((), ("movie",))
    tokenizer = build_word_tokenizer(["a moive", "a movie"], synonym_groups=groups)
    assert "moive" not in tokenizer.vocabulary
    assert tokenizer.encode(["movie"]).ids.tolist() == tokenizer.encode(["MOOVIE"]).ids.tolist()


def test_spellings_survive_json_and_change_the_digest() -> None:
    assert SynonymGroups.from_json(GROUPS.to_json()) == GROUPS
    assert GROUPS.digest != SynonymGroups(GROUPS.groups).digest
    assert "typos of 4 words" in GROUPS.summary


def test_words_are_listed_by_frequency_without_numbers() -> None:
    frequencies = class_frequencies(["films 12 , it's", "films fills"], [1, 0])
    assert words_by_frequency(frequencies) == ("films", "fills", "it")
