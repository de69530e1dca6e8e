"""What a person sees while training runs."""

import io
import re

from rich.console import Console

from steadygaze.train.progress import Bar
from train.toys import TOYS, make_run


def shown(name: str) -> tuple[str, Bar]:
    screen = io.StringIO()
    bar = Bar(Console(file=screen, width=200, force_terminal=False))
    make_run(TOYS[name], watcher=bar).execute()
    return screen.getvalue(), bar


def test_every_epoch_leaves_a_line_with_its_terms_and_its_score() -> None:
    screen, _ = shown("duel")
    lines = [line for line in screen.splitlines() if "macro-F1" in line]
    assert [line.split("task")[0].split() for line in lines] == [["epoch", "1"], ["epoch", "2"]]
    number = r"-?\d\.\d{3}"
    pattern = rf"epoch  \d  task {number}  fool {number}  guess {number}  validation macro-F1 {number}"
    assert all(re.fullmatch(pattern, line.strip()) for line in lines)


def test_stages_are_named_where_there_are_several() -> None:
    screen, _ = shown("distil")
    lines = [line for line in screen.splitlines() if "macro-F1" in line]
    assert [line.split()[0] for line in lines] == ["teach", "teach", "learn", "learn"]


def test_the_bar_ends_full_also_when_training_stops_early() -> None:
    for name in ("vanilla", "pretrain"):
        _, bar = shown(name)
        (task,) = bar.bar.tasks
        assert (task.completed, task.finished) == (task.total, True)
