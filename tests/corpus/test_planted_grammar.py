"""How planted reviews are drawn: splits share no template, and the examples are written from those drawn."""

from random import Random

from steadygaze.corpus.planted import planted_reviews
from steadygaze.corpus.planted_grammar import SPLITS, draw_question, draw_review, split_of
from steadygaze.corpus.planted_lexicon import ASPECTS


def templates(split, n=300):
    rng = Random(split)
    drawn = [sentence for _ in range(n) for sentence in draw_review(rng, split, 0.95)]
    drawn += [draw_question(rng, split, aspect) for _ in range(n) for aspect in ASPECTS]
    return {sentence.template for sentence in drawn}


def test_no_template_is_shared_between_splits():
    train, validation, test = (templates(split) for split in SPLITS)
    assert len(train | validation | test) == len(train) + len(validation) + len(test)
    assert {split_of(template) for template in test} == {"test"}
    assert min(len(train), len(validation), len(test)) > 300


def test_examples_are_written_from_those_templates():
    rng = Random("3/test")
    drawn = [" ".join(sentence.written()[0] for sentence in draw_review(rng, "test", 0.95)) for _ in range(5)]
    assert [example.text for example in planted_reviews(3, sizes=(0, 0, 5))["test"]] == drawn


def test_no_review_uses_one_core_twice():
    rng = Random(0)
    for _ in range(200):
        cores = [sentence.core for sentence in draw_review(rng, "validation", 0.95)]
        assert len(cores) == len(set(cores))
