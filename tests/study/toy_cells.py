"""Cells that take no time: they record every run, and fail, wait or die.  Workers import no torch for them."""

import os
import signal
import time
import warnings
from functools import partial
from pathlib import Path

from steadygaze.core.errors import UserError
from steadygaze.core.types import OnProgress
from steadygaze.study.cell_record import Cell, Output
from steadygaze.study.engine import choose_executor, run_cells


def square(number: int, seconds: float, folder: Path, on_progress: OnProgress) -> Output:
    note_run(folder)
    time.sleep(seconds)
    (folder / "square.txt").write_text(str(number**2))
    return Output({"square": number**2}, ("square.txt",))


def add_squares(numbers: tuple[int, ...], folder: Path, on_progress: OnProgress) -> Output:
    note_run(folder)
    return Output({"sum": sum(int((folder.parent / f"square-{n}" / "square.txt").read_text()) for n in numbers)})


def fail_until(file: Path, folder: Path, on_progress: OnProgress) -> Output:
    """Fails until the file exists."""
    note_run(folder)
    if not file.exists():
        raise UserError("the file is missing")
    return Output({"square": 0})


def die(times: int, folder: Path, on_progress: OnProgress) -> Output:
    """Kills its process in its first runs, as the kernel does if memory is short."""
    note_run(folder)
    if runs(folder) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return Output({"square": -1})


def write_much(size: int, folder: Path, on_progress: OnProgress) -> Output:
    note_run(folder)
    (folder / "much.bin").write_bytes(b"x" * size)
    return Output({"size": size}, ("much.bin",))


def warn_of_something(folder: Path, on_progress: OnProgress) -> Output:
    warnings.warn("something is odd", stacklevel=1)
    return square(1, 0.0, folder, on_progress)


def note_run(folder: Path) -> None:
    with open(folder / "runs.txt", "a") as file:
        file.write(f"{os.getpid()}\n")


def runs(folder: Path) -> int:
    file = folder / "runs.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


def square_cell(number: int, seconds: float = 0.0) -> Cell:
    return Cell(f"square-{number}", f"square of {number}", {"number": number}, partial(square, number, seconds))


def study(count: int = 4, seconds: float = 0.0) -> list[Cell]:
    """The sum of squares comes first in the list, and must wait for them."""
    cells = [square_cell(number, seconds) for number in range(count)]
    names = tuple(cell.name for cell in cells)
    return [Cell("sum", "sum", {"needs": list(names)}, partial(add_squares, tuple(range(count))), names), *cells]


def drive(root: str, workers: str, count: str, seconds: str) -> None:
    """A driver that tests can kill."""
    cells = study(int(count), float(seconds))
    records = run_cells(cells, Path(root), choose_executor("local", int(workers), "cpu", len(cells)))
    print(records["sum"].result["sum"])
