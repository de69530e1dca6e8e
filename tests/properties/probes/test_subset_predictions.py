"""Predictions of every subset of words against the rule of the model on these words."""

import pytest
import torch

from steadygaze.auditing.prepare_case import prepare
from steadygaze.perturbations.word_removal import units_of
from steadygaze.properties.probes.erasure import SHARES, erase_words
from steadygaze.properties.probes.subset_predictions import size_coefficients, subset_predictions
from steadygaze.results.audit_config import ProbeConfig
from studies.oracles.models import adapter
from studies.oracles.worlds import Shape, world


@pytest.fixture(scope="module")
def case():
    here = world("short", 2, 20, Shape(4, 9, density=0.3, negated=0.5))
    return prepare(adapter(here, "negation"), here.examples, {}, ProbeConfig()).case


def test_each_subset_has_the_probability_of_its_words(case):
    for rows, batch in case.batches():
        predicted = case.probs[torch.from_numpy(rows)].argmax(-1)
        values = subset_predictions(case.model, batch, predicted)
        assert values.shape == (len(batch), 64)
        for row, label in enumerate(predicted.tolist()):
            words = batch.mask[row].nonzero().squeeze(-1).tolist()
            if len(words) > 6:
                assert values[row].isnan().all()
                continue
            for subset in range(1 << len(words)):
                kept = torch.zeros_like(batch.mask[[row]])
                kept[0, [place for j, place in enumerate(words) if (subset >> j) & 1]] = True
                probability = case.model.read(batch.ids[[row]], kept).softmax(-1)[0, label]
                assert torch.isclose(values[row, subset], probability.double())
            assert values[row, 1 << len(words) :].isnan().all()


def test_chunks_and_other_texts_of_the_batch_change_nothing(case, monkeypatch):
    whole = case.subset_probabilities
    monkeypatch.setattr("steadygaze.properties.probes.subset_predictions.CELLS", 1)
    for row in range(len(case)):
        _, batch = next(iter(case.batches(case.all_rows[[row]])))
        alone = subset_predictions(case.model, batch, case.probs[[row]].argmax(-1))
        assert torch.allclose(alone[0], whole[row], equal_nan=True)


def test_the_sizes_of_an_erasure_are_those_of_the_coefficients(case):
    """Erasing by an order, or adding up its subsets, is the same."""
    rows, batch = next(iter(case.batches()))
    full = case.probs[torch.from_numpy(rows)]
    values = subset_predictions(case.model, batch, full.argmax(-1))
    order = torch.arange(batch.ids.shape[1], 0, -1).double().expand(batch.ids.shape)  # the first word first
    without, alone = erase_words(case.model, batch, full, order)
    counts = units_of(batch, question=False).mask.sum(-1).tolist()
    for row, n in enumerate(counts):
        if n <= 6:
            first = torch.tensor([(1 << k) - 1 for k in range(n + 1)])
            coefficients, label = size_coefficients(n, SHARES), full[row].argmax()
            assert torch.isclose(values[row, first] @ coefficients, alone[row, :, label].mean())
            assert torch.isclose(values[row, (1 << n) - 1 - first] @ coefficients, without[row, :, label].mean())
