"""The planted corpora: the truth decides the label and nothing else does, and no bag of words finds it."""

import hashlib
import re
from collections import Counter

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from data.planted.planted_texts import WORD, aspect_of, aspects_in, sentences, some_examples, words
from steadygaze.core.errors import UserError
from steadygaze.data.planted.grammar import NEGATION
from steadygaze.data.planted.lexicon import ASPECT_OF, ASPECTS, OPINIONS, OWN_ADJECTIVES, POLARITY
from steadygaze.data.planted.reviews import planted_pairs, planted_reviews, question_aspect, read_planted_review

GOLDEN_REVIEWS = "ef449bc62f620c6937b68d9fb3d9ee995cd8ac5a5cb360974c317ff087a85e61"
GOLDEN_PAIRS = "43485f29ffad8d24025617d4e53b98c387417063ca114d29e1bc1cbc796482ec"


@pytest.fixture(scope="module")
def reviews():
    return planted_reviews()


@pytest.fixture(scope="module")
def few():
    return planted_reviews(sizes=(600, 60, 400))


@pytest.fixture(scope="module")
def by_aspect():
    return {aspect: planted_reviews(aspect=aspect, sizes=(1_500, 0, 500)) for aspect in ASPECTS}


@pytest.fixture(scope="module")
def pairs():
    return planted_pairs(sizes=(4_000, 500, 500))  # the beginnings of the default splits, to keep it quick


# --- size and variety


@pytest.mark.slow
@pytest.mark.parametrize(
    ("corpus", "size"), [pytest.param("reviews", 13_000, marks=pytest.mark.slow), ("pairs", 5_000)]
)
def test_texts_are_all_distinct_and_use_many_words(corpus, size, request):
    texts = [example.text for examples in request.getfixturevalue(corpus).values() for example in examples]
    assert len(texts) == len(set(texts)) == size
    assert len(set(WORD.findall(" ".join(texts).lower()))) >= 1_200


@pytest.mark.slow
def test_there_are_three_splits_of_the_documented_sizes(reviews):
    sizes = {split: len(examples) for split, examples in reviews.items()}
    assert sizes == {"train": 10_000, "validation": 1_000, "test": 2_000}


@pytest.mark.slow
def test_sentiments_are_balanced_and_aspects_independent(by_aspect):
    labels = [[example.label == "positive" for example in by_aspect[aspect]["train"]] for aspect in ASPECTS]
    positive = np.array(labels, dtype=float)
    four_standard_errors = 4 / np.sqrt(1_500)
    assert np.abs(positive.mean(axis=1) - 0.5).max() < four_standard_errors / 2
    assert np.abs(np.corrcoef(positive) - np.eye(3)).max() < four_standard_errors


@pytest.mark.slow
def test_opinions_are_denied_as_often_as_stated(reviews):
    negated = np.mean([len(example.rationales) > 2 for example in reviews["train"]])
    assert negated == pytest.approx(NEGATION, abs=0.015)  # four standard errors of 10,000 draws


def test_questions_are_about_every_aspect(pairs):
    aspects = Counter(question_aspect(example.question) for example in pairs["train"])
    assert [aspects[aspect] / 4_000 for aspect in ASPECTS] == pytest.approx([0.30, 0.55, 0.15], abs=0.035)
    assert len({example.question for example in pairs["train"]}) > 400


def test_articles_agree_with_the_next_word(few):
    for example in few["test"]:
        assert not re.search(r"\b[Aa] [aeiou]|\b[Aa]n (?!hour)[^aeiouI]", example.text)


# --- difficulty


def bag_of_words(texts, labels, held_out_texts, held_out_labels):
    bag = TfidfVectorizer(ngram_range=(1, 2))
    train, test = bag.fit_transform(texts), bag.transform(held_out_texts)
    return [
        LogisticRegression(max_iter=1000).fit(train, column).score(test, held_out_column)
        for column, held_out_column in zip(labels, held_out_labels, strict=True)
    ]


@pytest.mark.slow
def test_a_bag_of_words_does_not_find_the_label(by_aspect):
    """On 1,500 texts to keep it quick; `studies/planted_difficulty` has the full sizes (0.63 to 0.66)."""
    texts = {split: [example.text for example in by_aspect["aroma"][split]] for split in ("train", "test")}
    labels = {split: [[example.label for example in by_aspect[aspect][split]] for aspect in ASPECTS] for split in texts}
    assert max(bag_of_words(texts["train"], labels["train"], texts["test"], labels["test"])) <= 0.85


def test_a_bag_of_words_does_not_find_the_answer(pairs):
    texts = {
        split: [f"{example.question} {example.text}" for example in pairs[split][:1_500]] for split in ("train", "test")
    }
    labels = {split: [[example.label for example in pairs[split][:1_500]]] for split in texts}
    assert max(bag_of_words(texts["train"], labels["train"], texts["test"], labels["test"])) <= 0.85


def test_the_oracle_reads_every_label(pairs):
    for example in some_examples(200):
        assert read_planted_review(example.text, aspect_of(example)) == example.label
    for example in pairs["test"]:
        assert read_planted_review(example.text, question_aspect(example.question)) == example.label


# --- rationales


def test_the_rationale_is_whole_words_of_the_one_sentence_about_the_aspect():
    for example in some_examples():
        starts = {result.span() for result in WORD.finditer(example.text)}
        assert set(example.rationales) <= starts
        about = [span for span in example.sentences if aspect_of(example) in aspects_in(example.text[slice(*span)])]
        assert len(about) == 1
        assert all(about[0][0] <= start < end <= about[0][1] for start, end in example.rationales)


def test_the_rationale_is_sufficient_for_the_oracle_and_every_word_is_necessary():
    for example in some_examples():
        aspect, reason = aspect_of(example), words(example)
        assert read_planted_review(" ".join(reason), aspect) == example.label
        for index in range(len(reason)):
            fewer = " ".join(reason[:index] + reason[index + 1 :])
            try:
                assert read_planted_review(fewer, aspect) != example.label
            except UserError:
                assert reason[index].lower() in {**ASPECT_OF, **POLARITY}


def test_sentences_cover_the_text_and_each_aspect_has_one(few):
    for example in few["test"]:
        assert " ".join(sentences(example)) == example.text
        assert 5 <= len(example.sentences) <= 7
        assert all(re.fullmatch(r"[^a-z].*[^ .]\.", sentence) for sentence in sentences(example))
        assert sorted(aspects_in(example.text)) == sorted(ASPECTS)


# --- seeds and settings


def digest(splits, n=50):
    lines = [
        f"{example.question}|{example.text}|{example.label}" for examples in splits.values() for example in examples[:n]
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_the_same_seed_makes_the_same_texts_for_ever():
    assert digest(planted_reviews(sizes=(50, 50, 50))) == GOLDEN_REVIEWS
    assert digest(planted_pairs(sizes=(50, 50, 50))) == GOLDEN_PAIRS


def test_another_seed_makes_other_texts(few):
    other = planted_reviews(1, sizes=(200, 0, 0))["train"]
    assert not {example.text for example in other} & {example.text for example in few["train"]}


def test_a_smaller_split_is_the_beginning_of_a_larger_one(few):
    small = planted_reviews(sizes=(3, 2, 7))
    assert {split: few[split][: len(examples)] for split, examples in small.items()} == small


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.95, 1.0])
def test_the_appearance_comes_first_as_often_as_requested(share):
    examples = planted_reviews(aspect="appearance", appearance_first=share, sizes=(0, 0, 2_000))["test"]
    first = np.mean([example.rationales[0][0] < example.sentences[0][1] for example in examples])
    assert first == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 2_000))


@pytest.mark.slow
def test_noise_turns_labels_round_and_leaves_the_texts_as_they_are():
    clean, noisy = (planted_reviews(aspect="palate", noise=noise, sizes=(0, 0, 800))["test"] for noise in (0, 0.1))
    assert [(example.text, example.rationales) for example in clean] == [
        (example.text, example.rationales) for example in noisy
    ]
    wrong = np.mean([example.label != other.label for example, other in zip(clean, noisy, strict=True)])
    assert wrong == pytest.approx(0.1, abs=4 * np.sqrt(0.1 * 0.9 / 800))
    assert np.mean([read_planted_review(example.text, "palate") != example.label for example in noisy]) == wrong
    aroma = planted_reviews(aspect="aroma", noise=0.1, sizes=(0, 0, 800))["test"]
    other = np.array([read_planted_review(example.text, "aroma") != example.label for example in aroma])
    both = np.mean(other & [example.label != two.label for example, two in zip(clean, noisy, strict=True)])
    assert both < 0.03  # each aspect has coins of its own: 0.01 and four standard errors are 0.024


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("agreement", [0.8, 1.0])
def test_aspects_agree_as_often_as_requested(agreement):
    """Both as the beer fares, or neither: 0.8² + 0.2² = 0.68."""
    fare = [
        [example.label for example in planted_reviews(aspect=aspect, agreement=agreement, sizes=(0, 0, 500))["test"]]
        for aspect in ASPECTS
    ]
    expected = agreement**2 + (1 - agreement) ** 2
    error = 4 * np.sqrt(expected * (1 - expected) / 500)
    for first, other in ((0, 1), (0, 2), (1, 2)):
        assert np.mean(np.array(fare[first]) == np.array(fare[other])) == pytest.approx(expected, abs=error)
    assert np.mean(np.array(fare[0]) == "positive") == pytest.approx(0.5, abs=4 * np.sqrt(0.25 / 500))


@pytest.mark.parametrize(("negation", "words_of_reason"), [(0.0, {2}), (1.0, {3, 4, 5})])
def test_opinions_are_negated_as_often_as_requested(negation, words_of_reason):
    examples = planted_reviews(negation=negation, sizes=(0, 0, 200))["test"]
    assert {len(example.rationales) for example in examples} <= words_of_reason
    assert all(read_planted_review(example.text, "aroma") == example.label for example in examples)


@pytest.mark.slow
def test_words_of_one_aspect_alone_are_as_likely_as_requested():
    """A frame with an adjective has 31 shared ones on either side, and 8 of its own, each `own` times."""
    mine = {word for words in OWN_ADJECTIVES["palate"].values() for word in words}
    shared = {word for words in OPINIONS["adjective"].values() for word in words}
    for own in (0, 2, 20):
        result = Counter()
        for example in planted_reviews(aspect="palate", own=own, sizes=(800, 0, 0))["train"]:
            for word in map(str.lower, words(example)):
                result.update(["mine"] * (word in mine) + ["shared"] * (word in shared))
        expected = 8 * own / (8 * own + 31)
        n = result["mine"] + result["shared"]
        assert result["mine"] / n == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / n))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: planted_reviews(aspect="aromas"), "unknown aspect 'aromas': did you mean 'aroma'"),
        (lambda: planted_reviews(appearance_first=1.5), "appearance_first must be from 0 to 1; found 1.5"),
        (lambda: planted_reviews(noise=-0.1), "noise must be from 0 to 1; found -0.1"),
        (lambda: planted_reviews(agreement=2), "agreement must be from 0 to 1; found 2"),
        (lambda: planted_reviews(negation=1.1), "negation must be from 0 to 1; found 1.1"),
        (lambda: planted_reviews(own=-1), "own must be at least 0; found -1"),
        (lambda: planted_reviews(sizes=(10, 10)), r"sizes must be three numbers.*found \(10, 10\)"),
        (lambda: planted_pairs(sizes=(10, -1, 10)), r"sizes must be three numbers.*found \(10, -1, 10\)"),
    ],
)
def test_wrong_input_is_named_in_one_sentence(call, sentence):
    with pytest.raises(UserError, match=sentence):
        call()
