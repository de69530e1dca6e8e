"""Progress output of training."""

import io
import re

import torch
from rich.console import Console

from steadygaze.training import progress
from steadygaze.training.progress import ProgressBar
from steadygaze.training.training_run import TrainingRun
from training.toys import TOYS, make_run

NOTHING = "  (collapsed)"


def shown(name: str) -> tuple[str, ProgressBar, TrainingRun]:
    screen = io.StringIO()
    bar = ProgressBar(Console(file=screen, width=200, force_terminal=False))
    run = make_run(TOYS[name], watcher=bar)
    run.execute()
    return screen.getvalue(), bar, run


def test_every_epoch_leaves_a_line_with_its_terms_and_its_score() -> None:
    screen, _, _ = shown("duel")
    lines = [line for line in screen.splitlines() if "macro-F1" in line]
    assert [line.split("task")[0].split() for line in lines] == [["epoch", "1"], ["epoch", "2"]]
    number = r"-?\d\.\d{3}"
    pattern = rf"epoch  \d  task {number}  fool {number}  guess {number}  validation macro-F1 {number}"
    assert all(re.fullmatch(pattern, line.removesuffix(NOTHING).strip()) for line in lines)


def test_the_line_of_an_epoch_with_collapsed_attention_and_no_other_is_marked() -> None:
    screen, _, run = shown("lens")
    lines = [line for line in screen.splitlines() if "macro-F1" in line]
    assert [line.endswith(NOTHING) for line in lines] == [record["attention"]["collapsed"] for record in run.history]
    assert run.history[-1]["attention"]["collapsed"]
    record = {**run.history[-1], "attention": {"collapsed": False}}
    quiet = io.StringIO()
    bar = ProgressBar(Console(file=quiet, width=200, force_terminal=False))
    bar.several = True
    bar.epoch(record)
    assert NOTHING not in quiet.getvalue()


def test_stages_are_named_where_there_are_several() -> None:
    screen, _, _ = shown("distil")
    lines = [line for line in screen.splitlines() if "macro-F1" in line]
    assert [line.split()[0] for line in lines] == ["teach", "teach", "learn", "learn"]


def test_the_bar_ends_full_also_when_training_stops_early() -> None:
    for name in ("vanilla", "pretrain"):
        _, bar, _ = shown(name)
        (task,) = bar.bar.tasks
        assert (task.completed, task.finished) == (task.total, True)


def test_a_notebook_has_a_bar_if_it_has_widgets(monkeypatch):
    notebook = Console(file=io.StringIO(), force_jupyter=True)
    for widgets in (None, "a module"):
        monkeypatch.setattr(progress, "find_spec", lambda name, spec=widgets: spec)
        assert ProgressBar(notebook).bar.disable == (widgets is None)


def test_progress_is_shown_in_a_notebook_and_in_a_terminal(monkeypatch):
    monkeypatch.setattr(progress.sys, "stderr", io.StringIO())
    assert not progress.is_interactive()
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert progress.is_interactive()
    monkeypatch.undo()
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True)
    assert progress.is_interactive()


def test_a_line_of_an_epoch_fits_the_terminal_and_details_have_all_terms() -> None:
    terms = {f"term-{number}": 0.123 for number in range(9)}
    record = {"stage": "teacher 1 of 5", "epoch": 10, "terms": terms, "macro-f1": 0.5, "attention": {"collapsed": True}}
    for details in (False, True):
        screen = io.StringIO()
        bar = ProgressBar(Console(file=screen, width=80, force_terminal=False), details)
        bar.several = True
        bar.epoch(record)
        bar.epoch(record)
        line, meaning, again = screen.getvalue().splitlines()
        assert meaning == "collapsed: attention does not depend on the text yet, common in early epochs"
        assert again == line, "the meaning is printed once"
        assert line.startswith("teacher 1 of 5  epoch 10  term-0 0.123")
        assert line.endswith("validation macro-F1 0.500  (collapsed)")
        assert (len(line) <= 80, "term-8 0.123" in line) == (not details, details)


def test_the_bar_shows_elapsed_and_remaining_time_in_80_columns() -> None:
    screen, now = io.StringIO(), [0.0]
    bar = ProgressBar(Console(file=screen, width=80, force_terminal=True))
    bar.bar.get_time = lambda: now[0]
    bar.start(2, 4, 10)
    bar.bar.live.stop()
    for step in range(4):
        now[0] = 5.0 * (step + 1)
        bar._updated = 0.0
        bar.step("teacher 1 of 5", 0, {"task": torch.ones(2), "stability": torch.ones(2)})
    screen.truncate(0)
    bar.console.print(bar.bar)
    (line,) = screen.getvalue().strip("\0").splitlines()
    shown = re.sub(r"\x1b\[[\d;]*m", "", line)
    assert "teacher 1 of 5, epoch 1" in shown
    assert "10 % 0:20 elapsed, 3:00 left" in shown  # 4 of 40 steps; 36 steps of 5 s remain
    assert len(shown) <= 80
