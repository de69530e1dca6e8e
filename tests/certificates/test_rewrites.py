"""Rewrites of a text against itertools, and which positions are substituted."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from steadygaze.certificates.rewrites import TextPositions, count_rewrites, enumerate_choices, text_positions
from steadygaze.data.synonym_groups import fold_word
from steadygaze.data.synonym_rewriting import cased_alternatives
from steadygaze.data.word_tokenizer import build_word_tokenizer


@pytest.mark.parametrize("changes", [None, 0, 1, 2, 5])
@pytest.mark.parametrize("sizes", [[], [1], [3], [2, 1, 3], [2, 2, 2, 2]])
def test_choices_are_those_of_a_product_with_few_changes(sizes: list[int], changes: int | None) -> None:
    most = len(sizes) if changes is None else changes
    expected = {row for row in product(*map(range, sizes)) if sum(map(bool, row)) <= most}
    choices = enumerate_choices(sizes, changes)
    assert {tuple(row) for row in choices.tolist()} == expected
    assert len(choices) == len(expected) == count_rewrites(sizes, changes)
    assert not choices[0].any()


def test_the_number_of_rewrites_can_exceed_any_float() -> None:
    assert count_rewrites([9] * 400) == 9**400


def positions(text: str, *words: str) -> TextPositions:
    spans = build_word_tokenizer([], max_length=99).place([text]).spans[0]
    return text_positions(text, spans, frozenset(words))


def test_rewrites_keep_everything_but_the_words() -> None:
    result = positions("  A FINE film;\tno-film's fine.", "fine", "film")
    assert result.words == ("FINE", "film", "film", "fine")
    rewrites = result.rewrites(
        [["FINE", "GOOD"], ["film"], ["film", "plot"], ["fine"]], np.array([[0, 0, 0, 0], [1, 0, 1, 0]])
    )
    assert rewrites == ["  A FINE film;\tno-film's fine.", "  A GOOD film;\tno-plot's fine."]


def test_parts_of_words_are_not_substituted() -> None:
    assert positions("couldn't", "could").words == ()
    assert positions("film_2", "film").words == ()


@pytest.mark.parametrize(
    "text", ["电影film", "这film片", "映画のfilmです", "カfilmー", "หนังfilmดี", "រឿងfilmល្អ", "中 film中2"]
)
def test_words_beside_letters_of_scripts_without_spaces_are_positions(text: str) -> None:
    result = positions(text, "film")
    assert result.words == ("film",)
    assert result.beside_unspaced == [True]
    before, after = text.split("film")
    assert result.rewrites([["film", "plot"]], np.array([[1]])) == [f"{before}plot{after}"]


def test_a_text_without_positions_has_one_rewrite() -> None:
    result = positions("nothing here", "film")
    assert result.rewrites([], enumerate_choices([])) == ["nothing here"]


@pytest.mark.slow
def test_rewrites_with_cased_alternatives_keep_the_positions_of_words() -> None:
    """Random texts of cased letters, apostrophes and marks: the same positions, in the words of the rewrite."""
    words = ["film", "don", "can", "us", "café", "int", "ŉa", "ǆa", "ıki", "größe", "gross", "σοφός", "σοφοσ", "καλή"]
    words += ["naïve", "été", "ﬁlm", "שלום", "कमल"]
    names = frozenset(name for name in map(fold_word, words) if name is not None)
    glue = [" ", "'", "’", "n't", "-", ".", "/", "@", "_", "'s", "1", "\u200d", "\u0301", "\n", "é", "中", "\u200b"]
    glue += ["ー", "っ", "ดี", "ั", "។"]
    random, splitter = np.random.default_rng(0), build_word_tokenizer([], max_length=99)
    changed = 0
    for _ in range(800):
        text = "".join(random.choice([*words, *glue, *glue], random.integers(1, 8)))
        text = str(random.choice([text, text.upper(), text.title()]))
        before = text_positions(text, splitter.place([text]).spans[0], names)
        forms = [str(random.choice([word, *cased_alternatives(word, sorted(names))])) for word in before.words]
        rewrite = "".join(part + form for part, form in zip(before.parts, [*forms, ""], strict=True))
        after = text_positions(rewrite, splitter.place([rewrite]).spans[0], names)
        assert after == replace(before, words=tuple(forms)), (text, rewrite)
        changed += tuple(forms) != before.words
    assert changed > 100
