"""Texts in which a mask can leak the label: the label is the majority of opinions, and those are the rationales."""

from collections import Counter, defaultdict
from functools import cache
from typing import Any

import pytest

from data.planted.planted_texts import words
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.corpora import load_corpus
from steadygaze.data.planted.reviews import (
    CODE_LABELS,
    CONSTANT_WORDS,
    NEUTRAL,
    OPINIONS,
    OPINIONS_PER_TEXT,
    planted_code,
)


@cache
def full() -> dict[str, list[Example]]:
    return planted_code()


@cache
def mixed() -> dict[str, list[Example]]:
    """In which opinions differ."""
    return planted_code(agreement=0.85, sizes=(4_000, 0, 500))


@cache
def sides() -> dict[str, str]:
    """Every word that was ever the rationales, and what of."""
    result = defaultdict(set)
    for split in full().values():
        for example in split:
            for word in words(example):
                result[word].add(example.label)
    assert all(len(labels) == 1 for labels in result.values()), "no word speaks for both"
    return {word: labels.pop() for word, labels in result.items()}


def opinions(example: Example) -> Counter[str]:
    return Counter(sides()[word] for word in example.text.split() if word in sides())


@pytest.mark.slow
def test_all_opinions_of_the_splits_are_known_from_their_rationales() -> None:
    assert Counter(sides().values()) == dict.fromkeys(CODE_LABELS, OPINIONS)


@pytest.mark.slow
def test_the_label_is_the_majority_of_five_opinions() -> None:
    for example in (*full()["test"], *mixed()["test"]):
        count = opinions(example)
        assert count.total() == OPINIONS_PER_TEXT
        assert count.most_common(1)[0][0] == example.label
    assert all(len(opinions(example)) == 1 for example in full()["test"]), "unless asked to differ, all are alike"
    assert {len(opinions(example)) for example in mixed()["test"]} == {1, 2}


@pytest.mark.slow
def test_the_rationale_is_the_opinions_on_the_side_of_the_label_each_one_word() -> None:
    for example in (*full()["test"], *mixed()["test"]):
        mine = [word for word in example.text.split() if sides().get(word) == example.label]
        assert words(example) == mine
    assert {len(words(example)) for example in full()["test"]} == {OPINIONS_PER_TEXT}
    assert {len(words(example)) for example in mixed()["test"]} == {3, 4, 5}


@pytest.mark.slow
def test_every_text_begins_with_the_same_words_and_has_thirty_more() -> None:
    for example in full()["test"]:
        assert tuple(example.text.split()[: len(CONSTANT_WORDS)]) == CONSTANT_WORDS
        assert len(example.text.split()) == len(CONSTANT_WORDS) + 30
        assert not set(CONSTANT_WORDS) & set(example.text.split()[len(CONSTANT_WORDS) :])


@pytest.mark.slow
def test_labels_come_equally_often_and_opinions_stand_anywhere() -> None:
    """Of 8,000 fair coins the share of heads is within 5 standard deviations, 0.028, of a half; of 30 places each has
    5 in 30 of the opinions, within 5 √(1/6 · 5/6 / 8000) = 0.021."""
    train = full()["train"]
    assert abs(sum(example.label == "praise" for example in train) / len(train) - 0.5) < 0.028
    places = Counter(place for e in train for place, word in enumerate(e.text.split()) if word in sides())
    assert set(places) == set(range(len(CONSTANT_WORDS), len(CONSTANT_WORDS) + 30))
    assert all(abs(many / len(train) - 1 / 6) < 0.021 for many in places.values())


@pytest.mark.slow
def test_as_many_opinions_agree_as_requested() -> None:
    """How many of five agree with the side that was drawn is binomial, 0.85 each.  All five are alike in 0.85⁵ + 0.15⁵
    = 0.4438 of texts; 5 √(0.4438 · 0.5562 / 4000) = 0.039."""
    alike = sum(len(example.rationales or ()) == OPINIONS_PER_TEXT for example in mixed()["train"]) / len(
        mixed()["train"]
    )
    assert abs(alike - (0.85**5 + 0.15**5)) < 0.039


@pytest.mark.slow
def test_the_words_are_different_and_enough() -> None:
    known = {word for split in full().values() for example in split for word in example.text.split()} - set(
        CONSTANT_WORDS
    )
    assert len(known) == 2 * OPINIONS + NEUTRAL


def test_no_text_is_in_two_splits() -> None:
    texts = [example.text for split in full().values() for example in split]
    assert [len(split) for split in full().values()] == [8_000, 1_000, 2_000]
    assert len(set(texts)) == len(texts)


def test_the_same_seed_gives_the_same_texts_and_another_gives_others() -> None:
    small = planted_code(sizes=(40, 20, 20))
    assert small == {split: examples[: len(small[split])] for split, examples in full().items()}
    other = planted_code(1, sizes=(40, 20, 20))
    assert not {e.text for e in small["train"]} & {e.text for e in other["train"]}
    assert any(sides().get(word) != e.label for e in other["train"] for word in words(e)), "words mean something else"


def test_it_is_loaded_by_name_with_options() -> None:
    corpus = load_corpus("planted-code:length=12,sizes=[5,2,3]")
    assert corpus.sizes == {"train": 5, "validation": 2, "test": 3}
    assert {len(e.text.split()) for e in corpus.splits["train"]} == {len(CONSTANT_WORDS) + 12}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"length": 4}, "at least 5.*found 4"),
        ({"agreement": 0.4}, "from 0.5 to 1; found 0.4"),
        ({"agreement": 1.5}, "from 0.5 to 1; found 1.5"),
        ({"sizes": (1, 2)}, "three numbers"),
        ({"sizes": (1, 2, -3)}, "three numbers from 0 to"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        planted_code(**options)


def test_as_many_words_as_opinions_is_the_shortest() -> None:
    (example,) = planted_code(length=OPINIONS_PER_TEXT, sizes=(1, 0, 0))["train"]
    assert opinions(example).total() == OPINIONS_PER_TEXT
