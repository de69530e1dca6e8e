"""Whole comparisons on worker processes that lose a worker, their driver or the disk: the table stays the same."""

import json
import os
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from disk import disk_limit
from kills import forked
from steadygaze.cli import main
from steadygaze.core.errors import UserError
from study.tiny import DATA, run

COMMAND = [
    *("compare", DATA, "--techniques", "vanilla,word-at", "--seeds", "2"),
    *("--encoder", "average", "--epochs", "2", "--set", "hidden=4", "--set", "dimension=6", "--limit", "14"),
    *("--device", "cpu", "--quiet"),
]
pytestmark = pytest.mark.slow


def start(out: Path, workers: int = 1) -> BaseProcess:
    """A comparison; one worker is the driver itself."""
    return forked(main, [*COMMAND, "--workers", str(workers), "--out", str(out)])


def finish(driver: BaseProcess, out: Path) -> str:
    """The techniques of the table, as text."""
    driver.join(900)
    assert driver.exitcode == 0
    return json.dumps(json.loads((out / "comparison.json").read_text())["techniques"])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("faults") / "whole"
    return finish(start(out), out)


def workers_of(driver: BaseProcess) -> list[int]:
    """The worker processes that run a cell: the children with torch in memory."""
    task = Path(f"/proc/{driver.pid}/task/{driver.pid}/children")
    children = [int(pid) for pid in task.read_text().split()] if task.exists() else []
    return [pid for pid in children if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]


def wait_for_models(out: Path, count: int) -> None:
    end = time.monotonic() + 600
    while len(list(out.glob("cells/*/model*"))) < count:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_a_killed_worker_changes_nothing(table: str, tmp_path: Path):
    driver = start(tmp_path, workers=2)
    wait_for_models(tmp_path, 1)
    os.kill(workers_of(driver)[0], signal.SIGKILL)
    assert finish(driver, tmp_path) == table


def test_a_killed_driver_changes_nothing(table: str, tmp_path: Path):
    driver = start(tmp_path, workers=2)
    wait_for_models(tmp_path, 3)
    driver.kill()
    driver.join()
    assert finish(start(tmp_path), tmp_path) == table


def test_two_drivers_at_once_change_nothing(table: str, tmp_path: Path):
    drivers = [start(tmp_path) for _ in range(2)]
    assert [finish(driver, tmp_path) for driver in drivers] == [table, table]


@pytest.mark.usefixtures("quick")
def test_a_full_disk_leaves_a_comparison_that_can_be_resumed(tmp_path: Path):
    run(tmp_path / "whole")
    with disk_limit(2_000), pytest.raises(UserError, match="cells failed"):
        run(tmp_path / "out")
    run(tmp_path / "out")
    assert (tmp_path / "out" / "comparison.json").read_bytes() == (tmp_path / "whole" / "comparison.json").read_bytes()
