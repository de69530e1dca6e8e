"""What rationalising techniques share: selections are drawn as they say, and penalties are what they say."""

import math
from functools import partial

import pytest
import torch

from contract.tiny import assert_close
from objective.byhand import Identity, texts
from steadygaze.config import build
from steadygaze.errors import UserError
from steadygaze.maths.chance import Chance
from steadygaze.model import Architecture
from steadygaze.objective.a2r import A2R
from steadygaze.objective.rationalising import FirstSentence, broken, draw, missed, passed, toss
from steadygaze.objective.rnp import Rnp
from steadygaze.objective.technique import Given, Stage, Technique
from steadygaze.rationaliser import Looked, Rationaliser
from steadygaze.train.seed import derive
from steadygaze.types import Batch
from train.toys import ENDS, make_run, model_for, weights

MANY = 20_000
SPREAD = 4.5
"""Standard errors: one draw in a hundred thousand lies further out."""


class Skewing(Rnp):
    """Its first stage alone."""

    def stages(self, seed: int) -> tuple[Stage, ...]:
        return super().stages(seed)[:1]


def looked(chances: list[float], real: list[bool], many: int = MANY) -> tuple[Looked, Batch]:
    """The same units in so many texts, each with chance of its own."""
    probability = torch.tensor([chances] * many, dtype=torch.float64)
    exists = torch.tensor([real] * many)
    ids = torch.ones_like(exists, dtype=torch.long)
    batch = Batch(ids, exists, exists, torch.arange(many))
    return Looked(probability.unsqueeze(-1), None, exists, probability, probability), batch


def assert_frequent(found: torch.Tensor, expected: list[float]) -> None:
    for frequency, chance in zip(found.double().mean(0).tolist(), expected, strict=True):
        assert abs(frequency - chance) <= SPREAD * math.sqrt(chance * (1 - chance) / MANY)


@pytest.mark.parametrize("exploration", [0.0, 0.3, 0.9])
def test_units_are_drawn_as_often_as_their_chances_and_exploration_say_and_empty_ones_never(exploration):
    """Three real units and two empty ones: exploration is shared by the three."""
    given, batch = looked([0.7, 0.2, 0.1, 0.0, 0.0], [True] * 3 + [False] * 2)
    drawn = draw(given, batch, Chance(1), exploration)
    expected = [(1 - exploration) * p + exploration / 3 for p in (0.7, 0.2, 0.1)]
    assert torch.equal(drawn.units.sum(-1), torch.ones(MANY, dtype=torch.long))
    assert_frequent(drawn.units, [*expected, 0.0, 0.0])
    assert_close(drawn.chance, torch.tensor(expected, dtype=torch.float64).log()[drawn.units.int().argmax(-1)])


def test_of_a_text_without_units_none_is_drawn_and_nothing_is_said_of_its_chance():
    given, batch = looked([0.0, 0.0], [False, False], many=3)
    for drawn in (draw(given, batch, Chance(1), 0.2), toss(given, batch, Chance(1), 0.2, 0.5)):
        assert not drawn.units.any()
        assert not drawn.chance.any()
        assert drawn.noisy.isfinite().all()


@pytest.mark.parametrize("share", [None, 0.1])
def test_coins_fall_as_often_as_they_say(share):
    given, batch = looked([0.9, 0.3, 0.0], [True, True, False])
    drawn = toss(given, batch, Chance(2), 0.2, share)
    expected = [0.8 * p + 0.2 * (share or 0.5) for p in (0.9, 0.3)]
    assert_frequent(drawn.units, [*expected, 0.0])
    p = torch.tensor(expected, dtype=torch.float64)
    assert_close(drawn.chance, torch.where(drawn.units[:, :2], p, 1 - p).log().sum(-1))
    assert torch.equal((drawn.noisy > 0) & given.real, drawn.units)


def test_a_text_draws_the_same_in_any_company():
    given, batch = looked([0.3, 0.3, 0.4], [True] * 3, many=8)
    alone = Looked(
        *(None if v is None else v[5:6] for v in (given.hidden, None, given.real, given.scores, given.probability))
    )
    row = Batch(*(v[5:6] for v in (batch.ids, batch.present, batch.mask, batch.index)))
    for way in (partial(draw, exploration=0.2), partial(toss, exploration=0.2, share=0.2)):
        assert torch.equal(way(alone, row, Chance(3)).units[0], way(given, batch, Chance(3)).units[5])


def test_straight_through_is_exactly_what_was_drawn_with_the_gradient_of_the_soft():
    soft = torch.rand(50, 7, dtype=torch.float64).requires_grad_()
    units = torch.rand(50, 7) < 0.5
    selection = passed(units, soft)
    assert torch.equal(selection, units.double())
    (pull,) = torch.autograd.grad((selection * 3).sum(), soft)
    assert_close(pull, torch.full_like(pull, 3))


def test_penalties_by_hand():
    """1 0 1 1 of four tokens: a share of 3/4 and two changes; 1 1 of two: all, and none; then a text without words."""
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]).bool()
    chosen = torch.tensor([[1, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.float64)
    assert missed(chosen, mask, 0.25).tolist() == [0.5, 0.75, 0.0]
    assert missed(chosen, mask, None).tolist() == [0.75, 1.0, 0.0]
    assert broken(chosen, mask, None).tolist() == [0.5, 0.0, 0.0]
    assert broken(chosen, mask, 1).tolist() == [0.0, 0.0, 0.0]
    jagged = torch.tensor([[1, 0, 1, 0]], dtype=torch.float64)
    assert broken(jagged, mask[:1], 1).tolist() == [0.25]


def test_skewed_the_predictor_learns_from_the_first_sentence_alone_and_the_generator_stays_as_drawn():
    technique = Skewing(skewed=2)
    make = partial(model_for, technique)
    run = make_run(technique, make)
    trained = run.execute()
    assert [record["stage"] for record in run.history] == ["skewed", "skewed"]
    torch.manual_seed(derive(0, 0))
    fresh, found = weights(make()), weights(trained)
    assert all(found[name] == fresh[name] for name in fresh if name.startswith("generator"))
    assert found["predictor.heads.hard.weight"] != fresh["predictor.heads.hard.weight"]


def test_skewed_words_after_the_first_sentence_change_nothing():
    """Id 6 ends a sentence."""
    model, first = model_for(Rnp(), dtype=torch.float64).eval(), FirstSentence()
    one, other = texts([3, 4, 6, 5, 9], label=[0]), texts([3, 4, 6, 8, 2], label=[0])
    assert torch.equal(first.loss(model, one, Given())["task"], first.loss(model, other, Given())["task"])
    moved = texts([3, 5, 6, 5, 9], label=[0])
    assert not torch.equal(first.loss(model, moved, Given())["task"], first.loss(model, one, Given())["task"])


@pytest.mark.parametrize("technique", [Rnp(), A2R(), Rnp(granularity="token", skewed=1)])
def test_without_sentences_to_tell_apart_there_is_a_sentence_that_says_so(technique):
    with pytest.raises(UserError, match=r"no token of the vocabulary ends a sentence .* granularity=token"):
        technique.build(table, Architecture(), 2, False, torch.zeros_like(ENDS))


def test_tokens_need_no_sentences():
    model = A2R(granularity="token").build(table, Architecture(), 2, False, torch.zeros_like(ENDS))
    assert isinstance(model, Rationaliser)


@pytest.mark.parametrize("technique", [Rnp(), A2R()])
def test_what_a_rationaliser_has_not_is_refused_and_not_ignored(technique: Technique):
    assert "attention=sparsemax" in (technique.objection(Architecture(attention="sparsemax"), 2) or "")
    assert "decoder=mlp" in (technique.objection(Architecture(decoder="mlp"), 2) or "")
    assert technique.objection(Architecture(), 2) is None
    assert not technique.reads_pairs


def test_a_share_that_keeps_nothing_is_refused():
    with pytest.raises(UserError, match="'share': found 0; it should be greater than 0"):
        build(A2R, {"share": 0})


def table() -> Identity:
    return Identity(torch.zeros(len(ENDS), 2))
