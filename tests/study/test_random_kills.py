"""Comparisons, searches and Ray workers that are killed at random moments, again and again, end in the same bytes."""

import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kills import forked, snapshot, without_durations
from steadygaze.study.engine import run_cells
from steadygaze.study.ray_executor import RayExecutor
from study import test_tune
from study.tiny import quicken, run
from study.toy_cells import runs, square_cell

KILLS = pytest.mark.parametrize("number", [5, pytest.param(20, marks=pytest.mark.exhaustive)])
RESTARTS = 200
"""Most processes of a test: a kill can come after the end."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(sys.platform != "linux", reason="needs fork and SIGKILL"),
]


def compare(out: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        run(out)


def tune(out: Path) -> None:
    test_tune.run(out, test_tune.search(trials=4, parallel=2))


@pytest.fixture(scope="module", autouse=True)
def _texts(tmp_path_factory: pytest.TempPathFactory) -> None:
    test_tune.write_texts(test_tune.TEXTS.setdefault("folder", tmp_path_factory.mktemp("texts")))


@KILLS
@pytest.mark.parametrize("work", [compare, tune])
def test_a_study_that_is_killed_at_random_ends_in_the_same_bytes(
    work: Callable[[Path], None], number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A killed run is started again until it ends; then the next one begins."""
    start = time.monotonic()
    undisturbed = forked(work, tmp_path / "0")
    undisturbed.join()
    assert undisturbed.exitcode == 0
    duration = time.monotonic() - start
    expected = without_durations(snapshot(tmp_path / "0"))
    draw, kills, folder = random.Random(work.__name__), 0, 1
    for _ in range(RESTARTS):
        out = tmp_path / str(folder)
        process = forked(work, out)
        process.join(draw.uniform(0, 0.7 * duration) if kills < number else None)
        process.kill()
        process.join()
        if process.exitcode == -signal.SIGKILL:
            kills += 1
            continue
        assert process.exitcode == 0
        ended = without_durations(snapshot(out))
        assert [name for name in expected.keys() | ended.keys() if expected.get(name) != ended.get(name)] == []
        folder += 1
        if kills >= number:
            break
    assert kills == number
    with capsys.disabled():
        print(f"\n{work.__name__}: {kills} kills, {folder - 1} runs, each with the same bytes")


@KILLS
def test_ray_workers_that_are_killed_at_random_change_no_result(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    draw, killed, cells = random.Random(0), set[Path](), number + 10
    context = multiprocessing.get_context("fork")
    over = context.Event()

    def kill_workers() -> None:
        """Kill the worker of a cell that runs for the first time: a cell survives two losses."""
        while len(killed) < number and not over.is_set():
            time.sleep(draw.uniform(0.02, 0.3))
            running = [file for file in tmp_path.glob("cells/*/runs.txt") if not (file.parent / "record.json").exists()]
            for file in set(running) - killed:
                if runs(file.parent) == 1 and file.read_text().strip():
                    os.kill(int(file.read_text()), signal.SIGKILL)
                    killed.add(file)
                    break
        (tmp_path / "killed").write_text(str(len(killed)))

    killer = context.Process(target=kill_workers)
    killer.start()
    try:
        records = run_cells([square_cell(n, seconds=0.5) for n in range(cells)], tmp_path, RayExecutor("ray", 2))
    finally:
        over.set()
        killer.join()
    assert int((tmp_path / "killed").read_text()) == number
    assert [record.result for record in records.values()] == [{"square": n**2} for n in range(cells)]
    assert {(tmp_path / "cells" / f"square-{n}" / "square.txt").read_text() for n in range(cells)} == {
        str(n**2) for n in range(cells)
    }
