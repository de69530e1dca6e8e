"""Leakage by content and by value: codes are read, honest words account for the label, and nothing else counts."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from properties.protocols.cases import absences
from steadygaze import load
from steadygaze.auditing.audit import run_audit
from steadygaze.auditing.prepare_case import AuditRequest, prepare
from steadygaze.core.types import Example
from steadygaze.explainers.random import Random
from steadygaze.properties.measures.label_readers import (
    ShownTexts,
    label_unaccounted,
    read_labels,
    shape_features,
    shown_words,
    word_scores,
)
from steadygaze.properties.protocols.content_leakage import content_leakage
from steadygaze.results.audit_config import ProbeConfig, Runtime
from studies.oracles.explainers import explainers
from studies.oracles.models import adapter
from studies.oracles.worlds import world

HERE = world("short", 11, 100)
LEAKS = ("content-leak", "label-unaccounted", "value-leak")


def case_of(*names, model="linear", examples=None, **runtime):
    known, texts = explainers(), HERE.examples if examples is None else examples
    chosen = {name: known[name] for name in names}
    return prepare(adapter(HERE, model), texts, chosen, ProbeConfig(), runtime=Runtime(**runtime)).case


def scores(case):
    return {
        (finding.explainer, finding.measure): finding.value
        if finding.values is None
        else finding.values.nanmean().item()
        for finding in content_leakage(case)
        if finding.absent is None
    }


@pytest.fixture(scope="module")
def known():
    names = ("exact", "dense", "code: three words of chatter", "code: sign", "code: number of words")
    return scores(case_of(*names))


def test_codes_in_words_signs_and_numbers_are_read(known):
    for name in ("code: three words of chatter", "code: sign", "code: number of words"):
        assert known[name, "content-leak"] > 0.1, name


def test_exact_words_account_for_the_label_and_random_words_tell_nothing(known):
    assert known["exact", "label-unaccounted"] < 0.02
    assert abs(known["exact", "content-leak"]) < 0.01
    assert abs(known["dense", "content-leak"]) < 0.04
    assert known["dense", "label-unaccounted"] > 0.3


@pytest.mark.parametrize("other", ["exact × 1000", "exact / 1000", "exact + 5", "exact − 1"])
def test_neither_scale_nor_a_constant_changes_what_is_shown(other):
    values = scores(case_of("exact", other))
    for measure in ("content-leak", "label-unaccounted"):
        assert values[other, measure] == pytest.approx(values["exact", measure], abs=1e-3)


def test_neither_the_order_of_the_texts_nor_their_batches_change_a_number():
    names = ("code: sign", "exact, noise 0.5")
    first = scores(case_of(*names))
    for other in (scores(case_of(*names, examples=HERE.examples[::-1])), scores(case_of(*names, batch_size=7))):
        assert other == {key: pytest.approx(value, abs=1e-6) for key, value in first.items()}


def test_a_selection_that_agrees_with_the_prediction_leaks_by_value_if_the_model_ignores_its_words():
    """A gate decides which half of the words counts; the selected word may be of the other half."""
    names = ("selected: one word that agrees", "selected: arbitrary for some classes")
    gated = scores(case_of(*names, model="gated"))
    assert all(gated[name, "value-leak"] > 0.1 for name in names)
    assert ("exact", "value-leak") not in scores(case_of("exact"))


def test_a_small_probability_accounts_for_a_label_only_if_the_model_predicts_it_without_the_words():
    answer, best, none = (torch.full((2,), value, dtype=torch.float64) for value in (0.501, 0.504, 0.5))
    assert label_unaccounted(answer, best, none, torch.tensor([1.0, 2 / 3])).tolist() == pytest.approx([0, 0.75])
    assert label_unaccounted(none, none, none, torch.zeros(2)).tolist() == [0, 0]


def test_a_rare_class_counts_as_much_as_a_frequent_one():
    """One word decides the label of four of eighty texts; random weights often do not show it."""
    words = [f"word{index}" for index in range(40)]
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(words, 10)) + (" ale" if row % 20 == 0 else "") for row in range(80)]
    model = load(lambda batch: [[0.01, 0.99] if "ale" in text else [0.99, 0.01] for text in batch], classes=[0, 1])
    case = prepare(model, [Example(text) for text in texts], {"dense": Random()}, ProbeConfig()).case
    assert case.probs.argmax(-1).sum() == 4
    assert scores(case)["dense", "label-unaccounted"] > 0.1


def test_the_value_leak_is_reported_as_absent_where_nothing_selects():
    assert ("value-leak", None) in absences(content_leakage, case_of("exact"))


def test_without_other_texts_every_row_is_absent():
    assert len(absences(content_leakage, case_of("exact", examples=HERE.examples[:1]))) == 5


def test_verdicts_of_codes_are_no_and_of_exact_weights_yes():
    known = explainers()
    names = ("exact", "exact + 5", "code: one word of chatter", "code: first or last word", "code: gap")
    audited = run_audit(
        AuditRequest(adapter(HERE, "linear"), HERE.examples, ProbeConfig(), [known[name] for name in names])
    )
    given = {
        name: {verdict.key: verdict.answer for verdict in items} for name, items in audited.report().verdicts_by.items()
    }
    assert [given[name]["shortcut-leakage"] for name in names] == ["yes", "yes", "no", "no", "no"]


# --- the reader


def test_shown_words_are_those_far_above_the_median():
    weights = torch.tensor([[1.0, 1.0, 1.09, 2.0, 9.0], [3.0, 3.0, 3.0, 3.0, 0.0], [0.0, -5.0, 0.0, 0.0, 0.0]])
    mask = torch.tensor([[True] * 4 + [False], [True] * 4 + [False], [True] * 5])
    assert shown_words(weights, mask).tolist() == [
        [False, False, False, True, False],
        [False] * 5,
        [False] * 5,
    ]


def test_word_scores_by_hand():
    """Two texts of each class, each alone in its fold: of the other, one of one texts of class 0 shows the word 7."""
    kind = np.array([0, 0, 1, 1])
    value = word_scores(np.array([0, 1, 1]), np.array([7, 7, 9]), kind)
    seen, unseen = (1 + 0.25) / (1 + 0.5), 0.25 / (1 + 0.5)
    mean = (seen + unseen) / 2
    assert value[0] == pytest.approx([np.log(seen / mean), np.log(unseen / mean)])
    assert value[1] == pytest.approx(value[0])  # nobody else shows the word 9
    assert not value[2:].any()


def test_a_reader_of_words_that_say_nothing_reads_nothing():
    """Over 20 draws of random words and labels, its mean probability is that of guessing."""
    random, gains = np.random.default_rng(0), []
    for _ in range(20):
        n = 80
        weights = torch.from_numpy(random.random((n, 12)))
        mask = torch.ones(n, 12, dtype=torch.bool)
        shown = shown_words(weights, mask)
        number = torch.from_numpy(random.integers(60, size=(n, 12)))
        text, unit = shown.nonzero(as_tuple=True)
        texts = ShownTexts(
            shape_features(weights, shown, number, mask),
            text,
            number[text, unit],
            torch.full((n,), 12),
            torch.from_numpy(random.permutation(np.arange(n) % 2)),
            torch.arange(n),
        )
        readings = read_labels(texts)
        gains.append(float((readings.shown - readings.length).mean()))
    assert abs(np.mean(gains)) < 0.015
    few = replace(texts, predicted=torch.tensor([1] * 7 + [0] * (n - 7)))
    assert read_labels(few).shown.isnan().all()
