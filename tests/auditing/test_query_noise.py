"""Audits and explanations of noisy black boxes: the noise is reported, and the intervals contain it."""

import warnings
from collections import Counter

import numpy as np
import pytest

import steadygaze as sg
from estimator.tiny import TEXTS, fitted
from steadygaze.auditing.noise_intervals import with_query_noise
from steadygaze.core.errors import HealthWarning
from steadygaze.results.row import Row

WEIGHTS = {"good": 2, "fine": 2, "bad": -2, "awful": -2}
NAMES = ["neg", "pos"]
TABLE = {"film": ["movie"], "story": ["tale"], "good": ["fine"], "bad": ["awful"], "old": ["aged"], "long": ["lengthy"]}


class Noisy:
    """A bag of words, with answers in [0.2, 0.8] and uniform noise; counts how often each text is asked."""

    def __init__(self, size, seed=0):
        self.draw, self.size, self.asked = np.random.default_rng(seed), size, Counter()

    def __call__(self, texts):
        self.asked.update(texts)
        scores = np.array([sum(WEIGHTS.get(word, 0) for word in text.split()) for text in texts])
        share = 0.2 + 0.6 / (1 + np.exp(-scores)) + self.draw.uniform(-self.size, self.size, len(texts))
        share = np.clip(share, 0, 1)
        return np.stack([1 - share, share], 1)


def reviews(count):
    draw, words = (
        np.random.default_rng(1),
        ["the", "a", "film", "story", "plot", "actor", "scene", "music", "was", "is", "very", "long", "old"],
    )
    texts = [
        " ".join([*draw.choice(words, 6), draw.choice(list(WEIGHTS)), *draw.choice(words, 2)]) for _ in range(count)
    ]
    return texts, ["pos" if {"good", "fine"} & set(text.split()) else "neg" for text in texts]


def audited(model, count=24, **options):
    texts, labels = reviews(count)
    return sg.audit(model, texts, labels, classes=NAMES, explainers=["leave-one-out"], **options)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.05, 0.3])
def test_a_noisy_function_is_called_so_with_the_right_size(size):
    """Without clipping, U(−a, a) has the deviation a/√3; of 24 answers, it is estimated within 50 %."""
    report = audited(Noisy(size))
    (problem,) = [problem for problem in report.health if problem.kind == "noisy-answers"]
    spread = float(report.facts["query noise"].partition("deviation of an answer ")[2].partition(")")[0])
    assert spread == pytest.approx(size / 3**0.5, rel=0.5)
    assert problem.value == pytest.approx(2 * size / 3, rel=0.5)
    assert "8 texts asked 3 times" in report.facts["query noise"]
    assert problem.sentence in report.to_dict()["health"][0]["message"]


def test_a_function_without_noise_is_asked_eight_times_more_and_has_no_rows_of_noise():
    model = Noisy(0)
    report = audited(model)
    texts = dict.fromkeys(reviews(24)[0])
    assert [model.asked[text] for text in texts] == [2] * 8 + [1] * (len(texts) - 8)
    assert report.facts["query noise"] == "8 texts asked twice: the same answers"
    assert not [row for row in report.rows if row.key.probe == "repeated"]
    assert "noisy-answers" not in [problem.kind for problem in report.health]


def test_a_model_of_our_own_is_not_asked_again(monkeypatch):
    report = sg.audit(fitted(), TEXTS)
    assert "query noise" not in report.facts


@pytest.mark.slow
def test_noise_does_not_count_as_instability_under_rewording():
    """Synonyms have the same weights: noise alone moves the explanation, and the intervals reach no change."""
    report = audited(Noisy(0.3), 60, synonyms=TABLE)
    for name in ("weight-correlation/reworded", "weight-correlation/reworded-top"):
        row, repeated = report.find(name), report.find("weight-correlation/repeated")
        assert row.value < 0.5 > repeated.value
        assert row.interval[1] > 0.9
        assert row.interval[0] < row.value
        assert "because the answers of the model are noisy" in row.note
    assert report.find("label-flip/reworded").interval[0] == 0
    assert {verdict.title: verdict.answer for verdict in report.verdicts}["Stability under rewording"] != "no"
    assert report.find("comprehensiveness").interval[1] - report.find("comprehensiveness").interval[0] > 0.05


@pytest.mark.slow
def test_words_chosen_by_noise_are_not_faithful():
    """A model that reads nothing: the answers that chose a word, of two, would drop by 0.1 more than at random."""
    draw = np.random.default_rng(0)

    def blind(texts):
        share = draw.uniform(0.2, 0.8, len(texts))
        return np.stack([1 - share, share], 1)

    texts = [f"{first}{second} {first}" for first in "abcdefghijklmnopqrst" for second in "abcdefghijklmnopqrst"]
    report = sg.audit(blind, texts, classes=NAMES, explainers=["leave-one-out"], limit=0)
    rows = [row for row in report.rows if row.measure == "comprehensiveness/50%"]
    drop = {row.settings["explainer"]: row.value for row in rows}
    assert drop["leave-one-out"] == pytest.approx(drop["random"], abs=0.05)
    assert drop["random"] > 0.1  # the predicted class is chosen by noise, too


def row(measure, value, interval, explainer="lime"):
    return Row(measure, value, 60, interval, {"explainer": explainer})


def test_intervals_reach_as_far_as_noise_may():
    rows = [
        row("weight-correlation/reworded", 0.6, (0.5, 0.7)),
        row("weight-correlation/repeated", 0.85, (0.8, 0.9)),
        row("jensen-shannon/3-synonyms", 0.3, (0.2, 0.4)),
        row("jensen-shannon/repeated", 0.1, (0.05, 0.15)),
        row("top-k-overlap/3-synonyms", 0.8, (0.7, 0.9)),
        row("top-k-overlap/repeated", 0.5, (0.4, 0.6)),
        row("accuracy", 0.9, (0.8, 1.0)),
        row("weight-correlation/seeds", 0.6, (0.5, 0.7)),
        row("weight-correlation/reworded", 0.6, (0.5, 0.7), "leave-one-out"),
    ]
    intervals = [item.interval for item in with_query_noise(rows)]
    assert intervals[0] == pytest.approx((0.5, 0.9))  # 1 − 0.8 more
    assert intervals[2] == pytest.approx((0.05, 0.4))  # 0.15 less
    assert intervals[4] == (0.7, 1)
    unchanged = [1, 3, 5, 6, 7, 8]
    assert [intervals[i] for i in unchanged] == [rows[i].interval for i in unchanged]


def test_explanations_and_certificates_of_a_noisy_function_say_so():
    texts = reviews(3)[0]
    model = sg.load(Noisy(0.3), classes=NAMES)
    with pytest.warns(HealthWarning, match="answers the same text differently"):
        explanations = model.explain(texts, explainer="leave-one-out")
    assert {problem.kind for item in explanations for problem in item.health} == {"noisy-answers"}
    certificates = sg.certify(Noisy(0.3), texts, substitutions=TABLE, classes=NAMES, samples=10)
    assert [problem.kind for problem in certificates.health] == ["noisy-answers"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sg.explain(Noisy(0), texts, "leave-one-out", classes=NAMES)[0].health.ok


@pytest.mark.parametrize("kind", ["regression", "multi-label"])
def test_the_noise_of_other_outputs_is_measured_too(kind):
    draw = np.random.default_rng(0)

    def numbers(texts):
        return [len(text) + draw.uniform(-3, 3) for text in texts]

    model = sg.load(numbers) if kind == "regression" else multi_label(draw)
    target = None if kind == "regression" else "toxic"
    with pytest.warns(HealthWarning, match="answers the same text differently"):
        model.explain(reviews(8)[0], explainer="leave-one-out", target=target)


def multi_label(draw):
    from steadygaze.adapters.black_box import black_box

    return black_box(
        lambda texts: np.clip(0.5 + draw.uniform(-0.3, 0.3, (len(texts), 2)), 0, 1),
        ["toxic", "rude"],
        "f",
        "multi-label",
    )
