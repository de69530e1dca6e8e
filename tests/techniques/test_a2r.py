"""A2R: the generator receives the gradient of the soft branch alone; Jensen-Shannon ties the two predictors."""

from functools import partial

import numpy as np
import pytest
import scipy.spatial.distance
import scipy.stats
import torch
from torch import Tensor

from contract.tiny import assert_close
from steadygaze.core.random_key import RandomKey, derive_seed
from steadygaze.models.classifier import Architecture
from steadygaze.models.encoders.word_encoders import Encoder
from steadygaze.techniques.a2r import A2R, logit_divergence, symmetric_kl
from steadygaze.techniques.technique import LossContext, task_loss
from techniques.byhand import selecting_model, texts
from training.toys import corpus, make_run, model_for, weights

TEXTS = texts([3, 4, 6, 5, 8, 13, 9, 2, 7], [5, 2, 13, 1], [3, 4], label=[0, 1, 1])
"""Three sentences, two and one; ids 6 and 13 end one."""
CONTEXT = LossContext(key=RandomKey(4))
ALL = [A2R(), A2R(granularity="token"), A2R(variant="released")]
EVERY = pytest.mark.parametrize("technique", ALL, ids=["sentences", "tokens", "released"])


def gradients_of(loss: Tensor, module: torch.nn.Module) -> list[Tensor | None]:
    return list(torch.autograd.grad(loss.sum(), list(module.parameters()), allow_unused=True, retain_graph=True))


@EVERY
def test_no_gradient_flows_from_the_hard_head_into_the_generator(technique):
    model = selecting_model(technique)
    terms = technique.loss(model, TEXTS, CONTEXT)
    assert all(pull is None for pull in gradients_of(terms["task"], model.generator))
    assert any(pull is not None and pull.abs().max() > 1e-8 for pull in gradients_of(terms["soft"], model.generator))


@EVERY
def test_the_generator_receives_the_gradient_of_the_soft_side_of_the_gap_only(technique):
    """The same as if the output of the hard head were a constant."""
    model = selecting_model(technique)
    result = gradients_of(technique.loss(model, TEXTS, CONTEXT)["gap"], model.generator)
    looked = model.generate(TEXTS)
    hard = model.read(TEXTS, technique._selection(model, looked, TEXTS, CONTEXT)).detach()
    gap = symmetric_kl if technique.variant == "released" else logit_divergence
    expected = gradients_of(gap(hard, model.soft_attention(TEXTS, looked)), model.generator)
    assert_close(result, expected)
    assert any(pull is not None and pull.abs().max() > 1e-10 for pull in result)


def test_both_heads_learn_from_their_own_loss_and_from_the_gap():
    model = selecting_model(A2R())
    terms = A2R().loss(model, TEXTS, CONTEXT)
    for term, names in (("task", {"hard"}), ("soft", {"soft"}), ("gap", {"hard", "soft"})):
        moved = {name for name, head in model.predictor.heads.items() if gradients_of(terms[term], head)[0] is not None}
        assert moved == names, term
        assert gradients_of(terms[term], model.predictor.encoder)[0] is not None, "one encoder serves both"


def test_the_gap_is_jensen_shannon_in_nats():
    hard, soft = torch.randn(2, 50, 3, dtype=torch.float64) * 3
    p, q = hard.softmax(-1).numpy(), soft.softmax(-1).numpy()
    expected = scipy.spatial.distance.jensenshannon(p, q, axis=-1) ** 2
    assert_close(logit_divergence(hard, soft), torch.from_numpy(expected))
    assert_close(logit_divergence(hard, soft), logit_divergence(soft, hard))
    sure = torch.tensor([[60.0, -60.0]], dtype=torch.float64)
    assert_close(float(logit_divergence(sure, -sure)), float(np.log(2)))
    expected = scipy.stats.entropy(p, q, axis=-1) + scipy.stats.entropy(q, p, axis=-1)
    assert_close(symmetric_kl(hard, soft), torch.from_numpy(expected))


@EVERY
def test_terms_are_those_of_the_equations_and_agreement_scales_the_gap(technique):
    model = selecting_model(technique)
    terms, looked = technique.loss(model, TEXTS, CONTEXT), model.generate(TEXTS)
    hard = model.read(TEXTS, technique._selection(model, looked, TEXTS, CONTEXT))
    soft = model.soft_attention(TEXTS, looked)
    assert_close(terms["task"], task_loss(hard, TEXTS))
    assert_close(terms["soft"], task_loss(soft, TEXTS))
    three = type(technique)(granularity=technique.granularity, variant=technique.variant, agreement=3.0)
    assert_close(three.loss(model, TEXTS, CONTEXT)["gap"], 3 * terms["gap"])
    none = type(technique)(granularity=technique.granularity, variant=technique.variant, agreement=0.0)
    assert not none.loss(model, TEXTS, CONTEXT)["gap"].any()


def test_who_minimizes_what():
    predictor, generator = A2R(generator_learning_rate=0.5).players()
    assert (predictor.terms, generator.terms) == (("task", "soft", "gap"), ("soft", "gap"))
    assert (predictor.every, generator.every) == (1, 1)
    assert (predictor.learning_rate, generator.learning_rate) == (None, 0.5)
    predictor, generator = A2R(variant="released").players()
    assert (predictor.terms, generator.terms) == (("task", "soft", "gap"), ("soft",))
    assert [(player.every, player.offset) for player in (predictor, generator)] == [(2, 0), (2, 1)]


def test_in_training_sentences_are_drawn_and_tokens_taken_as_in_evaluation():
    model = selecting_model(A2R(exploration=0.5))
    looked = model.generate(TEXTS)
    drawn = {
        tuple(A2R(exploration=0.5)._selection(model, looked, TEXTS, LossContext(key=RandomKey(seed)))[0].tolist())
        for seed in range(40)
    }
    assert len(drawn) == 3, "each of three sentences"
    technique = A2R(granularity="token", share=0.5, spans=1)
    model = selecting_model(technique)
    assert torch.equal(technique._selection(model, model.generate(TEXTS), TEXTS, CONTEXT), model(TEXTS).selected)


def test_released_tokens_are_attended_to_by_the_predictors_own_hidden_states():
    technique = A2R(granularity="token", variant="released")
    model = selecting_model(technique)
    assert model.generator.encoder is None
    assert sum(isinstance(part, Encoder) for part in model.modules()) == 1
    assert technique.players()[0].terms is None
    terms = technique.loss(model, TEXTS, CONTEXT)
    assert all(pull is None for pull in gradients_of(terms["task"], model.generator.scorer)), "the mask is a constant"


def test_released_in_turns_the_predictor_moves_first_and_then_the_generator():
    technique = A2R(variant="released", generator_learning_rate=0.01)
    make = partial(model_for, technique)
    run = make_run(technique, make, epochs=1, data=corpus(8))  # one step
    trained = run.execute()
    torch.manual_seed(derive_seed(0, 0))
    fresh, result = weights(make()), weights(trained)
    assert all(result[name] == fresh[name] for name in fresh if name.startswith("generator"))
    assert any(result[name] != fresh[name] for name in fresh if name.startswith("predictor"))


def test_tokens_need_a_share():
    assert "share=0.2" in (A2R(granularity="token", share=None).validate(Architecture(), 2) or "")
