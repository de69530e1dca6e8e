"""Stages: what is trained, from which start, what changes, what is kept; and that the run has its own random state."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from steadygaze.core.errors import UserError
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.techniques.technique import LossContext, Stage, Technique
from steadygaze.techniques.vanilla import Vanilla
from training.toys import (
    SOUND,
    TOYS,
    Anneal,
    Distil,
    Duel,
    Last,
    Lens,
    Pretrain,
    Recorder,
    Return,
    corpus,
    interrupt,
    make_model,
    make_run,
    outcome,
    script,
    watched,
    weights,
)


def under(values: dict[str, bytes], *prefixes: str) -> dict[str, bytes]:
    return {name: value for name, value in values.items() if name.startswith(prefixes)}


def test_a_teacher_is_bit_for_bit_what_a_run_of_its_own_would_give() -> None:
    run = make_run(Distil(), seed=4)
    run.execute()
    alone = make_run(Vanilla(), seed=7)  # the stage adds 3
    assert weights(run.models["teacher"]) == weights(alone.execute())
    assert [record["terms"] for record in run.history[:2]] == [record["terms"] for record in alone.history]


def test_a_stage_that_starts_from_a_teacher_moves_nothing_but_what_it_trains() -> None:
    run = make_run(Distil())
    model, teacher = weights(run.execute()), weights(run.models["teacher"])
    assert under(model, "encoder", "decoder") == under(teacher, "encoder", "decoder")
    assert all(model[name] != teacher[name] for name in under(model, "scorer"))
    assert [(record["stage"], record["epoch"]) for record in run.history] == [
        ("teach", 1),
        ("teach", 2),
        ("learn", 1),
        ("learn", 2),
    ]


def test_a_model_given_to_a_later_stage_is_frozen_and_reads_without_dropout() -> None:
    seen: set[tuple[bool, ...]] = set()

    def look(technique: Technique, model: Classifier, batch: Batch, context: LossContext) -> None:
        teacher = context.models["teacher"]
        moving = [parameter for parameter in teacher.parameters() if parameter.requires_grad]
        seen.add((teacher.training, bool(moving), *(part.training for part in model.children())))

    make_run(watched(Distil, look), epochs=1).execute()
    encoder = decoder = False  # frozen in this stage, so read as they will be read later
    scorer = attention = True
    assert seen == {(False, False, encoder, scorer, attention, decoder)}


def test_the_same_model_is_continued_by_a_later_stage() -> None:
    held: list[dict[str, bytes]] = []
    model = weights(make_run(watched(Pretrain, lambda _, model, *__: held.append(weights(model)))).execute())
    first, second = held[0], held[3]  # three steps of one epoch come first
    assert under(second, "scorer") == under(first, "scorer")
    assert not set(under(second, "encoder", "decoder").values()) & set(under(first, "encoder", "decoder").values())
    assert under(model, "encoder", "decoder") == under(second, "encoder", "decoder")
    assert under(model, "scorer") != under(second, "scorer")


def test_a_model_can_be_taken_up_again_after_another_was_trained_from_it() -> None:
    run = make_run(Return())
    model = weights(run.execute())
    assert set(run.models) == {"model", "rival"}
    assert [sorted(record["terms"]) for record in run.history] == [["task"], ["model", "task"], ["rival", "task"]]
    assert model != weights(run.models["rival"])


def test_a_start_that_no_stage_has_made_is_an_error() -> None:
    @settings
    class Lost(Vanilla):
        def stages(self, seed: int) -> tuple[Stage, ...]:
            return (Stage("train", start="nobody"),)

    with pytest.raises(KeyError, match="nobody"):
        make_run(Lost()).execute()


@pytest.mark.sweep(keep=("committee", "duel", "anneal"))
@pytest.mark.parametrize("name", TOYS)
def test_the_same_seed_gives_the_same_bits_and_another_gives_others(name: str) -> None:
    first, again, other = (outcome(make_run(TOYS[name], seed=seed, epochs=1)) for seed in (5, 5, 6))
    assert first == again
    assert not set(first[0].values()) & {v for k, v in other[0].items() if not k.endswith("bias")}


@pytest.mark.parametrize("name", ["vanilla", "anneal"])
def test_training_neither_reads_nor_changes_the_callers_random_state(name: str) -> None:
    expected = outcome(make_run(TOYS[name], epochs=1))
    torch.manual_seed(99)
    before, numpy_before = torch.get_rng_state(), np.random.get_state()
    assert outcome(make_run(TOYS[name], epochs=1)) == expected
    assert torch.equal(torch.get_rng_state(), before)
    assert all(np.array_equal(now, then) for now, then in zip(np.random.get_state(), numpy_before, strict=True))


def test_the_callers_random_state_is_restored_after_an_interruption() -> None:
    before = torch.get_rng_state()
    interrupt(Recorder(steps=1), Vanilla())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.sweep(keep=("vanilla", "committee", "duel"))
@pytest.mark.parametrize("name", TOYS)
def test_frozen_vectors_stay_as_they_were_and_stay_frozen(name: str) -> None:
    vectors = torch.randn(20, 5)

    def make() -> Classifier:
        model = make_model(train_vectors=False)
        model.encoder.embedding.weight.data.copy_(vectors)
        return model

    model = make_run(TOYS[name], make).execute()
    assert torch.equal(model.encoder.embedding.weight, vectors)
    frozen = [key for key, parameter in model.named_parameters() if not parameter.requires_grad]
    assert frozen == ["encoder.embedding.weight"]
    assert not model.training


def test_state_is_moved_by_next_once_a_step_and_starts_afresh_in_every_run() -> None:
    sizes: list[float] = []
    technique, recorder = watched(Anneal, lambda technique, *_: sizes.append(technique.size)), Recorder()
    run = make_run(technique, watcher=recorder)
    run.execute()
    losses = [terms["task"].mean().tanh().item() for terms in recorder.steps]
    assert sizes[0] == 1.0
    assert sizes[1:] == [size * (1 - 0.1 * loss) for size, loss in zip(sizes, losses, strict=True)][:-1]
    assert run.technique == technique


def test_progress_rises_from_step_to_step_toward_one() -> None:
    shares: list[float] = []
    make_run(watched(Vanilla, lambda *inputs: shares.append(inputs[-1].progress))).execute()
    assert shares == [step / 6 for step in range(6)]


def scored(patch: pytest.MonkeyPatch, *scores: float) -> list[dict[str, bytes]]:
    """Validation with these macro-F1 in turn; the weights of each epoch, as they come."""
    return script(patch, *({"macro-f1": score} for score in scores))


def selected(stage: str, epoch: int, score: float) -> dict[str, Any]:
    return {"stage": stage, "epoch": epoch, "macro-f1": score, "constant_label": None, "attention": SOUND}


def test_the_best_epoch_is_kept_the_earlier_of_two_equals_and_patience_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = scored(monkeypatch, 0.5, 0.7, 0.7, 0.6, 0.55, 0.9)
    recorder = Recorder()
    run = make_run(Vanilla(), epochs=6, patience=3, watcher=recorder)
    model = run.execute()
    assert len(seen) == 5  # three epochs without a better one than the second
    assert weights(model) == seen[1]
    assert seen[2] != seen[1]
    assert run.best_epoch == selected("train", 2, 0.7)
    assert (len(recorder.epochs), recorder.skipped) == (5, 1)


def test_of_equal_scores_the_smaller_loss_is_kept_and_being_surer_does_not_prolong_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A better score counts, whatever its loss; the fourth epoch is the surest of three as good as each other."""
    scores, losses = [0.5, 0.7, 0.7, 0.7, 0.6, 0.9], [0.1, 0.9, 0.95, 0.6, 0.2, 0.1]
    seen = script(monkeypatch, *({"macro-f1": f1, "loss": loss} for f1, loss in zip(scores, losses, strict=True)))
    run = make_run(Vanilla(), epochs=6, patience=3)
    assert weights(run.execute()) == seen[3]
    assert (len(seen), run.best_epoch["epoch"]) == (5, 4)


@pytest.mark.parametrize(
    ("scores", "run", "kept"),
    [
        ([0.3, 0.3, 0.3, 0.3, 0.8, 0.7, 0.7, 0.9], 7, 5),  # nothing had begun before the fifth
        ([0.6, 0.3, 0.5, 0.4, 0.3, 0.3, 0.3, 0.7], 8, 8),  # luck, then guesses: it still had to begin
        ([0.6, 0.3, 0.55, 0.4, 0.55, 0.3, 0.3, 0.7], 5, 1),  # the third and the fifth count, and are worse
        ([0.3] * 8, 8, 1),
    ],
)
def test_epochs_no_better_than_guessing_do_not_count_against_patience(
    monkeypatch: pytest.MonkeyPatch, scores: list[float], run: int, kept: int
) -> None:
    """Two classes: guessing is a macro-F1 of 1/2."""
    seen = scored(monkeypatch, *scores)
    done = make_run(Vanilla(), epochs=8, patience=2)
    assert weights(done.execute()) == seen[kept - 1]
    assert (len(seen), done.best_epoch["epoch"]) == (run, kept)


def test_a_stage_may_keep_its_last_epoch_and_then_patience_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = scored(monkeypatch, 0.9, 0.5, 0.4, 0.3)
    run = make_run(Last(), epochs=4, patience=1)
    assert weights(run.execute()) == seen[3]
    assert run.best_epoch == selected("train", 4, 0.3)


def test_what_was_kept_is_of_the_last_stage_of_the_result_even_where_an_earlier_one_scored_better(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @settings
    class Afterward(Distil):
        def stages(self, seed: int) -> tuple[Stage, ...]:
            return *super().stages(seed), Stage("after", technique=Vanilla(), model="other")

    scores = [0.9, 0.8, 0.4, 0.5, 0.7, 0.6]  # teacher, result, other
    scored(monkeypatch, *scores)
    whole = make_run(Afterward())
    whole.execute()
    assert whole.best_epoch == selected("learn", 2, 0.5)
    scored(monkeypatch, *scores)
    interrupt(Recorder(epochs=5), Afterward(), folder=tmp_path)
    resumed = make_run(Afterward(), folder=tmp_path, resume=True)
    scored(monkeypatch, *scores[5:])
    resumed.execute()
    assert resumed.best_epoch == whole.best_epoch


@pytest.mark.parametrize("epochs", [0, -1])
def test_a_stage_without_epochs_is_refused(epochs: int) -> None:
    with pytest.raises(ValueError, match=f"stage 'idle' has {epochs} epochs: set at least 1"):
        Stage("idle", epochs=epochs)


def test_an_auxiliary_network_goes_on_where_the_earlier_stage_kept_it_and_can_be_frozen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held: list[dict[str, bytes]] = []
    scored(monkeypatch, 0.9, 0.5, 0.3, 0.4, 0.6)  # of the first stage the first epoch is kept, with its lens
    run = make_run(watched(Lens, lambda *inputs: held.append(weights(inputs[-1].modules["lens"]))))
    run.execute()
    assert len({str(value) for value in held[:6]}) == 6  # moving in the first stage
    assert all(value == held[3] for value in held[6:])  # as it stood after one epoch of three steps
    assert {name: value.numpy().tobytes() for name, value in run.modules["lens"].items()} == held[3]


def test_an_auxiliary_network_that_a_later_stage_trains_moves_on_from_there() -> None:
    held: list[dict[str, bytes]] = []

    @settings
    class Again(Lens):
        def stages(self, seed: int) -> tuple[Stage, ...]:
            return Stage("one", epochs=1), Stage("two", epochs=1)

    make_run(watched(Again, lambda *inputs: held.append(weights(inputs[-1].modules["lens"])))).execute()
    steps = [{name: np.frombuffer(value, np.float32) for name, value in step.items()} for step in held]
    assert all(held[i] != held[i + 1] for i in range(5))
    # Adam with a step size of 0.01 moves no weight further than that; fresh weights would lie anywhere.
    assert all(np.abs(steps[3][name] - steps[2][name]).max() < 0.02 for name in ("weight", "bias"))


def test_a_loss_that_is_not_a_number_ends_in_a_sentence() -> None:
    @settings
    class Astray(Vanilla):
        def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
            return {"task": super().loss(model, batch, context)["task"] * float("nan")}

    with pytest.raises(UserError, match=r"training diverged: the task loss is nan in epoch 1.*learning_rate"):
        make_run(Astray()).execute()


def test_what_validation_holds_cannot_change_the_weights() -> None:
    run, other = (make_run(Duel(), select="last", validation=corpus(n, seed=n)) for n in (3, 30))
    assert weights(run.execute()) == weights(other.execute())
    assert [r["macro-f1"] for r in run.history] != [r["macro-f1"] for r in other.history]
