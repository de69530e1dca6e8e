"""The engine: every cell once, whatever fails, dies, fills up or runs beside it."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from disk import disk_limit
from steadygaze.core.errors import RecoveryWarning, UserError
from steadygaze.study.cell_record import Cell, Output, read_record
from steadygaze.study.engine import check_finished, choose_executor, run_cells
from steadygaze.study.executor import InProcess, LocalProcesses
from study.toy_cells import die, fail_until, runs, square_cell, study, warn_of_something, write_much

SUM = 0 + 1 + 4 + 9
DRIVER = [sys.executable, "-c", "import sys; from study.toy_cells import drive; drive(*sys.argv[1:])"]


def folder(root: Path, cell: Cell) -> Path:
    return root / "cells" / cell.name


def count_runs(root: Path) -> dict[str, int]:
    return {path.name: runs(path) for path in sorted((root / "cells").iterdir())}


def wait_for(condition, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("executor", [InProcess, partial(LocalProcesses, 2)])
def test_every_cell_runs_once_after_those_it_needs(tmp_path: Path, executor):
    activities = []
    records = run_cells(study(), tmp_path, executor(), lambda *shown: activities.append(shown))
    assert list(records) == ["sum", "square-0", "square-1", "square-2", "square-3"]
    assert records["sum"].result == {"sum": SUM}
    assert activities[-1][1:] == (5, 5)
    again = run_cells(study(), tmp_path, executor())
    assert again == records
    assert set(count_runs(tmp_path).values()) == {1}


def test_workers_import_nothing_from_the_working_directory(tmp_path: Path, monkeypatch):
    for name in ("multiprocessing", "pickle", "steadygaze", "study"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'a').write(__name__)")
    monkeypatch.chdir(tmp_path)
    assert run_cells(study(), tmp_path / "runs", LocalProcesses(1))["sum"].result == {"sum": SUM}
    assert not (tmp_path / "imported").exists()
    assert "PYTHONSAFEPATH" not in os.environ


def of_a_notebook(folder: Path, on_progress: object) -> Output:
    return Output()


def test_what_workers_cannot_import_is_refused_before_they_start(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(of_a_notebook, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "of_a_notebook", of_a_notebook, raising=False)
    for work in (of_a_notebook, lambda *_: Output()):
        cells = [Cell("mine", "mine", {}, work), *study()]
        with pytest.raises(UserError, match=r"cannot import what this study uses: .* or use one worker: workers=1"):
            run_cells(cells, tmp_path, LocalProcesses(2))
        assert run_cells(cells[:1], tmp_path / "here", InProcess())["mine"].is_finished
    assert not (tmp_path / "cells").exists()


def test_a_failed_cell_is_recorded_and_the_rest_goes_on_and_the_next_run_retries_it(tmp_path: Path):
    flaky = Cell("flaky", "the flaky one", {}, partial(fail_until, tmp_path / "here"))
    after = Cell("after", "one after it", {}, partial(fail_until, tmp_path), ("flaky",))
    cells = [flaky, after, square_cell(3)]
    shown = []
    records = run_cells(cells, tmp_path, InProcess(), lambda *activity: shown.append(activity))
    assert [record.status for record in records.values()] == ["failed", "failed", "finished"]
    assert records["flaky"].error == "the file is missing"
    assert "fail_until" in records["flaky"].traceback
    assert records["after"].error == "it needs the flaky one, which failed"
    assert ("square of 3: done, 2 failed", 1, 3) in shown
    with pytest.raises(UserError, match=r"2 of 3 cells failed: the flaky one: the file is missing; one after it"):
        check_finished(records)
    (tmp_path / "here").touch()
    check_finished(run_cells(cells, tmp_path, InProcess()))
    assert count_runs(tmp_path) == {"flaky": 2, "after": 1, "square-3": 1}


def test_an_error_of_ours_is_not_blamed_on_the_user(tmp_path: Path):
    records = run_cells([Cell("broken", "broken", {}, partial(write_much, "many"))], tmp_path, InProcess())  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="in write_much"):
        check_finished(records)


def flip_digit(path: Path) -> None:
    path.write_text(path.read_text().replace('"square": 9', '"square": 8'))


DAMAGE = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:40]),
    "empty": lambda path: path.write_bytes(b""),
    "another value": flip_digit,
    "another kind of JSON": lambda path: path.write_text("[1]"),
    "a changed output": lambda path: path.with_name("square.txt").write_text("8"),
    "a missing output": lambda path: path.with_name("square.txt").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_record_is_noticed_and_its_cell_runs_again(tmp_path: Path, damage: str):
    cell = square_cell(3)
    before = run_cells([cell], tmp_path, InProcess())
    DAMAGE[damage](folder(tmp_path, cell) / "record.json")
    with pytest.warns(RecoveryWarning, match="the cell runs again"):
        after = run_cells([cell], tmp_path, InProcess())
    assert after["square-3"].result == before["square-3"].result
    assert runs(folder(tmp_path, cell)) == 2
    assert read_record(folder(tmp_path, cell), cell.key) == after["square-3"]


def test_a_record_of_other_inputs_does_not_count(tmp_path: Path):
    run_cells([square_cell(3)], tmp_path, InProcess())
    other = Cell("square-3", "square of 3", {"number": 3, "code": "newer"}, square_cell(3).work)
    with pytest.warns(RecoveryWarning, match="other settings, data or code"):
        run_cells([other], tmp_path, InProcess())
    assert count_runs(tmp_path) == {"square-3": 2}


@pytest.mark.slow
def test_a_cell_whose_worker_is_killed_runs_again_and_the_others_do_not(tmp_path: Path):
    cells = [Cell("mortal", "mortal", {}, partial(die, 2)), *(square_cell(number) for number in range(3))]
    with pytest.warns(RecoveryWarning, match="runs again") as warned:
        records = run_cells(cells, tmp_path, LocalProcesses(2))
    assert [str(item.message)[-8:] for item in warned] == ["(1 of 2)", "(2 of 2)"]
    assert records["mortal"].result == {"square": -1}
    assert count_runs(tmp_path) == {"mortal": 3, "square-0": 1, "square-1": 1, "square-2": 1}


@pytest.mark.slow
def test_a_cell_that_kills_every_worker_is_recorded_as_failed(tmp_path: Path):
    cells = [Cell("deadly", "deadly", {}, partial(die, 99)), square_cell(2)]
    with pytest.warns(RecoveryWarning, match="runs again"):
        records = run_cells(cells, tmp_path, LocalProcesses(2))
    assert not records["deadly"].is_finished
    assert "BrokenProcessPool" in records["deadly"].error
    assert read_record(folder(tmp_path, cells[0]), cells[0].key) == records["deadly"]
    assert records["square-2"].is_finished
    assert count_runs(tmp_path) == {"deadly": 3, "square-2": 1}


def start_driver(root: Path, workers: int, count: int, seconds: float) -> subprocess.Popen[str]:
    arguments = [*DRIVER, str(root), str(workers), str(count), str(seconds)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_or_interrupted_driver_takes_its_workers_along_and_can_be_resumed(tmp_path: Path, stop):
    driver = start_driver(tmp_path, 2, 4, 1.0)
    last = tmp_path / "cells" / "square-2" / "runs.txt"
    wait_for(lambda: last.exists() and last.read_text())
    workers = {int(pid) for file in (tmp_path / "cells").glob("*/runs.txt") for pid in file.read_text().split()}
    driver.send_signal(stop)
    driver.communicate()
    assert driver.returncode != 0
    wait_for(lambda: not any(map(is_alive, workers)))
    finished = [name for name in count_runs(tmp_path) if (tmp_path / "cells" / name / "record.json").exists()]
    records = run_cells(study(4), tmp_path, InProcess())
    assert records["sum"].result == {"sum": SUM}
    assert {count_runs(tmp_path)[name] for name in finished} == {1}


def test_a_worker_imports_no_torch_for_a_cell_without_it():
    script = "import sys, study.toy_cells, steadygaze.study.executor; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment())
    assert run.stdout == "False\n"


@pytest.mark.slow
def test_two_drivers_share_the_cells(tmp_path: Path):
    drivers = [start_driver(tmp_path, 2, 6, 0.2) for _ in range(2)]
    answers = [driver.communicate(timeout=60) for driver in drivers]
    assert [answer for answer, _ in answers] == ["55\n", "55\n"], answers
    assert set(count_runs(tmp_path).values()) == {1}


def test_a_driver_waits_for_a_cell_of_another_process(tmp_path: Path):
    """And takes it over if that process ends without a record."""
    (tmp_path / "cells" / "square-3").mkdir(parents=True)
    holder = "import sys, time; from pathlib import Path; from steadygaze.core.atomic_files import locked\n"
    holder += "with locked(Path(sys.argv[1])): print('locked', flush=True); time.sleep(60)"
    arguments = [sys.executable, "-c", holder, str(tmp_path / "cells" / "square-3")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        started = []

        def on_progress(activity: str, done: int, total: int) -> None:
            started.append(activity)
            if len(started) == 3:
                other.kill()

        records = run_cells([square_cell(3)], tmp_path, InProcess(), on_progress)
    assert records["square-3"].is_finished
    assert started.count("square of 3: started") >= 3
    assert runs(tmp_path / "cells" / "square-3") == 1


@pytest.mark.parametrize("room", [5_000, 40])
def test_a_full_disk_fails_a_cell_and_leaves_the_rest(tmp_path: Path, room: int):
    """With 40 bytes not even the record of the failure can be written."""
    large = Cell("large", "large", {}, partial(write_much, 20_000))
    with disk_limit(room):
        records = run_cells([large, square_cell(2)], tmp_path, InProcess())
    assert not records["large"].is_finished
    assert "OSError" in records["large"].error
    assert records["square-2"].is_finished == (room > 40)
    with pytest.raises(UserError, match="cells failed"):
        check_finished(records)
    check_finished(run_cells([large, square_cell(2)], tmp_path, InProcess()))
    assert json.loads((tmp_path / "cells" / "large" / "record.json").read_text())["result"] == {"size": 20_000}


def test_warnings_of_workers_reach_the_driver(tmp_path: Path):
    cell = Cell("warning", "warning", {}, warn_of_something)
    with pytest.warns(UserWarning, match="something is odd"):
        run_cells([cell], tmp_path, LocalProcesses(2))


def test_the_number_of_workers_fits_the_cells_and_the_machine(monkeypatch):
    monkeypatch.setattr("steadygaze.study.engine.cores", lambda: 8)
    assert choose_executor("local", None, "cpu", 5).slots == 5
    assert choose_executor("local", None, "cpu", 1).slots == 1
    assert choose_executor("local", 3, "cpu", 9).slots == 3
    monkeypatch.setattr("steadygaze.study.engine.MEMORY_PER_WORKER", 1 << 60)
    assert isinstance(choose_executor("local", None, "cpu", 5), InProcess)
    with pytest.raises(UserError, match="unknown engine 'dask'"):
        choose_executor("dask", None, "cpu", 5)
