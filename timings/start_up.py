"""CPU time of `--help` and of a cold `predict`, beside `import torch` and a Typer application that does nothing."""

import resource
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from timings.harness import Race, Result
from timings.inputs import saved_model, sentences

EMPTY = """
import typer
app = typer.Typer(rich_markup_mode="rich")
for name in ("first", "second"):
    app.command(name)(lambda: None)
app()
"""


def cpu(*command: str) -> float:
    """User and system seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(*, rounds: int = 10) -> list[Result]:
    """`predict` loads a BiLSTM."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        saved_model(folder, sentences("train")[0])
        commands = {
            "empty --help": partial(cpu, "-c", EMPTY, "--help"),
            "--help": partial(cpu, "-m", "steadygaze", "--help"),
            "import torch": partial(cpu, "-c", "import torch"),
            "predict": partial(cpu, "-m", "steadygaze", "predict", str(folder), "A fine film."),
        }
        times = Race()
        for _ in range(rounds):
            for name, command in commands.items():
                times.add(name, 0.0, command())
    seconds = [times.time(name, "s", clock="cpu") for name in commands]
    return [
        *seconds,
        times.ratio("predict", "import torch", clock="cpu"),
        times.ratio("--help", "empty --help", clock="cpu"),
    ]
