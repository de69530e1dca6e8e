"""3PLAYER: the cost of a selection, its gradient against all outcomes, and why the rest must be uninformative."""

import dataclasses
import itertools

import pytest
import torch
from torch import Tensor

from contract.tiny import assert_close
from steadygaze.core.random_key import RandomKey
from steadygaze.models import inference
from steadygaze.models.classifier import Architecture
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.techniques.rationalizing import continuity_penalty, share_penalty
from steadygaze.techniques.technique import LossContext
from steadygaze.techniques.three_player import ThreePlayer
from techniques.byhand import Identity, selecting_model, selecting_run, texts
from training.toys import corpus

STOP = 6  # ends a sentence of the toys
WORD, LABEL_WORDS = 1, 3


def always(model: Rationalizer, head: str, label: int) -> None:
    """A head that predicts one label for every input."""
    layer = model.predictor.heads[head]
    torch.nn.init.zeros_(layer.weight)
    with torch.no_grad():
        layer.bias.copy_(torch.nn.functional.one_hot(torch.tensor(label), 2))


def rationalizer_of(technique: ThreePlayer) -> Rationalizer:
    """Word vectors are hidden states, and both heads predict 1 just if a decisive word is read."""
    vectors = torch.tensor([[0.0], [0.1], [0.1], [1.0]], dtype=torch.float64)
    model = technique.build(
        lambda: Identity(vectors.clone()), Architecture(score="dot"), 2, False, lambda: torch.zeros(4, dtype=torch.bool)
    )
    for head in model.predictor.heads.values():
        with torch.no_grad():
            head.weight.copy_(torch.tensor([[0.0], [1.0]]))
            head.bias.copy_(torch.tensor([0.5, 0.0]))
    return model.double().eval()


def selections(tokens: int) -> Tensor:
    """All of them.  (2^T,T) bool"""
    return torch.tensor(list(itertools.product([False, True], repeat=tokens)))


def cost(technique: ThreePlayer, model: Rationalizer, ids: list[int], selected: Tensor, label: int) -> Tensor:
    """c of each selection of one text, from its definition.  (M,T) -> (M,)"""
    batch = texts(*[ids] * len(selected), label=[label] * len(selected))
    hit, result = (
        (model.read(batch, part, head).argmax(-1) == label).double()
        for part, head in ((selected, "hard"), (~selected, "rest"))
    )
    chosen = selected.double()
    penalties = technique.sparsity * share_penalty(chosen, batch.mask, technique.share)
    penalties = penalties + technique.continuity * continuity_penalty(chosen, batch.mask, technique.spans)
    return -technique.right * hit - technique.lead * (hit - result) + penalties


def test_the_cost_by_hand():
    """The predictor always predicts 1, the complement always 0.  Label 1: −.1 − 1.2 = −1.3; label 0: 0 + 1.2."""
    technique = ThreePlayer(granularity="sentence")
    model = selecting_model(technique, "average")
    always(model, "hard", 1)
    always(model, "rest", 0)
    batch = texts([3, STOP, 4, 5], [3, 4, STOP, 5], label=[1, 0])
    terms = technique.loss(model, batch, LossContext(key=RandomKey(1)))
    assert_close(terms["cost"], torch.tensor([-1.3, 1.2], dtype=torch.float64))
    assert not terms["cost"].requires_grad
    assert set(terms) == {"task", "rest", "cost", "policy"}
    # After two batches of cost 1 and 2 the baseline is 1.5.
    later = dataclasses.replace(technique, costs=(1.0, 2.0)).loss(model, batch, LossContext(key=RandomKey(1)))
    assert_close(later["policy"] / terms["policy"], torch.tensor([2.8 / 1.3, -0.3 / 1.2], dtype=torch.float64))


def test_penalties_are_part_of_the_cost_where_tokens_are_drawn():
    technique = ThreePlayer(right=0.0, lead=0.0, sparsity=2.0, continuity=3.0, share=0.5, spans=1)
    model, batch = selecting_model(technique, "average"), texts([3, 4, 5, 7, 8, 9], [3, 4])
    terms = technique.loss(model, batch, LossContext(key=RandomKey(2)))
    assert_close(terms["cost"], terms["sparsity"] + terms["continuity"])
    assert terms["cost"].max() > 0


@pytest.mark.parametrize("label", [0, 1])
def test_only_a_selection_that_leaves_nothing_telling_is_best(label):
    """Three words, two of which show label 1: without the lead one of them is enough; with it none may be left.

    Of label 0 they are no reason, and no selection but those that hide both is right.
    """
    ids, all_ = [LABEL_WORDS, WORD, LABEL_WORDS], selections(3)
    for lead, enough in ((0.0, 1), (1.2, 2)):
        technique = ThreePlayer(lead=lead, sparsity=0.0, continuity=0.0)
        costs = cost(technique, rationalizer_of(technique), ids, all_, label)
        best = all_[costs == costs.min()]
        informative = best[:, [0, 2]].sum(-1)
        if label == 1:
            assert informative.min() == enough
        else:
            assert informative.max() == 0


@pytest.mark.slow
def test_the_policy_is_unbiased_for_all_eight_selections_of_three_tokens():
    """Mean of 40 gradients over 2,000 draws each, against Σ q(M) c(M) by autograd; within 4 standard errors."""
    technique = ThreePlayer(share=0.4, spans=1, exploration=0.6, costs=(0.2,))
    model, ids = selecting_model(technique, "average"), [3, 9, 4]
    weights = model.generator.scorer.weigh.weight
    all_ = selections(3)
    with torch.no_grad():
        costs = cost(technique, model, ids, all_, 1)
    assert len(costs.unique()) > 2, "or nothing is compared"
    q = 0.4 * model.generate(texts(ids)).probability + 0.6 * 0.4
    probabilities = torch.where(all_, q, 1 - q).prod(-1)
    assert_close(probabilities.sum().detach(), torch.tensor(1.0, dtype=torch.float64))
    (expected,) = torch.autograd.grad((probabilities * costs).sum(), weights)
    results = []
    for turn in range(40):
        terms = technique.loss(model, texts(*[ids] * 2000), LossContext(key=RandomKey(turn)))
        results.append(torch.autograd.grad(terms["policy"].mean(), weights)[0])
    pulls = torch.stack(results)
    error = pulls.std(0) / len(results) ** 0.5
    assert ((pulls.mean(0) - expected).abs() < 4 * error).all()
    assert (expected.abs() > 8 * error).any(), "or nothing is compared"


@pytest.mark.parametrize("granularity", ["token", "sentence"])
def test_each_player_minimizes_its_own_terms_only(granularity):
    technique = ThreePlayer(granularity=granularity)
    model = selecting_model(technique)
    terms = technique.loss(model, texts([3, STOP, 4, 5], [7, 8, STOP, 9]), LossContext(key=RandomKey(1)))
    heads = model.predictor.heads
    parts = {
        "generator": list(model.generator.parameters()),
        "encoder": list(model.predictor.encoder.parameters()),
        "hard": list(heads["hard"].parameters()),
        "rest": list(heads["rest"].parameters()),
    }
    minimizes = {"task": {"encoder", "hard"}, "rest": {"encoder", "rest"}, "policy": {"generator"}}
    for name, expected in minimizes.items():
        pulls = {
            part: torch.autograd.grad(terms[name].sum(), parameters, retain_graph=True, allow_unused=True)
            for part, parameters in parts.items()
        }
        changed_parts = {part for part, each in pulls.items() if any(p is not None and p.abs().max() > 0 for p in each)}
        assert changed_parts == expected, name
    players = {player.name: (player.trains, player.terms) for player in technique.players()}
    assert players["predictor"] == (("model.predictor",), ("task", "rest"))
    assert players["generator"] == (("model.generator",), ("policy",))


@pytest.mark.parametrize("encoder", ["average", "cnn", "bigru"])
def test_the_complement_reads_what_is_left_and_nothing_else(encoder):
    technique = ThreePlayer()
    model, batch = selecting_model(technique, encoder), texts([3, 4, 5, 7])
    selected = torch.tensor([[True, False, True, False]])
    rest = batch.mask & ~selected
    message = model.read(batch, selected), model.read(batch, rest, "rest")
    for place in range(4):
        ids = batch.ids.clone()
        ids[0, place] = 11
        changed = dataclasses.replace(batch, ids=ids)
        same = [
            torch.equal(model.read(changed, part, head), before)
            for part, head, before in zip((selected, rest), ("hard", "rest"), message, strict=True)
        ]
        assert same == [not selected[0, place], bool(selected[0, place])]


def test_evaluation_draws_nothing_and_keeps_the_share():
    technique = ThreePlayer(share=0.5, spans=1)
    model, batch = selecting_model(technique), texts([3, 4, 5, 7, 8, 9], [3])
    output = model(batch)
    assert output.selected.sum(-1).tolist() == [3, 1]
    assert torch.equal(model(batch).logits, output.logits)
    half = ThreePlayer(share=None)
    coins = selecting_model(half)(batch)
    assert torch.equal(coins.selected, coins.probability > 0.5)


@pytest.mark.slow
def test_it_learns_the_labels_and_leaves_no_information_in_the_rest():
    """Whether word 1 is among a text's words; half of the words may be read.  Guessing costs ln 2 = .69."""
    technique = ThreePlayer(share=0.5, spans=None, generator_learning_rate=0.01)
    held = corpus(80, seed=1)
    run = selecting_run(technique, validation=held, epochs=4)
    model = run.execute()
    assert (inference.logits(model, held).argmax(-1).numpy() == held.label).mean() > 0.9
    assert run.history[-1]["terms"]["rest"] > 0.6 > 0.4 > run.history[-1]["terms"]["task"]
    read = inference.split_outputs(model, held)
    selected = read.weights > 0
    informative = (read.ids == 1) & read.mask
    assert selected[informative].double().mean() > 0.8 > 0.5 > selected[read.mask].double().mean()
