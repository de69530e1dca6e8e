"""One step and ten steps against a manual computation; gradients per player; validation without side effects."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from steadygaze.core.errors import UserError
from steadygaze.core.random_key import derive_seed
from steadygaze.core.settings import settings
from steadygaze.data.batches import collate, shuffled
from steadygaze.models.classifier import Classifier
from steadygaze.techniques.technique import LossContext, Player, Stage
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.technique_loop import TechniqueLoop, validation_scores
from steadygaze.training.training_loop import StageLoop, fit_small_network
from training.toys import TRAINED_TEXTS, Anneal, Duel, Last, Recorder, corpus, make_model, make_run, watched, weights

ROUNDING = 1e-12  # float64: a few hundred operations of relative error 1e-16 each


def start(seed: int = 0, dtype: torch.dtype = torch.float32) -> Classifier:
    """The weights a run with this seed starts from; torch's own generator is left where training finds it."""
    torch.manual_seed(derive_seed(seed, 0))
    return make_model(dtype=dtype)


@pytest.mark.parametrize("weighted", [False, True])
def test_ten_steps_are_those_of_a_bare_loop_bit_for_bit(weighted: bool) -> None:
    """The clean-loss weight is exactly 1: nothing is added to, or scaled in, a plain PyTorch loop."""
    data = corpus(40, weight=np.linspace(0, 2, 40, dtype=np.float32) if weighted else None)
    recorder = Recorder()
    trained = make_run(Last(), watcher=recorder, data=data, epochs=2, clip=0.05, weight_decay=0.1).execute()

    model = start().train()
    fast = [*model.encoder.embedding.parameters(), *model.scorer.parameters()]
    decayed = [*model.encoder.text.parameters(), *model.decoder.parameters()]
    groups = [{"params": fast}, {"params": decayed, "weight_decay": 0.1}]
    adam = torch.optim.Adam(groups, lr=0.01, amsgrad=True, fused=True)
    losses = []
    for epoch in range(2):
        for rows in shuffled(data, 8, (0, 0, epoch)):
            batch = collate(data, rows)
            each = cross_entropy(model(batch).logits, batch.label, reduction="none")
            losses.append(each.detach())
            adam.zero_grad()
            (each if batch.weight is None else each * batch.weight).mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            adam.step()
    assert len(losses) == len(recorder.steps) == 10
    assert all(torch.equal(ours["task"], bare) for ours, bare in zip(recorder.steps, losses, strict=True))
    assert weights(trained) == weights(model)


def adam_step(value: Tensor, gradients: list[Tensor], rate: float, decay: float) -> Tensor:
    """Adam with AMSGrad by its definition (Reddi et al. 2018, as PyTorch has it: the maximum is of v, before bias)."""
    m, v, highest = torch.zeros_like(value), torch.zeros_like(value), torch.zeros_like(value)
    for t, gradient in enumerate(gradients, start=1):
        gradient = gradient + decay * value
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        highest = torch.maximum(highest, v)
        value = value - rate * (m / (1 - 0.9**t)) / ((highest / (1 - 0.999**t)).sqrt() + 1e-8)
    return value


def clipped(gradients: list[Tensor], most: float) -> list[Tensor]:
    length = torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()
    return [gradient * min(1.0, most / (length.item() + 1e-6)) for gradient in gradients]


def test_each_player_takes_adams_step_on_its_own_terms_and_no_others() -> None:
    """One batch, two steps: in step 0 the model moves alone, in step 1 both do, each from its own gradient."""
    data, clip, decay = corpus(6), 0.05, 0.1  # so short a clip that both players' gradients are shortened
    kept: dict[str, nn.Module] = {}

    def make() -> Classifier:
        return make_model(dtype=torch.float64, dropout=0.0)

    technique = watched(Duel, lambda *inputs: kept.update(inputs[-1].modules))
    trained = make_run(technique, make, data=data, epochs=2, clip=clip, weight_decay=decay, select="last").execute()

    torch.manual_seed(derive_seed(0, 0))
    model = make()
    critic = Duel().modules(model)["critic"]
    names = [f"model.{name}" for name, _ in model.named_parameters()]
    first, second = list(model.parameters()), list(critic.parameters())
    batch = collate(data, shuffled(data, 8, (0, 0, 0))[0])

    def gradients() -> tuple[list[Tensor], list[Tensor]]:
        terms = Duel().loss(model, batch, LossContext(modules={"critic": critic}))
        mine = torch.autograd.grad((terms["task"] + terms["fool"]).mean(), first, retain_graph=True)
        others = torch.autograd.grad(terms["guess"].mean(), second)
        return clipped(list(mine), clip), clipped(list(others), clip)

    begun = [parameter.detach().clone() for parameter in (*first, *second)]
    seen: list[list[Tensor]] = []
    for _ in range(2):
        mine, others = gradients()
        seen.append(mine)
        for name, parameter, value, *steps in zip(names, first, begun, *seen, strict=False):
            decays = "scorer" not in name and "embedding" not in name
            parameter.data = adam_step(value, steps, 0.01, decay if decays else 0.0)
    for parameter, value, gradient in zip(second, begun[len(first) :], others, strict=True):
        parameter.data = adam_step(value, [gradient], 0.05, 0.0)

    for ours, hand in zip((*trained.parameters(), *kept["critic"].parameters()), (*first, *second), strict=True):
        torch.testing.assert_close(ours.detach(), hand.detach(), rtol=0, atol=ROUNDING)
    assert all(not torch.equal(now, then) for now, then in zip(first, begun, strict=False))


def test_a_player_that_does_not_minimize_a_term_is_not_moved_by_it() -> None:
    """With the task alone, the model is what it is without any critic; what the critic does is its own affair."""

    @settings
    class Deaf(Duel):
        def players(self) -> tuple[Player, ...]:
            model, critic = super().players()
            return replace(model, terms=("task",)), replace(critic, every=1, offset=0)

    assert weights(make_run(Deaf(), lambda: make_model(dropout=0.0)).execute()) == weights(
        make_run(Vanilla(), lambda: make_model(dropout=0.0)).execute()
    )


def test_a_player_moves_only_in_its_turn() -> None:
    seen: list[bytes] = []
    look = lambda *inputs: seen.append(b"".join(weights(inputs[-1].modules["critic"]).values()))  # noqa: E731
    make_run(watched(Duel, look), data=corpus(), epochs=1).execute()
    assert [now != then for then, now in pairwise(seen)] == [False, True, False, True, False]


def test_a_step_in_which_nobody_moves_changes_nothing() -> None:
    @settings
    class Rare(Last):
        def players(self) -> tuple[Player, ...]:
            return (Player(every=100, offset=99),)

    assert weights(make_run(Rare()).execute()) == weights(start())


def test_a_player_whose_parameters_a_stage_freezes_sits_it_out() -> None:
    @settings
    class Half(Duel):
        def stages(self, seed: int) -> tuple[Stage, ...]:
            return (Stage("critic", trains=("modules.",)),)

    recorder = Recorder()
    assert weights(make_run(Half(), watcher=recorder).execute()) == weights(start())
    before, after = (record["terms"] for record in recorder.epochs)
    assert after["task"] == pytest.approx(before["task"], rel=1e-6)
    assert after["guess"] != pytest.approx(before["guess"], rel=1e-6)


@pytest.mark.parametrize(
    ("terms", "weight", "expected"),
    [
        (None, None, 8.5),  # (1 + 4 + 2 + 10) / 2
        (("a",), None, 1.5),
        (("b",), [0.5, 1.5], 8.5),  # (0.5·4 + 1.5·10) / 2
        (None, [2.0, 0.0], 5.0),  # 2·(1 + 4) / 2
    ],
)
def test_a_player_minimizes_the_weighted_mean_of_its_terms(
    terms: tuple[str, ...] | None, weight: list[float] | None, expected: float
) -> None:
    values = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([4.0, 10.0])}
    weights = None if weight is None else torch.tensor(weight)
    assert StageLoop.total(values, Player(terms=terms), weights).item() == expected


def test_a_term_that_the_loss_does_not_give_is_an_error() -> None:
    with pytest.raises(KeyError, match="tusk"):
        StageLoop.total({"task": torch.ones(2)}, Player(terms=("task", "tusk")), None)


def test_the_mean_of_each_term_counts_every_text_once() -> None:
    recorder = Recorder()
    run = make_run(Vanilla(), watcher=recorder, epochs=1)
    run.execute()
    everything = torch.cat([terms["task"] for terms in recorder.steps])
    assert len(everything) == TRAINED_TEXTS
    assert run.history[0]["terms"]["task"] == pytest.approx(everything.mean().item(), rel=1e-6)


def test_validation_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []

    def watched(loop: TechniqueLoop) -> dict[str, Any]:
        state = loop.state

        def look() -> list[object]:
            modes = [module.training for module in state.networks.modules()]
            grads = [None if p.grad is None else p.grad.numpy().tobytes() for p in state.networks.parameters()]
            random_state = torch.get_rng_state().numpy().tobytes()
            return [weights(state.networks), modes, grads, random_state, state.technique, state.step]

        before = look()
        scores = validation_scores(loop.job, state.model, loop.reference)
        state.keep_if_best(scores["macro-f1"], scores["loss"])
        checked.append(look() == before)
        return scores

    monkeypatch.setattr(TechniqueLoop, "validate", watched)
    make_run(Anneal()).execute()
    assert checked == [True, True]


def test_validation_is_macro_f1_and_accuracy_over_every_text() -> None:
    """A model that always predicts 0, on 16 texts of which 8 are 0: accuracy 1/2, F1 2/3 and 0, macro 1/3.

    Logits 1 and 0: −ln σ(1) = .3133 where that is right, 1.3133 where it is wrong; the mean is .8133.
    """

    def make() -> Classifier:
        model = make_model()
        model.decoder.output.weight.data.zero_()
        model.decoder.output.bias.data.copy_(torch.tensor([1.0, 0.0]))
        return model

    run = make_run(Last(), make, learning_rate=1e-9)
    run.execute()
    assert run.history[0]["accuracy"] == 0.5
    assert run.history[0]["macro-f1"] == pytest.approx(1 / 3)
    assert run.history[0]["loss"] == pytest.approx(0.813262, abs=1e-6)


@pytest.mark.parametrize("kind", ["training", "validation"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_small_network_whose_loss_is_not_finite_has_diverged(kind: str, value: float) -> None:
    """The weights of step 0 are finite and have the lowest loss: without the error, they would be kept."""
    network, validations = nn.Linear(2, 1), iter([1.0, value if kind == "validation" else 0.5, 0.25])

    def loss(step: int) -> Tensor:
        return network.weight.sum() * 0 + (value if kind == "training" and step == 2 else 1.0)

    with pytest.raises(UserError, match=rf"training diverged: the {kind} loss of Linear is {value} at step 4\."):
        fit_small_network(
            network,
            loss,
            lambda step: (step,),
            lambda: next(validations),
            steps=8,
            interval=4,
            patience=1,
            learning_rate=0.1,
        )
