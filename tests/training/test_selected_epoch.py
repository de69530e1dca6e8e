"""Which epoch is selected if some are degenerate: collapsed weights, or the same label for every text."""

from pathlib import Path
from typing import Any

import pytest

from steadygaze.core.settings import settings
from steadygaze.techniques.technique import Stage, Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training import technique_loop
from steadygaze.training.stacked_loop import StackedLoop
from training.toys import Distil, Last, Pretrain, Recorder, interrupt, make_run, script, weights

COLLAPSED = {"attention": {"collapsed": True, "reason": "The weights are nearly the same.", "unit": "word"}}
CONSTANT = {"constant_label": 1}


def scripted(patch: pytest.MonkeyPatch, epochs: list[tuple[float, dict[str, Any]]]) -> list[dict[str, bytes]]:
    """Validation with these scores; the weights of each epoch, as they come."""
    return script(patch, *({"macro-f1": score, **degenerate} for score, degenerate in epochs))


FOUR = [(0.6, {}), (0.7, {}), (0.9, COLLAPSED), (0.8, COLLAPSED)]
CASES: dict[str, tuple[Technique, list[tuple[float, dict[str, Any]]], int]] = {
    "collapsed epochs score higher": (Vanilla(), FOUR, 2),
    "the last epoch is collapsed": (Last(), FOUR, 2),
    "the last epoch predicts one label": (Last(), [(0.7, {}), (0.6, {}), (0.8, {}), (0.3, CONSTANT)], 3),
    "the best sound epoch comes later": (Vanilla(), [(0.9, COLLAPSED), (0.6, {}), (0.7, {}), (0.65, {})], 3),
    "no epoch is sound": (Vanilla(), [(0.6, COLLAPSED), (0.9, COLLAPSED), (0.3, CONSTANT), (0.7, COLLAPSED)], 2),
    "no epoch is sound, the last counts": (Last(), [(0.6, COLLAPSED), (0.9, COLLAPSED), (0.8, COLLAPSED)], 3),
    "the sound epoch is no better than a guess": (Vanilla(), [(0.5, {}), (0.9, COLLAPSED), (0.8, COLLAPSED)], 2),
    "the last epoch guesses, and is not degenerate": (Last(), [(0.9, {}), (0.8, {}), (0.3, {})], 3),
}


@pytest.mark.parametrize("case", CASES)
def test_a_degenerate_epoch_is_selected_only_if_no_epoch_is_sound(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    technique, epochs, selected = CASES[case]
    seen = scripted(monkeypatch, epochs)
    run = make_run(technique, epochs=len(epochs), patience=9)
    assert weights(run.execute()) == seen[selected - 1]
    assert (run.best_epoch["epoch"], run.best_epoch["macro-f1"]) == (selected, epochs[selected - 1][0])


@pytest.mark.parametrize("technique", [Vanilla(), Last()], ids=["best", "last"])
def test_an_interrupted_run_selects_the_same_epoch(
    technique: Technique, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scripted(monkeypatch, FOUR)
    whole = make_run(technique, epochs=4, patience=9)
    expected = weights(whole.execute())
    scripted(monkeypatch, FOUR)
    interrupt(Recorder(epochs=3), technique, epochs=4, patience=9, folder=tmp_path)
    scripted(monkeypatch, FOUR[3:])
    resumed = make_run(technique, epochs=4, patience=9, folder=tmp_path, resume=True)
    assert weights(resumed.execute()) == expected
    assert (resumed.history, resumed.best_epoch) == (whole.history, whole.best_epoch)


@pytest.mark.parametrize(
    ("epochs", "trained", "selected"),
    [
        # The macro-F1 rises: training continues until an epoch is sound.
        ([(0.6, {}), (0.7, COLLAPSED), (0.75, COLLAPSED), (0.8, COLLAPSED), (0.85, {}), (0.8, {}), (0.8, {})], 7, 5),
        # The sound epochs improve below a collapsed one.
        ([(0.9, COLLAPSED), (0.6, {}), (0.7, {}), (0.65, {}), (0.6, {}), (0.95, {})], 5, 3),
        # Neither improves.
        ([(0.7, {}), (0.8, COLLAPSED), (0.75, COLLAPSED), (0.7, COLLAPSED), (0.9, {})], 4, 1),
    ],
)
def test_training_continues_while_all_epochs_or_the_sound_ones_improve(
    epochs: list[tuple[float, dict[str, Any]]], trained: int, selected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = scripted(monkeypatch, epochs)
    run = make_run(Vanilla(), epochs=len(epochs), patience=2)
    run.execute()
    assert (len(seen), run.best_epoch["epoch"]) == (trained, selected)


def test_a_stage_whose_model_is_trained_further_can_end_with_a_degenerate_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pretraining is not a model that anybody reads: its number of epochs is part of the technique."""

    @settings
    class Longer(Pretrain):
        def stages(self, seed: int) -> tuple[Stage, ...]:
            first, second = super().stages(seed)
            return Stage("pretrain", trains=first.trains, epochs=2, select="last"), second

    seen = scripted(monkeypatch, [(0.9, {}), (0.3, CONSTANT), (0.7, {})])
    run = make_run(Longer(), epochs=1)
    run.execute()
    names = [name for name in seen[2] if name.startswith("encoder")]  # the second stage does not train the encoder
    assert all(seen[2][name] == seen[1][name] for name in names)
    assert any(seen[2][name] != seen[0][name] for name in names)


def test_a_teacher_is_selected_in_the_same_way_and_the_teacher_cache_returns_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    epochs = [(0.7, {}), (0.9, COLLAPSED), (0.6, {}), (0.7, {})]
    for _ in range(2):
        seen = scripted(monkeypatch, epochs)
        run = make_run(Distil(), teacher_cache=tmp_path)
        run.execute()
        teacher = weights(run.models["teacher"])
        if len(seen) == 4:
            expected = seen[0]
        else:
            assert len(seen) == 2, "the second run takes the teacher from the cache"
        epochs = epochs[2:]
        assert teacher == expected


def test_a_stack_selects_as_each_model_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def loop() -> Any:
        run = make_run(Vanilla(), epochs=4, patience=9)
        return run._prepare(0, run.stages(), None, False)

    first, second = loop(), loop()
    for item, epochs in ((first, FOUR), (second, FOUR[::-1])):

        def scores(item: Any = item, epochs: Any = epochs) -> dict[str, Any]:
            score, degenerate = epochs[item.state.epoch - 1]
            return {"macro-f1": score, "loss": 1.0, "constant_label": None, **degenerate}

        item.own_scores = scores
    monkeypatch.setattr(
        technique_loop,
        "validation_scores",
        lambda job, model, reference: next(i for i in (first, second) if i.state.model is model).own_scores(),
    )
    records = StackedLoop([first, second], graphs=False).execute()
    assert [record["epoch"] for record in records if record] == [2, 3]
