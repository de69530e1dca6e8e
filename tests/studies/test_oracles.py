"""The oracles are what they claim: exact weights are Shapley values, and other words change nothing."""

from itertools import permutations

import numpy as np
import pytest
import torch

from steadygaze.auditing.prepare_case import prepare
from steadygaze.properties import PROPERTIES
from steadygaze.results.audit_config import ProbeConfig
from studies.oracles.curves import CURVES, ends, shares
from studies.oracles.explainers import EXPLAINERS, explainers
from studies.oracles.models import MODELS, adapter
from studies.oracles.run import SPLIT, TEST, split_hash
from studies.oracles.shapley import ExactWeights
from studies.oracles.table import expected, records_of
from studies.oracles.worlds import Shape, world

DEPENDS_ON = {item.name: item.rule.depends_on for item in PROPERTIES.values() if item.rule}


def case_of(model: str, kind: str = "short", shape: Shape | None = None, names: tuple[str, ...] = ("exact",)):
    here = world(kind, 3, 30, shape)
    known = explainers()
    return prepare(adapter(here, model), here.examples, {name: known[name] for name in names}, ProbeConfig()).case


@pytest.mark.parametrize("model", sorted(MODELS))
def test_exact_weights_add_up_to_the_probability_that_the_relevant_words_make(model):
    case = case_of(model)
    for _, batch in case.batches():
        predicted = case.model.logits(batch).argmax(-1)
        weights = ExactWeights(case.model)(batch, predicted)
        without = batch.mask & ~case.model.relevant[batch.ids]
        after, before = (case.model.read(batch.ids, kept).softmax(-1) for kept in (batch.mask, without))
        difference = (after - before).gather(-1, predicted.unsqueeze(-1)).squeeze(-1)
        assert torch.allclose(weights.sum(-1), difference, atol=1e-12)


def test_exact_weights_are_the_mean_over_all_orders():
    case = case_of("negation", shape=Shape(6, 9, density=0.3, negated=1.0))
    batch = next(batch for _, batch in case.batches())
    predicted = case.model.logits(batch).argmax(-1)
    weights = ExactWeights(case.model)(batch, predicted)
    for row in range(5):
        players = (case.model.relevant[batch.ids[row]] & batch.mask[row]).nonzero().squeeze(-1).tolist()
        total, orders = np.zeros(len(players)), list(permutations(range(len(players))))
        for order in orders:
            kept = batch.mask[[row]].clone()
            kept[0, players] = False
            value = [case.model.read(batch.ids[[row]], kept).softmax(-1)[0, predicted[row]].item()]
            for player in order:
                kept[0, players[player]] = True
                value.append(case.model.read(batch.ids[[row]], kept).softmax(-1)[0, predicted[row]].item())
            total[list(order)] += np.diff(value)
        assert weights[row, players].numpy() == pytest.approx(total / len(orders), abs=1e-12)


COUNT_WORDS = {"mean", "first half", "negation"}
"""Rules that count the words of a text, or those after a negation."""


@pytest.mark.parametrize("model", sorted(MODELS.keys() - COUNT_WORDS))
def test_words_that_no_rule_reads_change_nothing(model):
    case = case_of(model)
    for _, batch in case.batches():
        kept = batch.mask & case.model.relevant[batch.ids]
        assert torch.allclose(case.model.read(batch.ids, kept), case.model.read(batch.ids, batch.mask))


@pytest.mark.parametrize("kind", ["short", "long"])
def test_a_world_has_labeled_texts_and_substitutes_that_mean_the_same(kind):
    here = world(kind, 0, 40)
    number = {word: i for i, word in enumerate(here.words)}
    assert {example.label for example in here.examples} == {f"class{i}" for i in range(here.classes)}
    for word, others in here.synonyms.items():
        assert all(here.polarity[number[other]] == here.polarity[number[word]] for other in others)
    text = here.examples[0].text
    assert all(here.polarity[number[text[start:end]]] >= 0 for start, end in here.examples[0].rationales)


def test_explanations_are_finite_and_depend_on_the_text_alone():
    names = tuple(EXPLAINERS)
    case = case_of("linear", names=names)
    rows = np.arange(10)
    for name in names:
        (_, alone), *_ = case.batches(rows[:1])
        weights = case.saliency(name)
        assert weights.isfinite().all(), name
        single = case.explainers[name].explain(case.model, alone).weights[alone.mask]
        whole = weights[: len(case.data.text.ids)][torch.from_numpy(case.data.text.words)][: len(single)]
        assert torch.allclose(single, whole), name


def test_the_worlds_are_those_that_were_committed_before_the_test():
    assert split_hash() == SPLIT


def test_each_answer_is_expected_somewhere():
    given = {
        (name, expected(name, explainer, model))
        for name in ("faithfulness", "stability", "shortcut-leakage", "seed-consistency", "plausibility")
        for explainer in EXPLAINERS
        for model in MODELS
    }
    assert {truth for _, truth in given} == {True, False, None}
    assert len(given) == 15


@pytest.mark.parametrize("name", CURVES)
def test_the_recorded_values_give_the_recorded_answers(name):
    """A record has no rows that are not about an explainer; in leakage they widen the intervals of some cases."""
    curve = CURVES[name]
    wrong, (sign, depends_on) = [], (1 if curve.threshold.good > curve.threshold.bad else -1, DEPENDS_ON[curve.verdict])
    cases = [(record["numbers"], record["answers"]) for record in records_of(TEST)[::6]]
    recorded = [(ends(curve, numbers[name]), answers[name]) for numbers, answers in cases for name in numbers]
    for where, answers in recorded:
        if where is None or (depends_on and answers["faithfulness"] != "yes"):
            continue
        expected_answer = where.answer(sign * curve.threshold.good, sign * curve.threshold.bad)
        wrong.append(expected_answer != answers[curve.verdict])
    assert len(wrong) > 50
    assert np.mean(wrong) <= (0.0 if curve.verdict != "shortcut-leakage" else 0.04)


def test_a_curve_by_hand():
    """Two sound cases and a flawed one: weight correlations of 0.8 ± 0.1, 0.6 ± 0.1 and 0.3 ± 0.1, not widened."""
    curve, values = CURVES["seed consistency"], (0.8, 0.6, 0.3)
    rows = [{"weight-correlation/seeds": [value, value - 0.1, value + 0.1, 100]} for value in values]
    cases = [(truth, "yes", ends(curve, row)) for truth, row in zip((True, True, False), rows, strict=True)]
    assert shares(curve, cases, 0.1, True) == {"false yes": (1, 1), "false no": (0, 2), "undecided": (0, 3)}
    assert shares(curve, cases, 0.65, True) == {"false yes": (0, 1), "false no": (0, 2), "undecided": (1, 3)}
    assert shares(curve, cases, 0.75, True) == {"false yes": (0, 1), "false no": (1, 2), "undecided": (1, 3)}
    doubtful = [(truth, "undecided", where) for truth, _, where in cases]
    assert shares(curve, doubtful, 0.1, True)["undecided"] == (3, 3), "no yes without faithfulness"
