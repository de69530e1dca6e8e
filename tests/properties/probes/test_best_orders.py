"""The weights of good orders against predictions of each text without a word, and of each word alone."""

import torch

from steadygaze.auditing.prepare_case import prepare
from steadygaze.properties.probes import best_orders
from steadygaze.properties.probes.best_orders import good_orders
from steadygaze.results.audit_config import ProbeConfig
from studies.oracles.models import adapter
from studies.oracles.worlds import Shape, world


def test_weights_are_the_drop_without_a_word_and_the_probability_of_it_alone():
    here = world("short", 2, 8, Shape(5, 9, density=0.3))
    case = prepare(adapter(here, "negation"), here.examples, {}, ProbeConfig()).case
    for rows, batch in case.batches():
        full = case.probs[torch.from_numpy(rows)]
        drops, both = good_orders(case.model, batch, full)
        for row, label in enumerate(full.argmax(-1).tolist()):
            for place in batch.mask[row].nonzero().squeeze(-1).tolist():
                only = torch.zeros_like(batch.mask[[row]])
                only[0, place] = True
                rest = batch.mask[[row]] & ~only
                without, alone = (
                    case.model.read(batch.ids[[row]], kept).softmax(-1)[0, label] for kept in (rest, only)
                )
                assert torch.isclose(drops[row, place], full[row, label] - without)
                assert torch.isclose(both[row, place], full[row, label] - without + alone)


def test_a_long_text_is_weighed_in_segments(monkeypatch):
    monkeypatch.setattr(best_orders, "MOST_UNITS", 40)
    here = world("long", 2, 3)
    case = prepare(adapter(here, "linear"), here.examples, {}, ProbeConfig()).case
    for rows, batch in case.batches():
        for weights in good_orders(case.model, batch, case.probs[torch.from_numpy(rows)]):
            assert weights.shape == batch.ids.shape
            assert not weights[~batch.mask].any()
            assert max(len(row.unique()) for row in weights) <= 41
