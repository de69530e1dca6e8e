"""Rationalizing techniques: sampled selections, penalties and settings."""

import dataclasses
import math
import re
from functools import partial

import pytest
import torch

from contract.tiny import assert_close
from steadygaze.core.random_key import RandomKey, derive_seed
from steadygaze.core.settings import field_names
from steadygaze.core.types import Batch
from steadygaze.models.classifier import Architecture
from steadygaze.models.rationalizer import GeneratorOutput, Rationalizer
from steadygaze.techniques.a2r import A2R
from steadygaze.techniques.hardkuma import HardKuma
from steadygaze.techniques.rationalizing import (
    FirstSentence,
    RationalizingTechnique,
    continuity_penalty,
    sample_bernoulli,
    sample_selection,
    share_penalty,
    straight_through,
)
from steadygaze.techniques.rnp import Rnp
from steadygaze.techniques.technique import LossContext, Stage, Technique
from steadygaze.techniques.three_player import ThreePlayer
from techniques.byhand import Identity, texts
from training.toys import ENDS, make_run, model_for, weights

MANY = 20_000
SPREAD = 4.5
"""Standard errors: one draw in a hundred thousand lies further out."""


class Skewing(Rnp):
    """Its first stage alone."""

    def stages(self, seed: int) -> tuple[Stage, ...]:
        return super().stages(seed)[:1]


def looked(chances: list[float], real: list[bool], many: int = MANY) -> tuple[GeneratorOutput, Batch]:
    """The same units in this number of texts, each with its own random numbers."""
    probability = torch.tensor([chances] * many, dtype=torch.float64)
    exists = torch.tensor([real] * many)
    ids = torch.ones_like(exists, dtype=torch.long)
    batch = Batch(ids, exists, exists, torch.arange(many))
    return GeneratorOutput(probability.unsqueeze(-1), None, exists, probability, probability), batch


def assert_frequent(draws: torch.Tensor, expected: list[float]) -> None:
    for frequency, probability in zip(draws.double().mean(0).tolist(), expected, strict=True):
        assert abs(frequency - probability) <= SPREAD * math.sqrt(probability * (1 - probability) / MANY)


@pytest.mark.parametrize("exploration", [0.0, 0.3, 0.9])
def test_units_are_drawn_with_their_probabilities_and_the_exploration_and_empty_ones_never(exploration):
    """Three real units and two empty ones: exploration is shared by the three."""
    inputs, batch = looked([0.7, 0.2, 0.1, 0.0, 0.0], [True] * 3 + [False] * 2)
    drawn = sample_selection(inputs, batch, RandomKey(1), exploration)
    expected = [(1 - exploration) * p + exploration / 3 for p in (0.7, 0.2, 0.1)]
    assert torch.equal(drawn.units.sum(-1), torch.ones(MANY, dtype=torch.long))
    assert_frequent(drawn.units, [*expected, 0.0, 0.0])
    assert_close(drawn.log_prob, torch.tensor(expected, dtype=torch.float64).log()[drawn.units.int().argmax(-1)])


def test_a_text_without_units_has_no_selection_and_no_log_probability():
    inputs, batch = looked([0.0, 0.0], [False, False], many=3)
    for drawn in (
        sample_selection(inputs, batch, RandomKey(1), 0.2),
        sample_bernoulli(inputs, batch, RandomKey(1), 0.2, 0.5),
    ):
        assert not drawn.units.any()
        assert not drawn.log_prob.any()
        assert drawn.noisy.isfinite().all()


@pytest.mark.parametrize("share", [None, 0.1])
def test_coins_have_their_probabilities(share):
    inputs, batch = looked([0.9, 0.3, 0.0], [True, True, False])
    drawn = sample_bernoulli(inputs, batch, RandomKey(2), 0.2, share)
    expected = [0.8 * p + 0.2 * (share or 0.5) for p in (0.9, 0.3)]
    assert_frequent(drawn.units, [*expected, 0.0])
    p = torch.tensor(expected, dtype=torch.float64)
    assert_close(drawn.log_prob, torch.where(drawn.units[:, :2], p, 1 - p).log().sum(-1))
    assert torch.equal((drawn.noisy > 0) & inputs.real, drawn.units)


def test_a_text_draws_the_same_in_any_company():
    inputs, batch = looked([0.3, 0.3, 0.4], [True] * 3, many=8)
    alone = GeneratorOutput(
        *(None if v is None else v[5:6] for v in (inputs.hidden, None, inputs.real, inputs.scores, inputs.probability))
    )
    row = Batch(*(v[5:6] for v in (batch.ids, batch.present, batch.mask, batch.index)))
    for way in (partial(sample_selection, exploration=0.2), partial(sample_bernoulli, exploration=0.2, share=0.2)):
        assert torch.equal(way(alone, row, RandomKey(3)).units[0], way(inputs, batch, RandomKey(3)).units[5])


def test_straight_through_is_exactly_what_was_drawn_with_the_gradient_of_the_soft():
    soft = torch.rand(50, 7, dtype=torch.float64).requires_grad_()
    units = torch.rand(50, 7) < 0.5
    selection = straight_through(units, soft)
    assert torch.equal(selection, units.double())
    (pull,) = torch.autograd.grad((selection * 3).sum(), soft)
    assert_close(pull, torch.full_like(pull, 3))


def test_penalties_by_hand():
    """1 0 1 1 of four tokens: a share of 3/4 and two changes; 1 1 of two: all, and none; then a text without words."""
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]).bool()
    chosen = torch.tensor([[1, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.float64)
    assert share_penalty(chosen, mask, 0.25).tolist() == [0.5, 0.75, 0.0]
    assert share_penalty(chosen, mask, None).tolist() == [0.75, 1.0, 0.0]
    assert continuity_penalty(chosen, mask, None).tolist() == [0.5, 0.0, 0.0]
    assert continuity_penalty(chosen, mask, 1).tolist() == [0.0, 0.0, 0.0]
    jagged = torch.tensor([[1, 0, 1, 0]], dtype=torch.float64)
    assert continuity_penalty(jagged, mask[:1], 1).tolist() == [0.25]


def test_skewed_the_predictor_learns_from_the_first_sentence_alone_and_the_generator_stays_as_drawn():
    technique = Skewing(skewed=2)
    make = partial(model_for, technique)
    run = make_run(technique, make)
    trained = run.execute()
    assert [record["stage"] for record in run.history] == ["skewed", "skewed"]
    torch.manual_seed(derive_seed(0, 0))
    fresh, result = weights(make()), weights(trained)
    assert all(result[name] == fresh[name] for name in fresh if name.startswith("generator"))
    assert result["predictor.heads.hard.weight"] != fresh["predictor.heads.hard.weight"]


@pytest.mark.parametrize("kind", [Rnp, ThreePlayer])
def test_the_last_epoch_is_kept_where_as_many_tokens_are_selected_as_it_likes_and_else_the_best(kind):
    assert [stage.select for stage in kind(granularity="token", share=None, skewed=1).stages(0)] == ["last", "last"]
    assert [stage.select for stage in kind(granularity="token").stages(0)] == ["best"]
    assert [stage.select for stage in kind(granularity="sentence", share=None).stages(0)] == ["best"]


def test_skewed_words_after_the_first_sentence_change_nothing():
    """Id 6 ends a sentence."""
    model, first = model_for(Rnp(), dtype=torch.float64).eval(), FirstSentence()
    batch, other = texts([3, 4, 6, 5, 9], label=[0]), texts([3, 4, 6, 8, 2], label=[0])
    assert torch.equal(first.loss(model, batch, LossContext())["task"], first.loss(model, other, LossContext())["task"])
    moved = texts([3, 5, 6, 5, 9], label=[0])
    assert not torch.equal(
        first.loss(model, moved, LossContext())["task"], first.loss(model, batch, LossContext())["task"]
    )


@pytest.mark.parametrize("technique", [Rnp(), A2R(), Rnp(granularity="token", skewed=1)])
def test_without_several_sentences_per_text_an_error_names_the_problem(technique):
    problem = technique.sentence_problem(torch.zeros_like(ENDS))
    assert re.search("no token of the vocabulary ends a sentence .* granularity=token", problem)
    assert technique.sentence_problem(ENDS) is None


def test_tokens_need_no_sentences():
    model = A2R(granularity="token").build(table, Architecture(), 2, False, lambda: torch.zeros_like(ENDS))
    assert isinstance(model, Rationalizer)
    assert not A2R(granularity="token").reads_sentences
    assert Rnp(granularity="token", skewed=1).reads_sentences


@pytest.mark.parametrize("technique", [Rnp(), A2R()])
def test_what_a_rationalizer_has_not_is_refused_and_not_ignored(technique: Technique):
    assert "attention=sparsemax" in (technique.validate(Architecture(attention="sparsemax"), 2) or "")
    assert "decoder=mlp" in (technique.validate(Architecture(decoder="mlp"), 2) or "")
    assert technique.validate(Architecture(), 2) is None
    assert not technique.reads_pairs


KINDS: dict[type[RationalizingTechnique], list[dict[str, object]]] = {
    Rnp: [
        {"granularity": granularity, "estimator": estimator, **rest}
        for granularity, rest in (("sentence", {}), ("token", {}), ("token", {"share": None}))
        for estimator in ("reinforce", "straight-through", "gumbel")
    ]
    + [{"shared_encoder": True, "estimator": estimator} for estimator in ("reinforce", "gumbel")],
    A2R: [{"granularity": g, "variant": v} for g in ("sentence", "token") for v in ("paper", "released")],
    ThreePlayer: [{"granularity": "sentence"}, {}, {"share": None}, {"share": None, "continuity": 0.0}],
    HardKuma: [{}, {"spans": 2}, {"sparsity": 0.0}, {"sparsity": 0.0, "spans": 2}, {"continuity": 0.0}],
}
OTHERS: dict[str, object] = {
    "share": 0.5,
    "spans": 1,
    "sparsity": 2.0,
    "continuity": 3.0,
    "exploration": 0.7,
    "temperature": 0.5,
    "generator_learning_rate": 0.3,
    "predictor_learning_rate": 0.2,
    "changes": 0.5,
    "skewed": 2,
    "agreement": 4.0,
    "right": 0.7,
    "lead": 0.3,
}
STATE = {"granularity", "estimator", "variant", "shared_encoder", "costs", "averages"}
"""No settings, or those that distinguish one kind from another."""


def decided(technique: RationalizingTechnique) -> Rationalizer:
    """A model with probabilities far from even, whose heads have different outputs for different texts."""
    torch.manual_seed(0)
    model = model_for(technique, "average", torch.float64, dropout=0.0).eval()
    assert isinstance(model, Rationalizer)
    with torch.no_grad():
        model.generator.scorer.weigh.weight.mul_(20)
        for head in model.predictor.heads.values():
            head.weight.mul_(20)
    return model


def does(technique: RationalizingTechnique, model: Rationalizer) -> tuple[object, ...]:
    """All that a technique can do to a training: who moves how, what is selected, the terms and each player's pull.

    Texts of 60 words, which coins break into more than ten pieces.
    """
    rows = torch.randint(1, len(ENDS), (9, 60), generator=torch.Generator().manual_seed(0)).tolist()
    model.selection_config = technique.selection_config()
    batch, players, results = texts(*rows, label=[0, 1, 1] * 3), technique.players(), []
    for seed in range(2):
        terms = technique.loss(model, batch, LossContext(key=RandomKey(seed), progress=0.5))
        results.append({name: values.tolist() for name, values in terms.items()})
        for player in players:
            loss = sum(terms[name].sum() for name in player.terms or terms)
            moved = {
                name: parameter
                for name, parameter in model.named_parameters()
                if f"model.{name}".startswith(player.trains)
            }
            pulls = torch.autograd.grad(loss, list(moved.values()), allow_unused=True, retain_graph=True)
            results.append({name: pull.sum() for name, pull in zip(moved, pulls, strict=True) if pull is not None})
    return players, technique.stages(0), model(batch).selected.tolist(), results


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize(("kind", "how"), [(kind, how) for kind, every in KINDS.items() for how in every], ids=str)
def test_just_those_settings_are_refused_that_do_nothing(kind: type[RationalizingTechnique], how: dict[str, object]):
    """Each is set to something else: where all stays as it was there is a sentence, and elsewhere none."""
    usual = kind(**how)
    assert usual.validate(Architecture(), 2) is None, "what is usual is never refused"
    model = decided(usual)
    before = does(usual, model)
    assert {*field_names(kind)} <= {*OTHERS, *STATE}, "or a new setting is not tried"
    for name in sorted({*OTHERS} & {*field_names(kind)} - {*how}):
        other = dataclasses.replace(usual, **{name: OTHERS[name]})
        why = other.validate(Architecture(), 2)
        assert (why is None) == (does(other, model) != before), name
        if why is not None:
            assert why.startswith(f"{name}={OTHERS[name]} has no effect with ")
            assert why.endswith(": leave it out")


@pytest.mark.parametrize(
    ("technique", "name"),
    [(Rnp(costs=(5.0,)), "costs"), (ThreePlayer(costs=(5.0,)), "costs"), (HardKuma(averages=(1.0, 0.0)), "averages")],
)
def test_what_training_fills_in_is_not_for_a_user_to_set(technique: RationalizingTechnique, name: str):
    assert technique.validate(Architecture(), 2) == f"{name} is set by training: leave it out"


HALVED = [Rnp(), Rnp(granularity="token"), A2R(), ThreePlayer(), ThreePlayer(granularity="sentence"), HardKuma()]


@pytest.mark.parametrize(
    "technique", HALVED, ids=lambda technique: f"{type(technique).__name__} {technique.granularity}"
)
def test_in_mixed_precision_probabilities_and_the_terms_of_the_generator_are_in_full_precision(
    technique: RationalizingTechnique,
):
    """In half precision, probabilities near 1 are multiples of 1/256, and costs that differ by less are the same."""
    model = model_for(technique, "average", dropout=0.0)
    assert isinstance(model, Rationalizer)
    batch = texts([3, 4, 6, 5, 8, 13, 9], [3, 6, 2], label=[0, 1])
    with torch.autocast("cpu", torch.bfloat16):
        assert model.predictor.heads["hard"](torch.ones(1, model.predictor.encoder.size)).dtype == torch.bfloat16
        looked, terms = model.generate(batch), technique.loss(model, batch, LossContext(key=RandomKey(1)))
    assert looked.scores.dtype == looked.probability.dtype == torch.float32
    for name, values in terms.items():
        assert values.dtype == torch.float32, name
        assert values.isfinite().all(), name


def table() -> Identity:
    return Identity(torch.zeros(len(ENDS), 2))
