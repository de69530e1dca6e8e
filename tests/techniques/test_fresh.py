"""FRESH: a classifier's saliency selects, a predictor of its own reads the selection, and neither trains the other."""

from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import steadygaze as sg
from contract.tiny import assert_close
from estimator.students import bits
from estimator.test_rationalizers import LABELS, TEXTS
from estimator.tiny import SMALL, tiny
from steadygaze.core.errors import UserError
from steadygaze.core.types import Batch
from steadygaze.data.batches import collate
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.explainers.gradient import Gradient, InputXGradient
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.models.token_saliency import Saliency, token_saliency
from steadygaze.techniques.fresh import Fresh
from steadygaze.techniques.technique import LossContext
from steadygaze.techniques.vanilla import Vanilla
from techniques.byhand import Identity, texts
from training.toys import corpus, make_run, model_for

SALIENCIES: tuple[Saliency, ...] = ("attention", "gradient", "input-x-gradient")


def by_hand(technique: Fresh) -> Rationalizer:
    """Hidden states are vectors, a score is the first entry; id 4 ends a sentence."""
    table = torch.tensor([[0.0, 0.0], [2.0, 1.0], [0.0, 3.0], [1.0, -1.0], [0.0, 0.0]], dtype=torch.float64)
    ends = torch.tensor([False, False, False, False, True])
    encoder = lambda: Identity(table.clone())  # noqa: E731
    model = technique.build(encoder, Architecture(score="dot"), 2, False, lambda: ends).double().eval()
    assert isinstance(model.generator, Classifier)
    with torch.no_grad():
        model.generator.scorer.key.copy_(torch.tensor([2**0.5, 0.0], dtype=torch.float64))
    return model


@cache
def trained(**settings: object) -> Rationalizer:
    technique = Fresh(**{"share": 0.4, "spans": 1, **settings})
    model = make_run(technique, partial(model_for, technique, "bigru", dropout=0.0), epochs=3).execute()
    assert isinstance(model, Rationalizer)
    return model


def whole() -> Batch:
    data = corpus()
    return collate(data, np.arange(len(data)))


def test_the_best_windows_of_the_attention_are_selected():
    """Scores 2 0 0 | 1 1 0, so that attention is proportional to 7.4 1 1 | 2.7 2.7 1."""
    batch = texts([1, 2, 4, 3, 3, 4])
    weights = torch.tensor([2.0, 0, 0, 1, 1, 0], dtype=torch.float64).softmax(-1)
    for settings, expected in (
        ({"share": 0.2, "spans": 1}, [1, 0, 0, 0, 0, 0]),
        ({"share": 0.34, "spans": 1}, [1, 1, 0, 0, 0, 0]),
        ({"share": 0.5, "spans": None}, [1, 0, 0, 1, 1, 0]),
        ({"share": 0.5, "spans": 2}, [1, 1, 0, 1, 0, 0]),  # windows of two and one
        ({"granularity": "sentence"}, [1, 1, 1, 0, 0, 0]),
    ):
        model = by_hand(Fresh(**settings))
        output = model(batch)
        assert output.selected[0].int().tolist() == expected, settings
        sentence = torch.stack([weights[:3].sum().expand(3), weights[3:].sum().expand(3)]).flatten()
        assert_close(output.probability[0], sentence if settings.get("granularity") else weights)


@pytest.mark.parametrize(("kind", "explainer"), [("gradient", Gradient()), ("input-x-gradient", InputXGradient())])
def test_the_gradient_is_that_of_the_explainer_without_its_sign(kind: Saliency, explainer: Gradient | InputXGradient):
    torch.manual_seed(0)
    model, batch = model_for(Vanilla(), "bigru", torch.float64, dropout=0.0).eval(), whole()
    assert isinstance(model, Classifier)
    weights = explainer.explain(model, batch).weights.abs()
    assert_close(token_saliency(model, batch, kind)[1], weights / weights.sum(-1, keepdim=True))


def test_the_scorer_is_a_vanilla_model_of_the_same_seed():
    vanilla = make_run(Vanilla(), partial(model_for, Vanilla(), "bigru", dropout=0.0), epochs=3).execute()
    scorer = trained().generator.state_dict()
    assert all(torch.equal(value, scorer[name]) for name, value in vanilla.state_dict().items())


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("saliency", SALIENCIES)
def test_each_stage_trains_its_own_part_alone(saliency: Saliency):
    technique = Fresh(saliency=saliency, skewed=1)
    run = make_run(technique, partial(model_for, technique, "bigru", dropout=0.0), epochs=2)
    model = run.execute()
    scorer = run.models["scorer"].state_dict()
    parts = {name: torch.equal(value, scorer[name]) for name, value in model.state_dict().items()}
    assert all(equal for name, equal in parts.items() if name.startswith("generator."))
    assert not all(equal for name, equal in parts.items() if name.startswith("predictor."))
    assert [record["stage"] for record in run.history] == ["scorer"] * 2 + ["skewed"] + ["train"] * 2


@pytest.mark.slow
def test_the_scorers_own_validation_scores_select_its_epoch():
    """The predictor is untrained then: it predicts one label for every text."""
    technique = Fresh()
    run = make_run(technique, partial(model_for, technique, "bigru", dropout=0.0), epochs=6)
    run.execute()
    vanilla = make_run(Vanilla(), partial(model_for, Vanilla(), "bigru", dropout=0.0), epochs=6)
    vanilla.execute()
    own, others = (
        [record["accuracy"] for record in each.history if record["stage"] == stage]
        for each, stage in ((run, "scorer"), (vanilla, "train"))
    )
    assert own == others


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("saliency", SALIENCIES)
def test_an_unselected_word_that_leaves_the_selection_as_it_is_changes_no_bit_of_the_logits(saliency: Saliency):
    model, batch = trained(saliency=saliency), whole()
    before, same = model(batch), 0
    for position in range(batch.ids.shape[1]):
        for word in (4, 11):
            outside = batch.mask[:, position] & ~before.selected[:, position]
            ids = batch.ids.clone()
            ids[outside, position] = word
            after = model(replace(batch, ids=ids))
            rows = outside & (ids != batch.ids).any(-1) & (after.selected == before.selected).all(-1)
            assert torch.equal(after.logits[rows], before.logits[rows])
            same += int(rows.sum())
    assert same > 30


def test_the_loss_reads_the_selection_of_the_scorer_cached_or_not():
    technique, batch = Fresh(share=0.4, spans=1), whole()
    scorer, model = trained(), model_for(technique, "bigru", dropout=0.0)
    cached = technique.cache_targets({"scorer": scorer}, batch)
    assert torch.equal(cached.tokens["selection"], scorer(batch).selected)
    context = LossContext({"scorer": scorer})
    losses, other = (
        technique.loss(model, batch, each)["task"] for each in (context, replace(context, cached_targets=cached))
    )
    assert torch.equal(losses, other)
    pulls: list[Tensor | None] = list(torch.autograd.grad(losses.sum(), [*model.parameters()], allow_unused=True))
    gradients = {
        name.split(".")[0] for (name, _), pull in zip(model.named_parameters(), pulls, strict=True) if pull is not None
    }
    assert gradients == {"predictor"}


def fresh(**settings: object) -> TextClassifier:
    return tiny("bigru", technique="fresh", seed=3, epochs=2, settings={**SMALL, **settings})


@pytest.mark.slow
def test_a_trained_vanilla_model_can_be_the_scorer():
    own = fresh().fit(TEXTS, LABELS)
    vanilla = tiny("bigru", seed=3, epochs=2).fit(TEXTS, LABELS)
    inputs = fresh().fit(TEXTS, LABELS, reference=vanilla)
    assert bits(inputs) == bits(own)
    assert {record["stage"] for record in inputs.history_} == {"train"}
    with pytest.raises(UserError, match="fresh takes a classifier with attention as its scorer"):
        fresh().fit(TEXTS, LABELS, reference=own)


@pytest.mark.slow
def test_it_is_saved_with_its_scorer_and_certificates_are_refused(tmp_path: Path):
    clf = fresh(share=0.3).fit(TEXTS, LABELS)
    clf.save(tmp_path / "model")
    back = sg.load(tmp_path / "model", device="cpu")
    assert isinstance(back.stored_.model.generator, Classifier)
    assert np.array_equal(back.predict_proba(TEXTS), clf.predict_proba(TEXTS))
    assert np.allclose(
        np.concatenate([clf.predict_proba([text]) for text in TEXTS]), clf.predict_proba(TEXTS), atol=1e-5
    )
    for shown in back.explain(TEXTS):
        assert sum(weight > 0 for weight in shown.weights) == int(0.3 * len(shown.weights))
    with pytest.raises(UserError, match="this model selects words instead"):
        sg.certify(back, TEXTS)
    report = sg.audit(back, TEXTS, LABELS, sample=4)
    assert {row.measure for row in report.rows} >= {"comprehensiveness", "sufficiency"}


def test_settings_that_do_nothing_or_select_nothing_are_refused():
    assert "set share" in (Fresh(share=None).validate(Architecture(), 2) or "")
    assert "has no effect" in (Fresh(granularity="sentence", spans=3).validate(Architecture(), 2) or "")
    assert Fresh(spans=None).validate(Architecture(), 2) is None
    assert not hasattr(Fresh(), "exploration")
