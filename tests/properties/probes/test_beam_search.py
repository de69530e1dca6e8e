"""Beam search against the best of all orders, and against greedy erasure by hand."""

import pytest
import torch

from steadygaze.auditing.prepare_case import prepare
from steadygaze.core.maths.subsets import best_order
from steadygaze.perturbations.word_removal import units_of
from steadygaze.properties.probes.beam_search import beam_search, searched_orders
from steadygaze.properties.probes.best_orders import good_orders
from steadygaze.properties.probes.erasure import ERASER, SHARES, erase_words
from steadygaze.properties.probes.subset_predictions import size_coefficients
from steadygaze.results.audit_config import ProbeConfig
from studies.oracles.models import adapter
from studies.oracles.worlds import Shape, world

NONE = torch.zeros(7, 7)
"""No known order."""


def of_table(table):
    powers = 1 << torch.arange(table.shape[1].bit_length() - 1)
    return lambda texts, chosen: table[texts, (chosen * powers).sum(-1)]


def score_of(table, weights, coefficients):
    """The score of the order of these weights."""
    first = (1 << weights.argsort(descending=True)).cumsum(-1)
    return table.gather(1, torch.cat([torch.zeros_like(first[:, :1]), first], 1)) @ coefficients


def random_game(n, seed=0, texts=7):
    return torch.rand(texts, 1 << n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_a_wide_beam_finds_the_best_of_all_orders(n):
    table, coefficients = random_game(n), size_coefficients(n, SHARES)
    found, weights = beam_search(of_table(table), NONE[:, :n], coefficients, 1 << n)
    assert torch.allclose(found, best_order(table, coefficients)[0])
    assert torch.allclose(score_of(table, weights, coefficients), found)


def test_a_narrow_beam_finds_no_better_order_than_the_best_and_a_wider_one_no_worse_in_the_mean():
    table, coefficients = random_game(7, texts=50), size_coefficients(7, SHARES)
    best, _ = best_order(table, coefficients)
    found = [beam_search(of_table(table), torch.zeros(50, 7), coefficients, width)[0] for width in (1, 3, 9)]
    assert all((scores <= best + 1e-12).all() for scores in found)
    assert found[0].mean() < found[1].mean() < found[2].mean() <= best.mean() + 1e-12


def test_other_texts_change_nothing():
    table, coefficients = random_game(5), size_coefficients(5, (0.2, 0.4, 0.6, 0.8))
    table[0] = 1.0  # all sets are equal
    together, _ = beam_search(of_table(table), NONE[:, :5], coefficients, 4)
    alone = [beam_search(of_table(table[[row]]), NONE[:1, :5], coefficients, 4)[0].item() for row in range(7)]
    assert together.tolist() == pytest.approx(alone)


def test_greedy_erasure_by_hand():
    """Sizes 1 and 2 count half each.  Greedy takes word 0 (0.6), then word 1 (0.7); words 1 and 2 alone make 0.5, 1."""
    table = torch.tensor([[0, 0.6, 0.5, 0.7, 0.4, 0.65, 1.0, 0]], dtype=torch.float64)
    coefficients = torch.tensor([0, 0.5, 0.5, 0], dtype=torch.float64)
    greedy, wider = (beam_search(of_table(table), NONE[:1, :3], coefficients, width) for width in (1, 2))
    assert greedy[0].item() == pytest.approx((0.6 + 0.7) / 2)
    assert greedy[1].tolist() == [[3, 2, 0]]
    assert wider[0].item() == pytest.approx((0.5 + 1.0) / 2)
    assert wider[1].tolist() == [[0, 3, 2]]


def test_a_known_order_breaks_ties():
    """Only words 1 and 2 together change the prediction, and no single word does."""
    table = torch.tensor([[0.0, 0, 0, 0, 0, 0, 1.0, 1.0]], dtype=torch.float64)
    coefficients = torch.tensor([0, 0.5, 0.5, 0], dtype=torch.float64)
    assert beam_search(of_table(table), torch.tensor([[0.0, 2.0, 1.0]]), coefficients, 1)[0].item() == 0.5
    assert beam_search(of_table(table), torch.tensor([[9.0, 2.0, 1.0]]), coefficients, 1)[0].item() == 0


def test_equal_sets_count_once():
    """Words 0 and 1 in both orders are one set, so that a beam of two keeps another one."""
    values = {1: 1.0, 2: 0.9, 4: 0.0, 3: 1.0, 5: 0.2, 6: 0.1, 7: 0.0}
    table = torch.tensor([[0.0, *(values[subset] for subset in range(1, 8))]], dtype=torch.float64)
    asked = []

    def value(texts, chosen):
        asked.append(len(texts))
        return of_table(table)(texts, chosen)

    beam_search(value, NONE[:1, :3], torch.tensor([0, 0, 0.5, 0.5], dtype=torch.float64), 2)
    assert asked == [3, 3, 1]


def test_the_orders_beat_good_orders():
    here = world("short", 2, 12, Shape(5, 14, density=0.3, negated=0.5))
    case = prepare(adapter(here, "parity"), here.examples, {}, ProbeConfig()).case
    gains = torch.zeros(2, dtype=torch.float64)
    for rows, batch in case.batches():
        full = case.probs[torch.from_numpy(rows)]
        units, good = units_of(batch, question=False), good_orders(case.model, batch, full)
        searched = searched_orders(case.model, batch, full, units.total(good[1]), ERASER)
        (lost, _), (_, kept) = (scores(case, batch, full, units.on_first(order)) for order in searched.unbind(1))
        good = [scores(case, batch, full, order) for order in good]
        gains[0] += (lost - torch.maximum(good[0][0], good[1][0])).sum()
        gains[1] += (kept - torch.maximum(good[0][1], good[1][1])).sum()
    assert (gains > 0.01).all()


def scores(case, batch, full, order):
    """The mean drop and the mean probability kept."""
    index = full.argmax(-1).view(-1, 1, 1).expand(-1, len(SHARES), 1)
    without, alone = (probs.gather(-1, index).mean((1, 2)) for probs in erase_words(case.model, batch, full, order))
    return full.amax(-1) - without, alone


def test_texts_beyond_the_limits_are_left_out():
    here = world("long", 2, 3)
    case = prepare(adapter(here, "linear"), here.examples, {}, ProbeConfig()).case
    for rows, batch in case.batches():
        known = torch.zeros_like(batch.ids, dtype=torch.float64)
        assert searched_orders(case.model, batch, case.probs[torch.from_numpy(rows)], known, ERASER).isnan().all()
