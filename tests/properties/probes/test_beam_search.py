"""Beam search against the best of all orders, and against greedy erasure by hand."""

import pytest
import torch

from steadygaze.auditing.prepare_case import prepare
from steadygaze.core.maths.subsets import best_order
from steadygaze.properties.probes.beam_search import beam_search, searched_scores
from steadygaze.properties.probes.best_orders import good_orders
from steadygaze.properties.probes.erasure import ERASER, SHARES, erase_words
from steadygaze.properties.probes.subset_predictions import size_coefficients, subset_predictions
from steadygaze.results.audit_config import ProbeConfig
from studies.oracles.models import adapter
from studies.oracles.worlds import Shape, world


def of_table(table):
    powers = 1 << torch.arange(table.shape[1].bit_length() - 1)
    return lambda texts, chosen: table[texts, (chosen * powers).sum(-1)]


def random_game(n, seed=0, texts=7):
    return torch.rand(texts, 1 << n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_a_wide_beam_finds_the_best_of_all_orders(n):
    table, coefficients = random_game(n), size_coefficients(n, SHARES)
    assert torch.allclose(beam_search(of_table(table), 7, coefficients, 1 << n), best_order(table, coefficients))


def test_a_narrow_beam_finds_no_better_order_than_the_best_and_a_wider_one_no_worse_in_the_mean():
    table, coefficients = random_game(7, texts=50), size_coefficients(7, SHARES)
    best = best_order(table, coefficients)
    found = [beam_search(of_table(table), 50, coefficients, width) for width in (1, 3, 9)]
    assert all((scores <= best + 1e-12).all() for scores in found)
    assert found[0].mean() < found[1].mean() < found[2].mean() <= best.mean() + 1e-12


def test_other_texts_change_nothing():
    table, coefficients = random_game(5), size_coefficients(5, (0.2, 0.4, 0.6, 0.8))
    table[0] = 1.0  # all sets are equal
    together = beam_search(of_table(table), 7, coefficients, 4)
    alone = [beam_search(of_table(table[[row]]), 1, coefficients, 4).item() for row in range(7)]
    assert together.tolist() == pytest.approx(alone)


def test_greedy_erasure_by_hand():
    """Sizes 1 and 2 count half each.  Greedy takes word 0 (0.6), then word 1 (0.7); words 1 and 2 alone make 0.5, 1."""
    table = torch.tensor([[0, 0.6, 0.5, 0.7, 0.4, 0.65, 1.0, 0]], dtype=torch.float64)
    coefficients = torch.tensor([0, 0.5, 0.5, 0], dtype=torch.float64)
    assert beam_search(of_table(table), 1, coefficients, 1).item() == pytest.approx((0.6 + 0.7) / 2)
    assert beam_search(of_table(table), 1, coefficients, 2).item() == pytest.approx((0.5 + 1.0) / 2)


def test_equal_sets_count_once():
    """Words 0 and 1 in both orders are one set, so that a beam of two keeps another one."""
    values = {1: 1.0, 2: 0.9, 4: 0.0, 3: 1.0, 5: 0.2, 6: 0.1, 7: 0.0}
    table = torch.tensor([[0.0, *(values[subset] for subset in range(1, 8))]], dtype=torch.float64)
    asked = []

    def value(texts, chosen):
        asked.append(len(texts))
        return of_table(table)(texts, chosen)

    beam_search(value, 1, torch.tensor([0, 0, 0.5, 0.5], dtype=torch.float64), 2)
    assert asked == [3, 3, 1]


@pytest.mark.parametrize("filled", [False, True])
def test_the_search_beats_the_good_orders_and_reaches_the_best_of_short_texts(filled):
    here = world("short", 2, 12, Shape(5, 14, density=0.3, negated=0.5))
    case = prepare(adapter(here, "negation"), here.examples, {}, ProbeConfig()).case
    total = torch.zeros(2, dtype=torch.float64)
    for rows, batch in case.batches():
        full = case.probs[torch.from_numpy(rows)]
        others = case.gather_rows(case.other_words(0), rows, batch) if filled else None
        scores = searched_scores(case.model, batch, full, ERASER, others)
        predicted = full.argmax(-1)
        exact = subset_predictions(case.model, batch, predicted, replacements=others)
        for row in exact[:, 0].isfinite().nonzero().squeeze(-1).tolist():
            n = int(batch.mask[row].sum())
            kept, coefficients = exact[row : row + 1, : 1 << n], size_coefficients(n, SHARES)
            assert scores[row, 0] <= best_order(kept[:, -1:] - kept.flip(-1), coefficients) + 1e-9
            assert scores[row, 1] <= best_order(kept, coefficients) + 1e-9
        without, alone = erase_words(case.model, batch, full, good_orders(case.model, batch, full)[1], ERASER, others)
        index = predicted.view(-1, 1, 1).expand(-1, len(SHARES), 1)
        total[0] += (scores[:, 0] - (full.amax(-1) - without.gather(-1, index).mean((1, 2)))).sum()
        total[1] += (scores[:, 1] - alone.gather(-1, index).mean((1, 2))).sum()
    assert (total >= -1e-9).all()


def test_texts_beyond_the_limits_are_left_out():
    here = world("long", 2, 3)
    case = prepare(adapter(here, "linear"), here.examples, {}, ProbeConfig()).case
    for rows, batch in case.batches():
        assert searched_scores(case.model, batch, case.probs[torch.from_numpy(rows)], ERASER).isnan().all()
