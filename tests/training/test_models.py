"""Models that the caller has already: their stages are not run, and the rest ends where it would have ended."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from steadygaze.core.settings import settings
from steadygaze.models.classifier import Classifier
from steadygaze.techniques.technique import Stage, Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.training_run import freeze
from training.toys import Committee, Distil, Recorder, interrupt, make_run, outcome, weights


def trained(technique: Technique, *names: str) -> dict[str, Classifier]:
    run = make_run(technique)
    run.execute()
    return {name: run.models[name] for name in names}


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(("technique", "names"), [(Distil(), ["teacher"]), (Committee(), ["one", "other"])])
def test_a_run_given_its_teachers_ends_in_the_weights_of_one_that_trained_them(
    technique: Technique, names: list[str]
) -> None:
    expected, whole = outcome(make_run(technique))
    models, recorder = trained(technique, *names), Recorder()
    before = {name: weights(model) for name, model in models.items()}
    model, history = outcome(make_run(technique, models=dict(models), watcher=recorder))
    assert model == expected
    assert json.loads(history) == json.loads(whole)[2 * len(names) :]  # the records of the stages that were run
    assert (len(recorder.epochs), recorder.skipped) == (2, 2 * len(names))
    assert {name: weights(model) for name, model in models.items()} == before


def test_a_teacher_trained_alone_does_as_well_and_another_leads_elsewhere() -> None:
    alone, other = (freeze(make_run(Vanilla(), seed=seed).execute()) for seed in (3, 9))  # the stage adds 3
    own, *given = (outcome(make_run(Distil(), models=m))[0] for m in ({}, {"teacher": alone}, {"teacher": other}))
    assert [weights_of_run == own for weights_of_run in given] == [True, False]


@settings
class Three(Committee):
    """The mean of three depends, in its last bit, on the order in which they are added."""

    def stages(self, seed: int) -> tuple[Stage, ...]:
        first, other, agree = super().stages(seed)
        return first, other, replace(first, name="third", model="third", seed=seed + 3), agree


@pytest.mark.slow
@pytest.mark.parametrize(
    "teacher", ["third", *(pytest.param(name, marks=pytest.mark.slow) for name in ("one", "other"))]
)
def test_of_several_teachers_one_may_be_given(teacher: str) -> None:
    recorder, expected = Recorder(), outcome(make_run(Three()))[0]
    assert outcome(make_run(Three(), models=trained(Three(), teacher), watcher=recorder))[0] == expected
    stages = [record["stage"] for record in recorder.epochs[::2]]
    assert stages == [name for name in ("one", "other", "third", "agree") if name != teacher]


def test_the_result_itself_may_be_given_and_then_nothing_is_trained() -> None:
    models, recorder = trained(Vanilla(), "model"), Recorder()
    run = make_run(Vanilla(), models=dict(models), watcher=recorder)
    assert weights(run.execute()) == weights(models["model"])
    assert (recorder.epochs, recorder.skipped, run.history, run.best_epoch) == ([], 2, [], {})


def test_a_model_that_no_stage_makes_is_one_beside_them() -> None:
    """A stage may start from it."""

    @settings
    class Onward(Vanilla):
        def stages(self, seed: int) -> tuple[Stage, ...]:
            return (Stage("train", start="base", trains=("model.scorer",)),)

    base = trained(Vanilla(), "model")["model"]
    ended = weights(make_run(Onward(), models={"base": base}).execute())
    start = weights(base)
    assert {name for name in ended if ended[name] != start[name]} == {n for n in ended if n.startswith("scorer.")}


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("epochs", [1, 2])
def test_a_run_given_its_teacher_can_be_interrupted_and_resumed(epochs: int, tmp_path: Path) -> None:
    models = trained(Distil(), "teacher")
    expected = outcome(make_run(Distil(), models=dict(models)))
    interrupt(Recorder(epochs=epochs), Distil(), models=dict(models), folder=tmp_path)
    assert outcome(make_run(Distil(), models=dict(models), folder=tmp_path, resume=True)) == expected


def test_a_given_teacher_is_neither_read_from_the_teacher_cache_nor_written_to_it(tmp_path: Path) -> None:
    models = trained(Distil(), "teacher")
    assert outcome(make_run(Distil(), models=dict(models), teacher_cache=tmp_path)) == outcome(
        make_run(Distil(), models=dict(models))
    )
    assert not list(tmp_path.iterdir())
