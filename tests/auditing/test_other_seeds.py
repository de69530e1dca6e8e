"""Models beside the audited one: whether they were trained alike decides which question their numbers answer."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from estimator.tiny import LABELS, SMALL, TEXTS, fitted, tiny
from properties.oracles import oracle_adapter, world
from steadygaze.auditing.audit import audit, run_audit
from steadygaze.auditing.audit_report import _row as build_row
from steadygaze.auditing.prepare_case import AuditRequest, check_comparable, training_difference
from steadygaze.core.errors import UserError
from steadygaze.properties.audit_case import Finding
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.results.seed_intervals import mean_intervals

FACTS = {"encoder": "lstm", "technique": "vanilla", "seed": "0"}
RETRAINED = "Seed consistency"
FEW = ProbeConfig(sample=4)


@pytest.fixture(scope="module")
def here():
    return world(0, texts=24)


def made(here, name="honest", seed=0, **facts):
    return replace(oracle_adapter(name, here, seed), name=f"model-{seed}", facts={**FACTS, "seed": str(seed), **facts})


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({}, ""),
        ({"technique": "seat"}, "was trained differently (technique: seat, here vanilla)"),
        ({"encoder": "cnn"}, "was trained differently (encoder: cnn, here lstm)"),
        ({"vectors": "glove-50d"}, "was trained differently (vectors: glove-50d, here not known)"),
        ({"seed": "0"}, "has the same seed, 0, but other weights: it was trained differently"),
    ],
)
def test_what_differs_besides_the_seed_is_named(here, facts, why):
    last = made(here, seed=2)
    others = [made(here, seed=1), replace(last, facts={**last.facts, **facts})]
    assert str(training_difference(made(here), others)) == (f"model-2 {why}" if why else "None")


def test_of_models_of_which_nothing_is_known_nothing_is_held_against_them(here):
    assert training_difference(oracle_adapter("honest", here, 0), [oracle_adapter("first", here, 1)]) is None
    other_kind = replace(oracle_adapter("honest", here, 1), kind="a thing")
    assert "(kind: a thing, here built for a test)" in str(
        training_difference(oracle_adapter("honest", here, 0), [other_kind])
    )


def test_the_model_itself_and_one_with_other_labels_are_refused(here):
    adapter = made(here)
    with pytest.raises(UserError, match="the audited model itself"):
        check_comparable(adapter, adapter)
    with pytest.raises(UserError, match="labels or its vocabulary"):
        check_comparable(adapter, replace(made(here, seed=1), classes=["good", "bad"]))
    assert check_comparable(adapter, (other := made(here, seed=1))) is other


@pytest.mark.slow
def test_no_verdict_is_drawn_from_models_that_were_not_trained_alike(here):
    """The same two models: by their facts the numbers answer the question, or stand under another name."""
    alike, unlike = (
        run_audit(
            AuditRequest(
                made(here), here.examples, FEW, others=[made(here, "first", 1, **facts)], synonyms=here.synonyms
            )
        ).report()
        for facts in ({}, {"technique": "seat"})
    )
    verdict = {candidate.title: candidate for candidate in alike.verdicts}[RETRAINED]
    assert verdict.answer == "no"
    assert "seeds" in alike.plots
    assert alike.find("jensen-shannon/others") is None
    verdict = {candidate.title: candidate for candidate in unlike.verdicts}[RETRAINED]
    why = "odel-1 was trained differently (technique: seat, here vanilla)"
    assert (verdict.answer, verdict.why) == ("not measured", f"M{why}.")
    assert unlike.find("jensen-shannon/seeds").note == f"not applicable, because m{why}"
    assert unlike.find("jensen-shannon/others").value == alike.find("jensen-shannon/seeds").value > 0.1
    assert unlike.sections["jensen-shannon/others"] == RETRAINED
    assert "seeds" not in unlike.plots
    assert unlike.failing("jensen-shannon/seeds<=1")


@pytest.mark.slow
def test_trained_models_know_their_training_settings():
    shape = {**SMALL, "learning_rate": 0.05}
    two, three = (
        tiny(epochs=6, batch_size=4, settings=shape, seed=seed, technique=how).fit(TEXTS, LABELS)
        for seed, how in ((1, "vanilla"), (2, "word-at"))
    )
    alike, unlike = (audit(fitted(), TEXTS, LABELS, other_seeds=[other], sample=4) for other in (two, three))
    assert alike.find("jensen-shannon/seeds").n > 0
    assert "(technique: word-at, here vanilla)" in unlike.find("jensen-shannon/seeds").note


def black_box(sign, scale=1.0):
    """Functions of the same name that weigh the word "good" differently."""

    def predict(texts):
        positive = np.array([0.5 + sign * scale * (0.3 if "good" in text else -0.3) for text in texts])
        return np.stack([1 - positive, positive], axis=1)

    return predict


def signatures(predict, **options):
    texts = [f"a {'good' if i % 2 else 'bad'} film number {i}" for i in range(6)]
    labels = ["yes" if i % 2 else "no" for i in range(6)]
    report = audit(predict, texts, labels, classes=["no", "yes"], explainers=["leave-one-out"], sample=2, **options)
    return {row.signature for row in report.rows}


def test_black_boxes_of_the_same_name_have_different_signatures():
    first, second, first_again, nearly_first = map(
        signatures, (black_box(1), black_box(-1), black_box(1), black_box(1, 1 + 1e-6))
    )
    assert not first & second
    assert first == first_again == nearly_first


def test_a_black_box_is_not_another_seed_of_itself():
    first, second = black_box(1), black_box(-1)
    with pytest.raises(UserError, match="predict is the audited model itself"):
        signatures(first, other_seeds=[first])
    with pytest.raises(UserError, match="predict and predict are the same model: pass each other seed once"):
        signatures(first, other_seeds=[second, second])
    assert any("jensen-shannon/seeds" in signature for signature in signatures(first, other_seeds=[second]))


def test_another_seed_is_passed_once(here):
    other = made(here, seed=1)
    with pytest.raises(UserError, match="model-1 and model-1 are the same model"):
        run_audit(AuditRequest(made(here), here.examples, FEW, others=[other, other]))


def test_the_interval_of_three_models_covers_models_as_compare_does():
    """Three models contribute 0, 0.3 and 0.6 to every text: all variation is between models."""
    contributions = torch.tensor([[0.0], [0.3], [0.6]], dtype=torch.float64).expand(3, 60)
    plain = Finding("weight-correlation/seeds", contributions.mean(0), "attention")
    row = build_row(replace(plain, of_models=contributions), {})
    assert row.value == pytest.approx(0.3)
    assert row.interval == mean_intervals({"": contributions.numpy()})[""]
    assert row.interval[1] - row.interval[0] > 1
    assert build_row(plain, {}).interval == pytest.approx((0.3, 0.3))
