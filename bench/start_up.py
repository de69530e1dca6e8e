"""CPU time of a cold `steadygaze predict` and of `--help`, beside `import torch` and a Typer application that does
nothing: one interleaved run.

python bench/start_up.py [MODEL] [--rounds 10]       MODEL: a folder of `steadygaze train` with a word encoder
"""

import argparse
import resource
import subprocess
import sys
from statistics import median

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    commands: dict[str, tuple[str, ...]] = {
        "empty --help": ("-c", EMPTY, "--help"),
        "--help": ("-m", "steadygaze", "--help"),
    }
    if options.model:
        commands["import torch"] = ("-c", "import torch")
        commands["predict"] = ("-m", "steadygaze", "predict", options.model, "A fine film.")
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, command in commands.items():
            times[name].append(cpu(*command))
    for name, seconds in times.items():
        print(f"{name:14} {median(seconds):.2f} s of CPU ({min(seconds):.2f} to {max(seconds):.2f})")
    if options.model:
        ratios = [predict / torch for predict, torch in zip(times["predict"], times["import torch"], strict=True)]
        print(f"predict / import torch: {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
