"""How planted reviews are drawn: splits share cores but no template, and examples are written from those drawn."""

from random import Random

import numpy as np
import pytest

from steadygaze.data.planted.grammar import SPLITS, draw_question, draw_review, split_of
from steadygaze.data.planted.lexicon import ASPECTS, OWN_ADJECTIVES
from steadygaze.data.planted.lexicon import CLOSERS as LEXICON_CLOSERS
from steadygaze.data.planted.reviews import planted_reviews

OWN = {aspect: {word for words in OWN_ADJECTIVES[aspect].values() for word in words} for aspect in ASPECTS}
SHARED = set.intersection(*map(set, LEXICON_CLOSERS.values()))
CLOSERS = {aspect: tuple(set(LEXICON_CLOSERS[aspect]) - SHARED) for aspect in ASPECTS}
"""Aspect -> the closers about it alone."""


def drawn_sentences(split, n):
    rng = Random(f"0/{split}")
    return [sentence for _ in range(n) for sentence in draw_review(rng, split, 0.95)]


def templates(split, n=300):
    rng = Random(split)
    drawn = drawn_sentences(split, n)
    drawn += [draw_question(rng, split, aspect) for _ in range(n) for aspect in ASPECTS]
    return {sentence.template for sentence in drawn}


def test_no_template_is_shared_between_splits():
    train, validation, test = (templates(split) for split in SPLITS)
    assert len(train | validation | test) == len(train) + len(validation) + len(test)
    assert {split_of(template) for template in test} == {"test"}
    assert min(len(train), len(validation), len(test)) > 300


def test_a_core_that_stands_bare_in_test_stands_only_in_company_in_train():
    train, test = drawn_sentences("train", 1_000), drawn_sentences("test", 1_000)
    bare = {sentence.template for sentence in test if sentence.template == sentence.core}
    assert len(bare) == 23
    assert not bare & {sentence.template for sentence in train}
    assert bare < {sentence.core for sentence in train}


@pytest.mark.parametrize(("split", "own", "either"), [("train", 0.20, 0.24), ("test", 0.26, 0.29)])
def test_some_sentences_show_their_aspect_without_its_noun(split, own, either):
    """The documented shares, on the first 2,000 reviews of each split."""
    about = [sentence for sentence in drawn_sentences(split, 2_000) if sentence.aspect]
    adjective = [any(word in OWN[sentence.aspect] for word in sentence.words) for sentence in about]
    closer = [sentence.template.endswith(CLOSERS[sentence.aspect]) for sentence in about]
    assert np.mean(adjective) == pytest.approx(own, abs=0.01)
    assert np.mean(np.logical_or(adjective, closer)) == pytest.approx(either, abs=0.01)


def test_examples_are_written_from_those_templates():
    rng = Random("3/test")
    drawn = [" ".join(sentence.written()[0] for sentence in draw_review(rng, "test", 0.95)) for _ in range(5)]
    assert [example.text for example in planted_reviews(3, sizes=(0, 0, 5))["test"]] == drawn


def test_no_review_uses_one_core_twice():
    rng = Random(0)
    for _ in range(200):
        cores = [sentence.core for sentence in draw_review(rng, "validation", 0.95)]
        assert len(cores) == len(set(cores))
