"""The progress of a long run in a log: a line now and then, and nothing on standard output."""

from io import StringIO
from time import sleep

import pytest
from rich.console import Console

from steadygaze.cli import progress_bars
from steadygaze.study.cell_record import Cell
from steadygaze.study.engine import run_cells
from steadygaze.study.executor import InProcess, LocalProcesses
from study.toy_cells import warn_of_something


@pytest.fixture
def log() -> Console:
    return Console(file=StringIO(), force_terminal=False, width=40)


def printed_lines(log: Console, each: bool) -> list[str]:
    with progress_bars.progress_bar(log, each) as on_progress:
        for done, what in ((0, "a, seed 0: training"), (0, "a, seed 0: noise"), (1, "b"), (1000, "b")):
            on_progress(what, done, 2000)
    return log.file.getvalue().splitlines()


def test_a_log_has_a_line_for_each_thing_done(log, monkeypatch):
    monkeypatch.setattr(progress_bars, "monotonic", lambda: 0.0)
    assert printed_lines(log, each=True) == [
        "0 of 2,000 done; a, seed 0: training",
        "1 of 2,000 done; b",
        "1,000 of 2,000 done; b",
    ]


@pytest.mark.parametrize("executor", [InProcess(), LocalProcesses(2)], ids=["here", "workers"])
def test_a_warning_names_its_cell_whatever_its_name(log, tmp_path, executor):
    with progress_bars.print_warnings(log):
        run_cells([Cell("warning", "encoder: cnn", {}, warn_of_something)], tmp_path, executor)
    assert log.file.getvalue() == "encoder: cnn: something is odd\n"


def test_a_log_shows_the_remaining_time_of_a_long_run(log, monkeypatch):
    now = iter((0.0, 50.0, 130.0))
    monkeypatch.setattr(progress_bars, "monotonic", lambda: next(now))
    with progress_bars.progress_bar(log, each=True) as on_progress:
        on_progress("a", 1, 3)
        on_progress("b", 2, 3)
    lines = log.file.getvalue().splitlines()
    assert lines == ["1 of 3 done, about 1:40 left; a", "2 of 3 done, about 1:05 left; b"]


def test_or_none_before_half_a_minute_has_passed(log, monkeypatch):
    assert printed_lines(log, each=False) == []
    now = iter(range(0, 200, 20))
    monkeypatch.setattr(progress_bars, "monotonic", lambda: next(now))
    assert len(printed_lines(log, each=False)) == 2


def test_who_wants_quiet_gets_it():
    assert printed_lines(Console(file=StringIO(), quiet=True), each=True) == []


def test_a_log_of_an_audit_has_the_share_and_both_times(log, monkeypatch):
    """The remaining time is that of the mean speed since the first report, and does not rise."""
    now = iter([0.0, 20.0, 60.0, 80.0, 140.0])
    monkeypatch.setattr(progress_bars, "monotonic", lambda: next(now))
    with progress_bars.progress_bar(log, percent=True) as on_progress:
        on_progress("reading: 5 of 20 texts", 0, 40)
        on_progress("noise: 5 of 20 texts", 20, 40)
        on_progress("noise: 6 of 20 texts", 21, 40)
        on_progress("noise: 7 of 20 texts", 22, 40)
    assert log.file.getvalue().splitlines() == [
        "50 % done, 1:00 elapsed, about 0:40 left; noise: 5 of 20 texts",
        "55 % done, 2:20 elapsed, about 0:40 left; noise: 7 of 20 texts",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_bar_stays_on_one_line_and_cuts_the_task(width):
    console = Console(file=StringIO(), force_terminal=True, width=width, color_system=None)
    with progress_bars.progress_bar(console, percent=True) as on_progress:
        on_progress("attention of a randomized model, 1 of 3: 10 of 20 texts, " + "and more " * 9, 18, 20)
        sleep(0.6)  # the bar is drawn ten times a second
    last_frame = console.file.getvalue().split("\r")[-2].removesuffix("\n\x1b[?25h")
    assert "\n" not in last_frame
    assert " 90 % 0:00 elapsed attention of a randomized" in last_frame
    assert last_frame.endswith("…")
