"""Infidelity and max-sensitivity of whole audits: by hand on each text, and against Captum on its vectors."""

import numpy as np
import pytest
import torch
from captum.metrics import sensitivity_max

from contract.tiny import batch, cached_classifier, split
from explainers.worked import game, row
from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.explainers.attention import Attention
from steadygaze.explainers.gradient import Gradient
from steadygaze.explainers.leave_one_out import LeaveOneOut
from steadygaze.perturbations.word_removal import take_rows, units_of
from steadygaze.properties import PROPERTIES
from steadygaze.properties.audit_case import AuditCase
from steadygaze.properties.probes.text_perturbations import embedding_noise, perturbation_radius
from steadygaze.properties.protocols.faithfulness import (
    DRAWS,
    NO_VECTORS,
    SAMPLES,
    infidelity,
    max_sensitivity,
    removed,
)
from steadygaze.results.audit_config import ProbeConfig

EXPLAINERS = {"attention": Attention(), "gradient": Gradient(), "leave-one-out": LeaveOneOut()}


def case(**plan):
    return AuditCase(cached_classifier("bilstm"), split(), EXPLAINERS, ProbeConfig(**plan))


def test_infidelity_by_hand():
    here, texts = case(), batch(split())
    results = {finding.explainer: finding.values for finding in infidelity(here)}
    gone = removed(units_of(texts), text_key(texts), RandomKey(0).child(13))
    weights = Attention().explain(here.model, texts).weights
    for place in (0, 2, 6):
        text = row(texts, place)
        value = game(here.model, text, int(here.model(text).logits.argmax()))
        own, words = weights[place][texts.mask[place]], int(texts.mask[place].sum())
        sets = [set(np.flatnonzero(some[:words].numpy()).tolist()) for some in gone[place]]
        a = np.array([sum(float(own[i]) for i in some) for some in sets])
        d = np.array([value(frozenset(range(words))) - value(frozenset(range(words)) - some) for some in sets])
        line = (a * d).sum() / (a * a).sum()
        np.testing.assert_allclose(results["attention"][place], np.mean((line * a - d) ** 2), rtol=1e-9)
    assert results["leave-one-out"].isnan().tolist() == (~texts.mask.any(-1)).tolist()


def test_random_sets_have_one_word_to_all_of_them():
    texts = batch(split(["w" * 6] * 60))
    sizes = removed(units_of(texts), torch.arange(60), RandomKey(1)).sum(-1)
    assert sizes.shape == (60, SAMPLES)
    assert set(sizes.flatten().tolist()) == {1, 2, 3, 4, 5, 6}


@pytest.mark.slow
def test_max_sensitivity_is_captums_on_the_vectors_of_a_text():
    here = case(radius=0.3)
    results = {finding.explainer: finding for finding in max_sensitivity(here)}
    assert results["leave-one-out"].absent == NO_VECTORS
    texts = batch(split())
    radius, aim = perturbation_radius(here.model, 0.3), here.model(texts).logits.argmax(-1)
    moves = [
        embedding_noise(here.model, texts, radius, RandomKey(0).child(14).child(draw)).embedded for draw in range(DRAWS)
    ]
    for place in (0, 2, 6):
        text, real = row(texts, place), texts.present[place]
        near = torch.cat([move[place : place + 1, : int(real.sum())].detach() for move in moves])

        def explain(points, text=text, place=place):
            points = points[0] if isinstance(points, tuple) else points
            many = take_rows(text, torch.zeros(len(points), dtype=torch.long))
            return (Gradient().explain(here.model, many, aim[place].expand(len(points)), points.detach()).weights,)

        own = here.model.embed(text).detach()
        theirs = sensitivity_max(explain, own, lambda *_, near=near: near, n_perturb_samples=DRAWS)
        np.testing.assert_allclose(results["gradient"].values[place], theirs.item(), rtol=1e-6)


def test_they_are_measured_only_in_a_thorough_audit():
    thorough = {check.run for item in PROPERTIES.values() for check in item.checks if check.thorough}
    assert {infidelity, max_sensitivity} <= thorough
