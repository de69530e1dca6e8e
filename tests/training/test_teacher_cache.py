"""A teacher from the teacher cache is the teacher that would have been trained; nothing else is ever taken."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from shutil import copy, copytree
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from steadygaze.core.settings import settings
from steadygaze.techniques.technique import Stage, Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.teacher_cache import TeacherCache
from training.toys import (
    TOYS,
    Anneal,
    Committee,
    Distil,
    Duel,
    Lens,
    Recorder,
    corpus,
    interrupt,
    make_run,
    outcome,
    weights,
)

EPOCHS = {"distil": 2, "committee": 4}  # of teachers, which the teacher_cache can spare


def bits(tensors: dict[str, Tensor]) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in tensors.items()}


@cache
def alone(name: str) -> Any:
    """What comes of a toy without a teacher_cache."""
    return outcome(make_run(TOYS[name]))


def distil(**changed: Any) -> Technique:
    """Distil whose teacher's stage differs in this."""

    @settings
    class Changed(Distil):
        def stages(self, seed: int) -> tuple[Stage, ...]:
            teach, learn = super().stages(seed)
            return replace(teach, **changed), learn

    return Changed()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", EPOCHS)
def test_a_run_with_a_teacher_cache_ends_in_the_bytes_of_one_without_the_first_time_and_the_second(
    name: str, tmp_path: Path
) -> None:
    without = alone(name)
    first, second = Recorder(), Recorder()
    assert outcome(make_run(TOYS[name], teacher_cache=tmp_path, watcher=first)) == without
    assert outcome(make_run(TOYS[name], teacher_cache=tmp_path, watcher=second)) == without
    assert (len(first.epochs), first.skipped) == (EPOCHS[name] + 2, 0)
    assert (len(second.epochs), second.skipped) == (2, EPOCHS[name])  # the teachers were not trained again


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", ["vanilla", "pretrain", "return", "duel", "lens"])
def test_nothing_is_put_there_that_a_run_of_its_own_would_not_end_in(name: str, tmp_path: Path) -> None:
    """Results, rivals that start from them, models of the technique itself: they depend on more than their key."""
    assert outcome(make_run(TOYS[name], teacher_cache=tmp_path)) == alone(name)
    assert not list(tmp_path.iterdir())


def test_a_cached_teacher_is_its_technique_run_alone_with_its_seed(tmp_path: Path) -> None:
    make_run(Distil(), seed=4, teacher_cache=tmp_path).execute()
    (file,) = tmp_path.iterdir()
    alone = make_run(Vanilla(), seed=7)  # the stage adds 3
    assert bits(load_file(file)) == {f"model.{name}": value for name, value in weights(alone.execute()).items()}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A teacher_cache with two teachers; to be copied."""
    folder = tmp_path_factory.mktemp("two")
    for technique in (Distil(), distil(technique=Anneal(size=2.0))):
        make_run(technique, teacher_cache=folder).execute()
    return folder


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 99},
        {"epochs": 1},
        {"select": "last"},
        {"schedule": "linear"},
        {"trains": ("model.decoder",)},
        {"technique": Duel()},  # without settings, as the usual one: its name alone is another
        {"technique": Anneal()},
        {"technique": Anneal(size=0.5)},
    ],
    ids=str,
)
def test_a_teacher_made_otherwise_is_another_entry(changed: dict[str, Any], two: Path, tmp_path: Path) -> None:
    teacher_cache, recorder = copytree(two, tmp_path / "teacher_cache"), Recorder()
    ended = outcome(make_run(distil(**changed), teacher_cache=teacher_cache, watcher=recorder))
    assert ended == outcome(make_run(distil(**changed)))
    assert recorder.skipped == 0
    assert len(list(teacher_cache.iterdir())) == 3


@pytest.mark.slow
def test_another_seed_of_the_run_is_another_entry_unless_the_teacher_has_its_own(tmp_path: Path) -> None:
    for technique, entries in ((Distil(), 2), (distil(seed=5), 3)):
        for seed in (0, 1):
            assert outcome(make_run(technique, seed=seed, teacher_cache=tmp_path)) == outcome(
                make_run(technique, seed=seed)
            )
        assert len(list(tmp_path.iterdir())) == entries


@pytest.mark.parametrize("changed", [{"data": "another"}, {"training": {"epochs": 3}}, {"new": 1}])
def test_other_data_or_settings_are_another_entry(changed: dict[str, Any], tmp_path: Path) -> None:
    identity, key = {"data": "toy", "training": {"epochs": 2}}, {"seed": 0}
    TeacherCache(tmp_path, identity).put(key, {"x": torch.ones(2)}, [])
    assert TeacherCache(tmp_path, identity).get(key) is not None
    assert TeacherCache(tmp_path, {**identity, **changed}).get(key) is None
    assert TeacherCache(tmp_path, identity).get({"seed": 1}) is None


def test_a_run_on_other_data_reads_nothing_from_the_teacher_cache(tmp_path: Path) -> None:
    make_run(Distil(), teacher_cache=tmp_path).execute()
    other, recorder = corpus(30, seed=9), Recorder()
    run = make_run(Distil(), teacher_cache=tmp_path, data=other, watcher=recorder)
    run.teacher_cache = TeacherCache(tmp_path, {"data": "other"})
    assert outcome(run) == outcome(make_run(Distil(), data=other))
    assert recorder.skipped == 0


def test_settings_come_back_in_any_order(tmp_path: Path) -> None:
    TeacherCache(tmp_path, {"a": 1, "b": 2}).put({"c": 3, "d": 4}, {"x": torch.ones(2)}, [{"epoch": 1}])
    result = TeacherCache(tmp_path, {"b": 2, "a": 1}).get({"d": 4, "c": 3})
    assert result is not None
    assert result[1] == [{"epoch": 1}]


def test_a_teacher_that_another_technique_made_bears_the_name_of_this_ones_stage(tmp_path: Path) -> None:
    make_run(distil(name="school"), teacher_cache=tmp_path).execute()
    recorder = Recorder()
    assert outcome(make_run(Distil(), teacher_cache=tmp_path, watcher=recorder)) == alone("distil")
    assert recorder.skipped == 2


@pytest.mark.slow
def test_a_teacher_that_is_taught_twice_is_not_taken_for_the_one_taught_once(tmp_path: Path) -> None:
    @settings
    class Twice(Distil):
        def stages(self, seed: int) -> tuple[Stage, ...]:
            teach, learn = super().stages(seed)
            return teach, replace(teach, name="repeat"), learn

    expected = outcome(make_run(Twice()))
    for _ in range(2):
        assert outcome(make_run(Twice(), teacher_cache=tmp_path)) == expected
    assert outcome(make_run(Distil(), teacher_cache=tmp_path)) == alone("distil")


@pytest.mark.slow
def test_a_teacher_whose_own_network_goes_on_from_an_earlier_one_is_not_kept(tmp_path: Path) -> None:
    """Two teachers of one technique with an auxiliary network: the second's starts where the first's ended."""

    @settings
    class Lenses(Committee):
        def stages(self, seed: int) -> tuple[Stage, ...]:
            *teachers, agree = super().stages(seed)
            return *(replace(teacher, technique=Lens()) for teacher in teachers), agree

    @settings
    class Second(Lenses):
        def stages(self, seed: int) -> tuple[Stage, ...]:
            return super().stages(seed)[1:]

    expected = {kind: outcome(make_run(kind())) for kind in (Lenses, Second)}
    for kind in (Lenses, Lenses, Second, Lenses, Second):
        assert outcome(make_run(kind(), teacher_cache=tmp_path)) == expected[kind]


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-10]),
    "beheaded": lambda file: file.write_bytes(file.read_bytes()[:20]),
    "emptied": lambda file: file.write_bytes(b""),
    "garbled": lambda file: file.write_bytes(b"\x80\x04pickle" + file.read_bytes()),
    "without history": lambda file: save_file(load_file(file), file),
    "half a history": lambda file: save_file(load_file(file), file, metadata={"history": '[{"stage": "te'}),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a teacher_cache that holds one teacher; to be copied."""
    folder = tmp_path_factory.mktemp("whole")
    make_run(Distil(), teacher_cache=folder).execute()
    (file,) = folder.iterdir()
    return file


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_torn_file_is_trained_anew_and_made_whole(damage: str, whole: Path, tmp_path: Path) -> None:
    DAMAGES[damage](copy(whole, tmp_path / whole.name))
    recorder = Recorder()
    assert outcome(make_run(Distil(), teacher_cache=tmp_path, watcher=recorder)) == alone("distil")
    assert recorder.skipped == 0
    assert [result.read_bytes() for result in tmp_path.iterdir()] == [whole.read_bytes()]


PUT = """
import sys, torch
from pathlib import Path
from shutil import copy, copytree
from steadygaze.training.teacher_cache import TeacherCache as TeacherCacheFolder
teacher_cache, x = TeacherCacheFolder(Path(sys.argv[1]), {"data": "toy"}), torch.arange(50_000.0)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(40):
    teacher_cache.put({"seed": 0}, {"x": x}, [{"epoch": 1}])
    found = teacher_cache.get({"seed": 0})
    assert found is not None and found[0]["x"].equal(x) and found[1] == [{"epoch": 1}]
"""


@pytest.mark.slow
def test_processes_that_put_and_get_the_same_never_see_half_of_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PUT, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    both = [subprocess.Popen(command, text=True, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    for process in both:
        assert process.stdout.readline() == "ready\n"  # both have imported what they need: now they meet
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        _, message = process.communicate(timeout=60)
        assert process.returncode == 0, message
    assert len(list(tmp_path.iterdir())) == 1


def test_a_teacher_cache_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match=r"cannot write a finished model to the teacher cache .*file"):
        made = outcome(make_run(Distil(), teacher_cache=tmp_path / "file"))
    assert made == alone("distil")  # it is a convenience: nothing that was trained is lost


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(tensors: Any, path: Path, metadata: Any) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("steadygaze.training.teacher_cache.save_file", full)
    assert "No space left on device" in (TeacherCache(tmp_path, {}).put({}, {"x": torch.ones(1)}, []) or "")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A teacher_cache that another run with the same teachers has filled; to be copied."""
    folder = tmp_path_factory.mktemp("others")
    make_run(Committee(strength=3.0), teacher_cache=folder).execute()
    return folder


STOPS = {"never": (2, 6, 7, 12, 13, 16), "in between": (2, 6, 7, 10, 13, 16), "before": (1, 4)}
"""Steps before the interruption, by when others filled the teacher cache: an epoch has three, a stage two epochs."""


@pytest.mark.sweep(keep=("never-2", "in between-6"))
@pytest.mark.parametrize(("filled", "steps"), [(filled, steps) for filled, all_ in STOPS.items() for steps in all_])
def test_a_run_with_a_teacher_cache_interrupted_anywhere_and_resumed_ends_in_the_same_bytes(
    filled: str, steps: int, others: Path, tmp_path: Path
) -> None:
    teacher_cache, folder = tmp_path / "teacher_cache", tmp_path / "run"
    if filled == "before":
        copytree(others, teacher_cache)
    interrupt(Recorder(steps=steps), Committee(), folder=folder, teacher_cache=teacher_cache)
    if filled == "in between":
        copytree(others, teacher_cache, dirs_exist_ok=True)
    assert outcome(make_run(Committee(), folder=folder, teacher_cache=teacher_cache, resume=True)) == alone("committee")


def test_the_teacher_cache_may_be_gone_when_a_run_is_resumed(others: Path, tmp_path: Path) -> None:
    teacher_cache = copytree(others, tmp_path / "teacher_cache")
    interrupt(Recorder(epochs=1), Committee(), folder=tmp_path / "run", teacher_cache=teacher_cache)
    assert outcome(make_run(Committee(), folder=tmp_path / "run", resume=True)) == alone("committee")


@pytest.mark.parametrize("place", ["link", "model"])
def test_a_teacher_cache_writes_only_into_a_teacher_cache(place: str, tmp_path: Path) -> None:
    """The default folder is not checked beforehand: the teacher is not cached, and the run continues."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty", target_is_directory=True)
    with pytest.warns(UserWarning, match="cannot write a finished model to the teacher cache"):
        assert outcome(make_run(Distil(), teacher_cache=tmp_path / place)) == alone("distil")
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["config.json"]
    assert not list((tmp_path / "empty").iterdir())
