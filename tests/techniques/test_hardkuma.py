"""HardKuma: its terms by hand, its gradient against quadrature, multipliers that move in training alone."""

import dataclasses
import math

import pytest
import torch
from scipy import integrate
from torch import Tensor
from torch.nn.functional import softplus
from torch.utils._python_dispatch import TorchDispatchMode

from contract.tiny import assert_close
from steadygaze.core.errors import UserError
from steadygaze.core.maths import kumaraswamy
from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import build
from steadygaze.core.types import Batch
from steadygaze.models import inference
from steadygaze.models.classifier import Architecture
from steadygaze.techniques.hardkuma import EDGE, HardKuma, HardKumaRationalizer
from steadygaze.techniques.technique import LossContext
from steadygaze.training.teacher_cache import cache_targets
from steadygaze.training.technique_loop import TechniqueLoop
from techniques.byhand import selecting_model, selecting_run, texts
from training.toys import Recorder, corpus, make_run, model_for

TEXTS = ([3, 4, 5, 1], [2], [6, 7, 8])


def gated(technique: HardKuma | None = None, encoder: str = "bilstm") -> HardKumaRationalizer:
    return selecting_model(technique or HardKuma(), encoder)


def terms_of(technique: HardKuma, model: HardKumaRationalizer, batch: Batch):
    return technique.loss(model, batch, LossContext(key=RandomKey(3)))


def all_alike(model: HardKumaRationalizer) -> None:
    """Every score 0: a = b = ln 2 whatever the token."""
    for scorer in (model.generator.scorer, model.generator.second):
        torch.nn.init.zeros_(scorer.weigh.weight)


def forced(model: HardKumaRationalizer, a: Tensor, b: Tensor) -> None:
    """These shapes, for all texts."""
    inverse = [shape.expm1().log() for shape in (a, b)]  # of the softplus
    model.generator.scorer.forward = lambda encoded: inverse[0]  # type: ignore[method-assign]
    model.generator.second.forward = lambda encoded: inverse[1]  # type: ignore[method-assign, union-attr]


class Even:
    """Instead of random numbers: the middles of as many cells as there are texts."""

    def uniform(self, rows: Tensor, width: int, dtype: torch.dtype) -> Tensor:
        return ((torch.arange(len(rows), dtype=dtype) + 0.5) / len(rows)).unsqueeze(-1).expand(-1, width)


def test_terms_by_hand():
    """a = b = ln 2: P(0) = 1 − (1 − (1/12)^.693)^.693 = .1275.

    Of n tokens 1 − P(0) are expected to show, and 2 P(0)(1 − P(0)) · (n − 1) / n changes for each.
    """
    technique = HardKuma(sparsity=2.0, continuity=3.0, share=0.25, changes=0.1)
    model, batch = gated(), texts(*TEXTS)
    all_alike(model)
    half = math.log(2)
    none = 1 - (1 - (1 / 12) ** half) ** half
    assert none == pytest.approx(0.1275, abs=1e-4)
    terms = terms_of(technique, model, batch)
    assert_close(terms["sparsity"], torch.full((3,), 2 * (1 - none - 0.25), dtype=torch.float64))
    ends = torch.tensor([3 / 4, 0.0, 2 / 3], dtype=torch.float64) * 2 * none * (1 - none)
    assert_close(terms["continuity"], 3 * (ends - 0.1))
    assert_close(terms["changes"], ends)


@pytest.mark.parametrize(("progress", "aim"), [(0.0, 0.9), (0.4, 0.9), (0.6, 0.55), (0.8, 0.2), (1.0, 0.2)])
def test_gates_are_led_from_nearly_all_open_to_the_share(progress: float, aim: float):
    """share .2: after .6, midway from .4 to .8, the aim is ½ (.9 + .2) = .55.  Too few cost as much as too many."""
    shown = torch.tensor([0.8725, aim - 0.1, aim, aim + 0.1], dtype=torch.float64)
    cost = HardKuma()._length_penalty(shown, progress)
    assert_close(cost, torch.tensor([5 * (0.8725 - aim) ** 2, 0.05, 0.0, 0.05], dtype=torch.float64))
    model, batch = gated(), texts(*TEXTS)
    all_alike(model)
    terms = HardKuma().loss(model, batch, LossContext(key=RandomKey(3), progress=progress))
    assert_close(terms["sparsity"], 5 * (terms["shown"] - aim) ** 2)
    assert_close(HardKuma(share=0.95)._length_penalty(shown, progress), 5 * (shown - 0.95) ** 2)


def test_one_piece_is_always_allowed():
    """Of 4 tokens, 2 / 4 changes cost nothing and .7 cost 5 · .2²; of 100, .02 and more than that count: 5 · .48²."""
    mask = torch.arange(100) < torch.tensor([[4], [4], [100], [100]])
    changes = torch.tensor([0.5, 0.7, 0.5, 0.01], dtype=torch.float64)
    assert_close(HardKuma()._breaks_penalty(changes, mask), torch.tensor([0.0, 0.2, 1.152, 0.0], dtype=torch.float64))


@pytest.mark.slow
def test_the_gradient_is_that_of_the_expected_loss():
    """One token: E ℓ = P(0) ℓ(0) + P(1) ℓ(1) + ∫ ℓ(z) f, by quadrature; its slope by differences of the two scores.

    What is drawn is even on (.001, .999): P(0) and P(1) lose .001 each, and all is divided by .998.
    """
    model, many = gated(encoder="average"), 20_000
    text, label = texts([3]), torch.ones(1, dtype=torch.long)

    def lost(z: float) -> float:
        with torch.no_grad():
            logits = model.read(text, torch.full((1, 1), z, dtype=torch.float64))
            return float(torch.nn.functional.cross_entropy(logits, label))

    def expected(first: float, second: float) -> float:
        a, b = (float(softplus(torch.tensor(score, dtype=torch.float64))) for score in (first, second))
        p0, p1 = 1 - (1 - (1 / 12) ** a) ** b, (1 - (11 / 12) ** a) ** b

        def inside(k: float) -> float:
            return lost(1.2 * k - 0.1) * a * b * k ** (a - 1) * (1 - k**a) ** (b - 1)

        middle, _ = integrate.quad(inside, 1 / 12, 11 / 12, epsabs=1e-10)
        return ((p0 - EDGE) * lost(0.0) + (p1 - EDGE) * lost(1.0) + middle) / (1 - 2 * EDGE)

    scores = torch.tensor([0.3, -0.2], dtype=torch.float64, requires_grad=True)
    model.generator.scorer.forward = lambda encoded: scores[0].expand(many, 1)  # type: ignore[method-assign]
    model.generator.second.forward = lambda encoded: scores[1].expand(many, 1)  # type: ignore[method-assign, union-attr]
    batch = texts(*[[3]] * many)
    task = HardKuma().loss(model, batch, LossContext(key=Even()))["task"].mean()  # type: ignore[arg-type]
    assert float(task.detach()) == pytest.approx(expected(0.3, -0.2), abs=1e-6)
    (result,) = torch.autograd.grad(task, scores)
    step = 1e-4
    slopes = [
        (expected(0.3 + step, -0.2) - expected(0.3 - step, -0.2)) / (2 * step),
        (expected(0.3, -0.2 + step) - expected(0.3, -0.2 - step)) / (2 * step),
    ]
    assert result.tolist() == pytest.approx(slopes, rel=1e-3)
    assert all(abs(slope) > 1e-3 for slope in slopes), "or nothing is compared"


def test_the_constraints_reach_the_generator_alone_and_the_task_reaches_both():
    model, batch = gated(), texts(*TEXTS)
    terms = terms_of(HardKuma(sparsity=1.0, continuity=1.0), model, batch)
    assert not terms["shown"].requires_grad
    parts = {"generator": list(model.generator.parameters()), "predictor": list(model.predictor.parameters())}
    for name in ("task", "sparsity", "continuity"):
        for part, parameters in parts.items():
            pulls = torch.autograd.grad(terms[name].sum(), parameters, retain_graph=True, allow_unused=True)
            has_gradient = any(pull is not None and pull.abs().max() > 0 for pull in pulls)
            assert has_gradient == (part == "generator" or name == "task"), (name, part)
    (second,) = torch.autograd.grad(terms["sparsity"].sum(), model.generator.second.weigh.weight)
    assert second.abs().max() > 0
    players = {player.name: player.terms for player in HardKuma().players()}
    assert players == {"predictor": ("task",), "generator": ("task", "sparsity", "continuity")}


def test_multipliers_by_hand():
    """share .2, changes .1.  Shown .6: c = ½ · .4 = .2, λ0 = 1e-5 · e^.01; then .1: c = ½ · .2 + ½ · (−.1) = .05."""
    technique = HardKuma(share=0.2, changes=0.1, sparsity=1e-5, continuity=1e-3)
    for shown, changes, average, sparsity in ((0.6, 0.1, 0.2, 0.01), (0.1, 0.1, 0.05, 0.0125)):
        statistics = {"shown": torch.tensor([shown, shown]), "changes": torch.tensor([changes, changes])}
        technique = technique.after_step(statistics)
        assert technique.averages == pytest.approx((average, 0.0), abs=1e-6)
        assert technique.sparsity == pytest.approx(1e-5 * math.exp(sparsity), rel=1e-6)
    assert technique.continuity == pytest.approx(1e-3, rel=1e-6)  # met exactly: it stays


def test_multipliers_stay_in_their_range_and_0_is_off():
    full = {"shown": torch.ones(2), "changes": torch.ones(2)}
    technique = HardKuma(sparsity=4.99, continuity=0.0, share=0.1)
    assert technique.after_step(full).after_step(full).sparsity == 5.0
    assert technique.after_step(full).continuity == 0.0
    none = {"shown": torch.zeros(2), "changes": torch.zeros(2)}
    technique = HardKuma(sparsity=1e-12, share=0.9)
    assert technique.after_step(none).sparsity == 1e-12
    assert HardKuma(continuity=1e-3).after_step(full).sparsity is None  # led: there is nothing to move
    astray = {"shown": torch.tensor([torch.nan]), "changes": torch.ones(1)}
    assert technique.after_step(astray) == technique


def test_multipliers_move_once_a_step_of_training_and_never_in_evaluation():
    technique = HardKuma(sparsity=1e-5, continuity=1e-5)
    watcher = Recorder()
    run = make_run(technique, lambda: model_for(technique), watcher=watcher)
    state = run._begin(technique.stages(0)[0], (0, 0))
    memory = cache_targets(technique, {}, run.job.train, run.job.accelerator.device)
    loop = TechniqueLoop(run.job, technique.stages(0)[0], state, LossContext(), memory)
    loop.validate()
    assert state.technique == technique
    loop.train_epoch()
    expected = technique
    for terms in watcher.steps:
        expected = expected.after_step(terms)
    assert len(watcher.steps) == 3
    assert state.technique == expected != technique
    before = dataclasses.asdict(state.technique)
    loop.validate()
    inference.logits(state.model, run.job.validation)
    assert dataclasses.asdict(state.technique) == before


def test_evaluation_shows_0_1_or_the_mean_and_repeats_itself():
    """Gates sure to be shut, sure to be open, and in between; of the last text the second token is padding."""
    model, batch = gated(), texts([3, 4, 5], [6])
    a = torch.tensor([[0.1, 4.0, 1.0], [4.0, 4.0, 4.0]], dtype=torch.float64)
    b = torch.tensor([[4.0, 0.1, 1.0], [0.1, 0.1, 0.1]], dtype=torch.float64)
    forced(model, a, b)
    z = model.select(batch, model.generate(batch))
    assert_close(z, torch.tensor([[0.0, 1.0, 0.5], [1.0, 0.0, 0.0]], dtype=torch.float64))
    output = model(batch)
    assert output.selected.tolist() == [[False, True, True], [True, False, False]]
    assert_close(output.probability, (1 - kumaraswamy.probability_zero(a, b)) * batch.mask)
    assert_close(output.weights.sum(-1), torch.ones(2, dtype=torch.float64))
    assert (output.weights[~output.selected] == 0).all()
    assert_close(output.logits, model.read(batch, z))
    assert not torch.equal(output.logits, model.read(batch, z > 0))  # half open is not open
    assert torch.equal(model(batch).logits, output.logits)


def test_with_spans_the_best_windows_of_the_share_are_selected():
    technique = HardKuma(share=0.4, spans=1)
    model, batch = gated(technique), texts([3, 4, 5, 6, 7])
    shut = torch.tensor([[1.0, 3.0, 0.2, 0.3, 0.9]], dtype=torch.float64)  # the higher b, the likelier 0
    forced(model, torch.full_like(shut, 0.5), shut)
    assert model(batch).selected.tolist() == [[False, False, True, True, False]]
    free = gated()
    forced(free, torch.full_like(shut, 0.5), shut)
    assert free(batch).selected.sum() > 2


@pytest.mark.parametrize("encoder", ["average", "cnn", "bigru"])
def test_a_shut_gate_lets_nothing_through_and_a_half_open_one_something(encoder):
    model, batch = gated(encoder=encoder), texts([3, 4, 5, 6])
    z = torch.tensor([[0.0, 0.4, 1.0, 0.0]], dtype=torch.float64)
    for place, other in ((0, 9), (3, 10), (1, 11), (2, 12)):
        changed = dataclasses.replace(
            batch, ids=batch.ids.clone().index_put_((torch.tensor([0]), torch.tensor([place])), torch.tensor(other))
        )
        same = torch.equal(model.read(changed, z), model.read(batch, z))
        assert same == (z[0, place] == 0)


def test_the_gates_of_a_text_are_made_all_at_once():
    """As many operations for fifty tokens as for five."""

    class Count(TorchDispatchMode):
        done = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.done += 1
            return func(*args, **(kwargs or {}))

    model, counts = gated(encoder="average"), []
    for width in (5, 50):
        with Count() as count:
            terms_of(HardKuma(), model, texts([3] * width))
        counts.append(count.done)
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize(("setting", "value"), [("granularity", "sentence"), ("exploration", 0.1)])
def test_what_makes_no_sense_is_refused_in_a_sentence(setting, value):
    assert HardKuma().validate(Architecture(), 2) is None
    why = HardKuma(**{setting: value}).validate(Architecture(), 2)
    assert why is not None
    assert setting in why
    with pytest.raises(UserError, match="share"):
        build(HardKuma, {"share": None})


@pytest.mark.slow
def test_it_learns_the_labels_and_what_to_leave_out():
    """The label is whether word 1 is among a text's words.  λ0 starts high: it has few steps to grow."""
    technique = HardKuma(share=0.4, sparsity=0.1, continuity=0.0, generator_learning_rate=0.005)
    held = corpus(80, seed=1)
    run = selecting_run(technique, validation=held, seed=1, epochs=8)
    model = run.execute()
    assert run.best_epoch["epoch"] == 8  # the last: the second epoch guesses as well, and selects nearly all
    assert (inference.logits(model, held).argmax(-1).numpy() == held.label).mean() > 0.9
    first, last = run.history[0]["terms"], run.history[-1]["terms"]
    assert last["task"] < 0.5 * first["task"]
    assert last["shown"] < 0.45 < 0.7 < first["shown"]
    read = inference.split_outputs(model, held)
    selected = read.weights > 0
    assert selected[(read.ids == 1) & read.mask].double().mean() > 0.9
    assert selected[read.mask].double().mean() < 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("multipliers", "least", "most"), [({}, 0.15, 0.6), ({"sparsity": 1e-5}, 0.99, 1.0)], ids=str)
def test_in_300_steps_led_gates_end_near_the_share_and_multipliers_have_not_begun(multipliers, least, most):
    """The label is whether word 1 is among a text's words; share .3, half of it to twice."""
    technique = HardKuma(share=0.3, continuity=0.0, generator_learning_rate=0.005, **multipliers)
    run = selecting_run(technique, seed=1, epochs=10)
    read = inference.split_outputs(run.execute(), held := corpus(80, seed=1))
    selected = read.weights > 0
    assert least <= selected[read.mask].double().mean() <= most
    assert selected[(read.ids == 1) & read.mask].double().mean() > 0.9
    assert (read.logits.argmax(-1).numpy() == held.label).mean() > 0.9


def test_the_best_epoch_is_kept_where_every_epoch_selects_as_much():
    assert [stage.select for stage in HardKuma(skewed=2).stages(0)] == ["last", "last"]
    assert [stage.select for stage in HardKuma(spans=3, sparsity=1e-3).stages(0)] == ["best"]
    assert [stage.select for stage in HardKuma(spans=3).stages(0)] == ["last"]  # early ones are led to more


@pytest.mark.parametrize(
    ("spans", "shown", "open_share"),
    [(2, 1.0, "100 %"), (2, 0.41, "41 %"), (2, 0.4, None), (2, 0.1, None), (2, 0.04, "4 %"), (None, 1.0, None)],
)
def test_with_spans_a_large_difference_between_open_gates_and_selected_words_is_reported(spans, shown, open_share):
    """share = .2: from .1 to .4 is near enough.  Without spans the gates themselves select."""
    result = HardKuma(spans=spans).warning_after_training({"task": 0.1, "shown": shown}, torch.tensor([0.5, 0.5]))
    if open_share is None:
        assert result is None
    else:
        assert (
            f"the gates were open for {open_share} of the words in training, but with spans, share=0.2 of them"
            in result
        )


def test_a_difference_between_gates_and_windows_is_reported_at_the_end_of_training():
    technique = HardKuma(spans=1, sparsity=0.0)
    run = make_run(technique, lambda: model_for(technique))
    with pytest.warns(UserWarning, match="the predictor was not trained on such selections") as caught:
        run.execute()
    assert len(caught) == 1  # once, not every epoch
