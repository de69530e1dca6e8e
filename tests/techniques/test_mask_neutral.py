"""Mask-neutral learning: what its weights do where P(y|m) is known, whom they reach, and when they do nothing."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from contract.tiny import assert_close
from steadygaze.core.maths import label_leakage
from steadygaze.core.random_key import RandomKey
from steadygaze.techniques.mask_neutral import MaskNeutral
from steadygaze.techniques.technique import LossContext
from steadygaze.training.training_loop import StageLoop
from techniques.byhand import LN3, PEAKED, by_hand, texts
from training.toys import Listener, corpus, make_model, make_run

WIDE = {"low": 1e-9, "high": 1e9, "scaled": False}
"""No clipping, no scaling: the weights of Fact 1 itself."""


class Known(nn.Module):
    """A probe that need not learn: the same P(y|m) for every text; records its inputs."""

    def __init__(self, *probs: float) -> None:
        super().__init__()
        self.probs = nn.Parameter(torch.tensor(probs, dtype=torch.float64))
        self.seen = None

    def forward(self, mask):
        self.seen = mask
        return self.probs.log().expand(len(mask), -1)


def biased(rng):
    """P(x, m, y) of 5 texts, 4 masks and 3 labels; as the paper has it, a draw S keeps (m, y) whatever x is.

    Q(x, m, y) = Q(x, y) Q(m): masks that know nothing of the label.  P = Q · s(m, y) / const.
    """
    texts_, masks = rng.dirichlet(np.ones(15)).reshape(5, 3), rng.dirichlet(np.ones(4))
    q = texts_[:, None, :] * masks[None, :, None]
    keep = rng.uniform(0.05, 1.0, (4, 3))
    keep /= keep @ q.sum((0, 1))[:, None]  # the masks and, below, the labels are as frequent in P as in Q
    for _ in range(2000):
        keep *= q.sum((0, 1)) / (q * keep).sum((0, 1))
        keep *= (masks / (q * keep).sum((0, 2)))[:, None]
    return torch.from_numpy(q), torch.from_numpy(q * keep)


def of(p):
    """P(y), and log P(y|m) by mask.  (3,), (4,3)"""
    pair = p.sum(0)
    return pair.sum(0), (pair / pair.sum(-1, keepdim=True)).log()


@pytest.mark.parametrize("seed", range(5))
def test_fact_1_the_weighted_loss_is_that_of_labels_which_masks_do_not_know(seed):
    """E_P[w ℓ] = E_Q[ℓ] for whatever ℓ(x, m, y), summed over all 60 outcomes; unweighted it is another number."""
    rng = np.random.default_rng(seed)
    q, p = biased(rng)
    assert_close(p.sum(0).sum(0), q.sum(0).sum(0))
    assert_close(p.sum(0).sum(1), q.sum(0).sum(1))
    lost = torch.from_numpy(rng.exponential(size=(5, 4, 3)))
    prior, known = of(p)
    w = label_leakage.mask_neutral_weights(prior, known, torch.zeros(4, 3), **WIDE)
    assert float((p * w * lost).sum()) == pytest.approx(float((q * lost).sum()), abs=1e-9)
    assert abs(float((p * lost).sum()) - float((q * lost).sum())) > 1e-3


def test_where_the_mask_decides_the_label_of_balanced_classes_every_weight_is_one():
    known = torch.tensor([[1 - 1e-9, 1e-9], [1e-9, 1 - 1e-9]] * 3, dtype=torch.float64).log()
    prior, target = torch.tensor([0.5, 0.5], dtype=torch.float64), torch.eye(2).repeat(3, 1).double()
    w = (label_leakage.mask_neutral_weights(prior, known, target) * target).sum(-1)
    assert_close(w, torch.ones(6, dtype=torch.float64))


def context_of(probe, *prior):
    return LossContext(modules={"probe": probe}, key=RandomKey(0), prior=torch.tensor(prior, dtype=torch.float64))


def test_the_loss_by_hand():
    """Attention (¾, ¼), p(1) = 27/28 of both texts; labels 1 and 0, P(y) = (¼, ¾), the probe predicts (½, ½) for both.

    Ratios ¾ : ½ = 3/2 for label 1, ¼ : ½ = 1/2 for label 0; their mean is 1, so they stay.  The probe sees 2 · (¾, ¼).
    """
    model, probe = by_hand(PEAKED), Known(0.5, 0.5)
    terms = MaskNeutral().loss(model, texts([1, 2], [1, 2], label=(1, 0)), context_of(probe, 0.25, 0.75))
    assert_close(terms["task"], torch.tensor([-1.5 * math.log(27 / 28), -0.5 * math.log(1 / 28)], dtype=torch.float64))
    assert_close(terms["mask"], torch.full((2,), math.log(2), dtype=torch.float64))
    assert_close(probe.seen, torch.tensor([[1.5, 0.5]] * 2, dtype=torch.float64))
    distance = MaskNeutral(weigh="downstream").loss(
        model, texts([1, 2], [1, 2], label=(1, 0)), context_of(probe, 0.25, 0.75)
    )
    assert_close(distance["task"], terms["task"])
    assert_close(distance["unweighted"], -torch.tensor([27 / 28, 1 / 28], dtype=torch.float64).log())


def test_three_classes_and_clipping():
    """P(y) = ⅓ each; the probe predicts (0.001, 0.499, 0.5): 333 is clipped to 10, ⅔ and 0.668 stay; then mean one."""
    model, probe = by_hand([(0, 0)], [(0, 0)] * 3), Known(0.001, 0.499, 0.5)
    terms = MaskNeutral().loss(model, texts([1], [1], [1], label=(0, 1, 2)), context_of(probe, *[1 / 3] * 3))
    ratio = torch.tensor([10, 1 / 3 / 0.499, 2 / 3], dtype=torch.float64)
    assert_close(terms["task"], ratio / ratio.mean() * LN3)


def test_no_player_receives_the_gradient_of_the_probe_and_the_probe_changes_no_player():
    model, probe = by_hand(PEAKED), Known(0.3, 0.7)
    batch = texts([1, 2], [2, 1, 1], label=(1, 0))
    terms = MaskNeutral().loss(model, batch, context_of(probe, 0.5, 0.5))
    own = list(model.parameters())
    pulls = torch.autograd.grad(terms["mask"].sum(), own, allow_unused=True, retain_graph=True)
    assert all(pull is None for pull in pulls)
    assert torch.autograd.grad(terms["task"].sum(), probe.probs, allow_unused=True) == (None,)


def test_the_prior_is_required():
    with pytest.raises(ValueError, match="needs the class frequencies"):
        MaskNeutral().loss(by_hand([(0, 0)]), texts([1]), LossContext(modules={"probe": Known(0.5, 0.5)}))


@pytest.mark.parametrize("weigh", ["joint", "downstream"])
def test_each_player_minimizes_its_own_terms_and_every_parameter_has_one_player(weigh):
    technique = MaskNeutral(weigh=weigh)
    model = make_model()
    names = [f"model.{name}" for name, _ in model.named_parameters()]
    names += [f"modules.probe.{name}" for name, _ in technique.modules(model)["probe"].named_parameters()]
    owners = {name: [p.name for p in technique.players() if name.startswith(p.trains)] for name in names}
    assert all(len(owner) == 1 for owner in owners.values())
    terms_of = {player.name: player.terms for player in technique.players()}
    scorer = owners["model.scorer.weigh.weight"][0]
    assert terms_of[scorer] == (("task",) if weigh == "joint" else ("unweighted",))
    assert terms_of[owners["model.decoder.output.weight"][0]] == ("task",)
    assert terms_of["probe"] == ("mask",)


def test_downstream_leaves_the_scorer_the_gradient_of_vanilla():
    """One step of each player, seen through the loop: the scorer's pull is that of ℓ, the decoder's that of w ℓ."""
    technique, model = MaskNeutral(weigh="downstream"), by_hand([(LN3, 4 * LN3), (0, 0), (1.0, -2.0)])
    batch = texts([1, 2], [3, 2, 1], label=(1, 0))
    terms = technique.loss(model, batch, context_of(Known(0.2, 0.8), 0.5, 0.5))
    downstream, scorer, _ = technique.players()
    key, theta = model.scorer.key, model.decoder.output.weight
    plain = torch.nn.functional.cross_entropy(model(batch).logits, batch.gold)
    (own,) = torch.autograd.grad(StageLoop.total(terms, scorer, batch.weight), key, retain_graph=True)
    assert_close(own, torch.autograd.grad(plain, key, retain_graph=True)[0])
    (weighted,) = torch.autograd.grad(StageLoop.total(terms, downstream, batch.weight), theta, retain_graph=True)
    assert not torch.allclose(weighted, torch.autograd.grad(plain, theta)[0])


@pytest.mark.parametrize(("lost", "is_reported"), [(0.05, True), (0.08, False)])
def test_a_mask_that_decides_the_label_is_reported_at_the_end_of_training(lost, is_reported):
    """A tenth of ln 2 is 0.069."""

    class Settled(MaskNeutral):
        """As if the probe had this loss."""

        def warning_after_training(self, terms, prior):
            return super().warning_after_training({**terms, "mask": lost}, prior)

    listener = Listener()
    make_run(Settled(), watcher=listener, epochs=1).execute()
    mine = [message for message in listener.warned if "mask-neutral" in message]
    assert len(mine) == is_reported
    assert not is_reported or "a loss of 0.050 of 0.693 nats" in mine[0]


def test_the_loop_passes_the_shares_of_the_classes():
    data = corpus()
    data = type(data)(data.text, None, np.where(np.arange(len(data)) % 4 == 0, 0, data.label), None)
    run = make_run(MaskNeutral(), data=data, epochs=1)
    assert run._prior.tolist() == pytest.approx((np.bincount(data.label) / len(data)).tolist())
    run.execute()
    assert run.history[-1]["terms"]["mask"] == pytest.approx(0.69, abs=0.15)
