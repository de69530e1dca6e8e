"""CXPlain: networks learn the effect of removal, with bounds of their uncertainty."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from contract.tiny import assert_close, widened
from explainers.learned.products import PLAIN, STANDS, A, B, C, Products, data_of, inputs_of, table
from steadygaze.core.errors import UserError
from steadygaze.core.maths import distributions
from steadygaze.core.settings import build
from steadygaze.data.batches import collate
from steadygaze.explainers.learned.cxplain import (
    CXPlain,
    EffectTargets,
    Ensemble,
    FittedCXPlain,
    MemberLoop,
    mean_divergence,
    member_bounds,
    members,
    text_effects,
    text_member,
)
from steadygaze.explainers.learned.fitted_explainer import untrained_networks
from steadygaze.explainers.learned.l2x import InputBatch
from steadygaze.models.inference import Model
from steadygaze.training.progress import SilentWatcher

CPU = torch.device("cpu")

WORDS, GOOD, BAD = 30, 28, 29


class Planted(Model):
    """Predicts by the one of the two words that is present."""

    def forward(self, batch, embedded=None):
        sure = 3.0 * ((batch.ids == GOOD).sum(-1) - (batch.ids == BAD).sum(-1)).double()
        return SimpleNamespace(weights=None, logits=torch.stack([-sure, sure], -1))


def planted(many, seed):
    generator = np.random.default_rng(seed)
    texts = [generator.integers(6, 28, generator.integers(4, 9)) for _ in range(many)]
    for text in texts:
        text[generator.integers(len(text))] = generator.choice([GOOD, BAD])
    return data_of(*texts)


HOW = CXPlain(k=2, members=3, dimension=8, hidden=16, epochs=12, patience=3, learning_rate=0.01, epsilon=1e-3)


def weighed(many, seed, how=HOW):
    data = planted(many, seed)
    inputs = inputs_of(data, Planted(), table(WORDS))
    return EffectTargets(inputs, text_effects(how, Planted(), inputs))


@pytest.fixture(scope="module")
def fitted():
    torch.manual_seed(0)
    fit = Ensemble(
        HOW,
        partial(untrained_networks, HOW, WORDS + 1, 2),
        weighed(160, 0),
        weighed(60, 1),
        SilentWatcher(),
        CPU,
        seed=3,
    )
    return fit, fit.execute()


@pytest.mark.slow
def test_members_come_to_the_entropy_of_what_they_learn(fitted):
    """The word that matters is worth nearly all: KL falls from about ln 6 to nearly 0, and it is found in new texts."""
    fit, nets = fitted
    fresh = weighed(60, 2)
    untaught = fit.make()
    for net, before in zip(nets.values(), untaught.values(), strict=True):
        assert mean_divergence(HOW, net, fresh) < 0.05 < 1.0 < mean_divergence(HOW, before, fresh)
    batch = collate(fresh.inputs.data, np.arange(60))
    weights = FittedCXPlain(HOW, nets, table(WORDS)).explain(Planted(), batch).weights
    assert (batch.ids.gather(-1, weights.argmax(-1, keepdim=True)) >= GOOD).all()


def test_of_each_member_the_best_epoch_is_kept(fitted):
    fit, nets = fitted
    for number, net in enumerate(nets.values()):
        left = [record["divergence"] for record in fit.history if record["stage"] == f"member {number + 1}"]
        assert mean_divergence(HOW, net, fit.validation) == pytest.approx(min(left), abs=1e-6)
        assert len(left) <= HOW.epochs
        assert min(left) in left[-HOW.patience - 1 :]
    assert not any(module.training for module in nets.modules())


def test_the_members_differ_and_the_same_seed_gives_the_same(fitted):
    fit, nets = fitted
    first, second, _ = (net.score.weight for net in nets.values())
    assert not torch.equal(first, second)
    assert len({tuple(fit.bootstrap_counts(number)) for number in range(3)}) == 3
    assert all(fit.bootstrap_counts(number).sum() == 160 and 0 in fit.bootstrap_counts(number) for number in range(3))
    short = build(CXPlain, {"members": 2, "epochs": 1, "dimension": 4, "hidden": 4})
    make = partial(untrained_networks, short, WORDS + 1, 2)
    runs = [Ensemble(short, make, fit.train, fit.validation, SilentWatcher(), CPU, seed=1).execute() for _ in range(2)]
    for weights, other in zip(*(run.state_dict().values() for run in runs), strict=True):
        assert torch.equal(weights, other)


def test_an_input_that_is_drawn_twice_counts_twice():
    """One step of size 1 down the slope of the mean over rows 0, 0 and 2."""
    these = weighed(3, 8)
    torch.manual_seed(0)
    net, other = (text_member(HOW, WORDS + 1).double() for _ in range(2))
    other.load_state_dict(net.state_dict())
    loop = MemberLoop(Ensemble(HOW, nn.Identity, these, these, SilentWatcher(), CPU), net, 0)
    loop.counts, loop.state.optimizer = np.array([2, 0, 1]), torch.optim.SGD(net.parameters(), 1.0)
    learned = loop.train_epoch()["divergence"]
    lost = these.loss(HOW, other, np.array([0, 0, 2])).mean()
    lost.backward()
    torch.optim.SGD(other.parameters(), 1.0).step()
    assert learned == pytest.approx(lost.item(), rel=1e-6)
    for result, expected in zip(net.parameters(), other.parameters(), strict=True):
        assert_close(result, expected)


def test_one_member_alone_reads_every_input_once():
    alone = Ensemble(CXPlain(members=1), nn.Identity, weighed(5, 0), weighed(5, 0), SilentWatcher(), CPU)
    assert alone.bootstrap_counts(0).tolist() == [1] * 5


def test_what_a_member_minimizes_is_the_divergence_between_the_two():
    """By core/maths/distributions.py, from the softmax; a text's padding is in neither."""
    torch.manual_seed(0)
    these, net = weighed(6, 4), text_member(HOW, WORDS + 1).double()
    rows = np.arange(6)
    views = these.inputs.views(rows)
    inputs = net(views).masked_fill(~views.selectable, -torch.inf).softmax(-1)
    expected = distributions.kl(these.effects.shares(rows, views.selectable, HOW.epsilon), inputs, views.selectable)
    assert_close(these.loss(HOW, net, rows), expected)
    assert_close(mean_divergence(HOW, net, these), expected.mean().item())


def test_a_loss_that_is_no_number_is_a_sentence():
    wild = build(CXPlain, {"learning_rate": 10.0, "members": 1, "epochs": 3, "dimension": 4, "hidden": 4})

    class Endless(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, views, query=None):
            return (views.x * torch.nan) * self.scale

    with pytest.raises(UserError, match="lower learning_rate"):
        Ensemble(wild, partial(members, wild, Endless), weighed(5, 0), weighed(5, 0), SilentWatcher(), CPU).execute()


class Fixed(nn.Module):
    """Scores whose softmax is written down."""

    def __init__(self, *shares):
        super().__init__()
        self.shares = torch.tensor(shares, dtype=torch.float64)

    def forward(self, views, query=None):
        return self.shares.log().expand(len(views.x), -1)[:, : views.x.shape[1]]


THREE = nn.ModuleDict({"a": Fixed(0.2, 0.3, 0.5), "b": Fixed(0.6, 0.3, 0.1), "c": Fixed(0.3, 0.6, 0.1)})


def test_quantiles_by_hand():
    """Word 0: .2 .3 .6.  With `sure` .8 the low quantile is .1·2 of the way: .2 + .2·.1; the high one .3 + .8·.3."""
    views = InputBatch(torch.ones(1, 3).long(), torch.ones(1, 3).bool(), torch.empty(1, 0), torch.zeros(1))
    result = member_bounds(CXPlain(interval_level=0.8), THREE, views)[:, 0]
    assert_close(result[:, 0], torch.tensor([0.22, 0.3, 0.54], dtype=torch.float64))
    assert_close(result[1], torch.tensor([0.3, 0.3, 0.1], dtype=torch.float64))
    inputs = torch.stack([net.shares for net in THREE.values()])
    expected = torch.quantile(inputs, torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64), dim=0)
    assert_close(result, expected)


def test_the_top_weighted_words_or_all_have_a_weight():
    batch = collate(data_of([A, B, C]), np.arange(1))
    two, everything = (
        FittedCXPlain(how, THREE, table()).explain(Products(), batch).weights[0].tolist()
        for how in (CXPlain(k=2), CXPlain(k=2, top_words="all"))
    )
    assert two == pytest.approx([0.3, 0.3, 0.0])
    assert everything == pytest.approx([0.3, 0.3, 0.1])


def test_quantiles_are_in_order_and_a_single_member_is_sure(fitted):
    nets = fitted[1]
    data = planted(20, 5)
    batch = collate(data, np.arange(20))
    explainer = FittedCXPlain(build(CXPlain, {"top_words": "all"}), nets, table(WORDS))
    low, high = explainer.bounds(batch)
    middle = explainer.explain(Planted(), batch).weights
    assert ((low <= middle + 1e-12) & (middle <= high + 1e-12)).all()
    assert (low < high)[batch.mask].any()
    assert (low[~batch.mask] == 0).all()
    assert (high[~batch.mask] == 0).all()
    low, high = FittedCXPlain(HOW, nn.ModuleDict({"one": nets["member-0"]}), table(WORDS)).bounds(batch)
    assert torch.equal(low, high)


def test_an_explanation_is_the_same_in_any_batch_and_reads_the_black_box_once(fitted):
    data = planted(12, 6)
    explainer = FittedCXPlain(HOW, fitted[1], table(WORDS))
    batch = collate(data, np.arange(12))
    whole = explainer.explain(Planted(), batch).weights
    assert ((whole > 0).sum(-1) == HOW.k).all()
    torch.testing.assert_close(explainer.explain(Planted(), widened(batch, 3)).weights[:, : whole.shape[1]], whole)
    for row in range(12):
        weights = explainer.explain(Planted(), collate(data, np.array([row]))).weights[0]
        torch.testing.assert_close(weights, whole[row, : len(weights)], rtol=1e-5, atol=1e-6)
    model = Products()
    explainer.explain(model, collate(data_of([A, B], [C]), np.arange(2)))
    assert len(model.read) == 1


def test_the_pieces_of_a_word_share_its_weight():
    batch = collate(data_of([PLAIN, A, STANDS, B], specials=True), np.arange(1))
    nets = nn.ModuleDict({"a": Fixed(0.1, 0.2, 0.3, 0.4)})
    result = FittedCXPlain(CXPlain(), nets, table(continues=[STANDS])).explain(Products(), batch).weights[0]
    assert result.tolist() == pytest.approx([0.0, 1 / 6, 1 / 6, 2 / 3])


def test_k_larger_than_the_text_shows_all_of_it(fitted):
    batch = collate(planted(4, 7), np.arange(4))
    weights = FittedCXPlain(CXPlain(k=500), fitted[1], table(WORDS)).explain(Planted(), batch).weights
    assert torch.equal(weights > 0, batch.mask)


@pytest.mark.parametrize("wrong", [{"k": 0}, {"members": 0}, {"sure": 1.0}, {"removal": "mask"}, {"epsilon": 0.0}])
def test_settings_out_of_range_are_a_sentence(wrong):
    with pytest.raises(UserError, match=f"setting '{next(iter(wrong))}'"):
        build(CXPlain, wrong)
