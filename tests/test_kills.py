"""Killed before any disk operation and run again, every command ends in the same bytes, and leaves nothing behind."""

import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

from estimator.tiny import fitted, write_csv
from kills import Recorder, State, record, restore, snapshot, without_durations
from steadygaze import cli
from steadygaze.cli import audit_and_verify
from steadygaze.core.errors import RecoveryWarning
from study.tiny import config_with, quicken
from study.tiny import run as run_comparison

SMALL = ["--set", "hidden=4", "--set", "dimension=6", "--encoder", "average", "--device", "cpu", "--quiet"]
SHARE = {"train": 4, "train --replace": 4, "consensus": 2, "fit-explainer": 1, "audit": 1, "compare": 1}
"""States of each command that are tried where all take too long."""
LONG_COMMANDS = [pytest.param(name, marks=pytest.mark.slow) for name in ("consensus", "compare")]
"""Slow tests: `train` covers checkpoints, and `study/test_compare.py` interrupts a comparison."""


@dataclass
class Case:
    """A command in a folder, the folder before it, and what is run after a kill."""

    base: Path
    start: State
    first: Callable[[], None]
    again: Callable[[], None]


def command(*words: object) -> Callable[[], None]:
    def run() -> None:
        with redirect_stdout(StringIO()), redirect_stderr(err := StringIO()), pytest.raises(SystemExit) as ended:
            cli.main([str(word) for word in words])
        assert ended.value.code in (0, None), err.getvalue()

    return run


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and data, which no command changes."""
    folder = tmp_path_factory.mktemp("inputs")
    fitted().save(folder / "model")
    write_csv(folder / "films.csv")
    return folder


@pytest.fixture
def quick(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fewer protocols in the audits of `compare`, short trainings of probes, and one date; `audit` measures all."""
    if name == "compare":
        quicken(monkeypatch)
    monkeypatch.setattr("steadygaze.explainers.learned.selector_training.STEPS", 2)
    monkeypatch.setattr(audit_and_verify, "now", lambda: "2026-01-01T00:00:00Z")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecoveryWarning)
        yield


def case(name: str, inputs: Path, base: Path) -> Case:
    base.mkdir()
    data, out = inputs / "films.csv", base / "out"
    train = ["train", data, "--out", out, "--epochs", "2", *SMALL]
    if name == "train":
        return Case(base, {}, command(*train), command(*train, "--resume"))
    if name == "train --replace":
        command(*train)()
        other = [*train, "--seed", "1", "--replace"]
        return Case(base, snapshot(base), command(*other), command(*other, "--resume"))
    if name == "consensus":
        table = inputs / "synonyms.jsonl"
        table.write_text('{"word": "good", "synonyms": ["fine"]}\n')
        more = ["--technique", "consensus", "--set", "teachers=2", "--set", f"synonyms={table}"]
        return Case(base, {}, command(*train, *more), command(*train, *more, "--resume"))
    if name == "fit-explainer":
        fit = ["fit-explainer", inputs / "model", "--data", data, "--k", "2", "--out", out, "--set", "epochs=1"]
        fit += ["--set", "hidden=4", "--set", "dimension=4", "--device", "cpu", "--quiet"]
        return Case(base, {}, command(*fit), command(*fit))
    if name == "audit":
        shutil.copytree(inputs / "model", base / "model")
        audit = ["audit", base / "model", "--data", data, "--device", "cpu", "--quiet", "--bundle", out]
        audit += ["--limit", "4", "--sample", "1"]
        command(*audit)()
        audit += ["--html", base / "page.html", "--require", "accuracy>=0.1"]
        return Case(base, snapshot(base), command(*audit), command(*audit))

    def compare() -> None:
        run_comparison(out, config_with(seeds=2))

    return Case(base, {}, compare, compare)


def check(killed: Case, recorded: Recorder, states: list[State]) -> None:
    *_, last = recorded.states.values()
    end = without_durations(last)
    for state in states:
        restore(killed.base, state)
        killed.again()
        result = without_durations(snapshot(killed.base))
        assert {name for name in result if result[name] != end.get(name, b"")} | (
            end.keys() - result.keys()
        ) == set(), [name for name in state if name not in end]


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", ["train", "train --replace", "fit-explainer", "audit", *LONG_COMMANDS])
def test_a_command_killed_at_some_disk_operations_ends_in_the_same_bytes(
    name: str, inputs: Path, tmp_path: Path
) -> None:
    killed = case(name, inputs, tmp_path / "work")
    recorded = record(killed.base, killed.first)
    states = list(recorded.states.values())
    check(killed, recorded, random.Random(name).sample(states[1:-1], SHARE[name]))


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", SHARE)
def test_a_command_killed_at_any_disk_operation_ends_in_the_same_bytes(
    name: str, inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed = case(name, inputs, tmp_path / "work")
    recorded = record(killed.base, killed.first)
    check(killed, recorded, list(recorded.states.values()))
    with capsys.disabled():
        print(f"\n{name}: {recorded.operations} disk operations, {len(recorded.states)} distinct states")


def test_an_end_that_differs_is_reported(tmp_path: Path) -> None:
    """The tests above can fail: a command that does not finish what it found."""
    base = tmp_path / "work"
    base.mkdir()

    def first() -> None:
        (base / "a").write_text("first")
        (base / "b").write_text("second")

    recorded = record(base, first)
    assert recorded.operations == 2
    assert [sorted(state) for state in recorded.states.values()] == [[], ["a"], ["a"], ["a", "b"]]
    assert [state.get("a") for state in recorded.states.values()] == [None, b"first", b"fi", b"first"]

    def lazy() -> None:
        (base / "b").write_text("second")

    with pytest.raises(AssertionError):
        check(Case(base, {}, first, lazy), recorded, list(recorded.states.values()))
