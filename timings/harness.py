"""Interleaved rounds, ratios with intervals, wall and CPU time, limits, child processes, records."""

import multiprocessing
import os
import platform
import resource
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

from steadygaze.results.intervals import Interval, Values, bootstrap_statistic

P = ParamSpec("P")
T = TypeVar("T")
Clock = Literal["wall", "cpu"]


@dataclass(frozen=True)
class Result:
    """One number, with an interval and the limits that it should meet."""

    name: str
    value: float
    unit: str = ""
    interval: Interval | None = None
    at_most: float | None = None
    at_least: float | None = None

    @property
    def is_met(self) -> bool:
        above = self.at_most is not None and self.value > self.at_most
        return not above and not (self.at_least is not None and self.value < self.at_least)

    def __str__(self) -> str:
        text = f"{self.name:44} {self.value:>12,.4g} {self.unit}".rstrip()
        if self.interval is not None:
            text += " [{:,.4g}, {:,.4g}]".format(*self.interval)
        for word, limit in (("at most", self.at_most), ("at least", self.at_least)):
            text += "" if limit is None else f"   ({word} {limit:g})"
        return text if self.is_met else f"{text}   MISSED"


def median(
    name: str,
    values: Sequence[float] | Values,
    unit: str = "",
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Result:
    """The median of rounds, with its 95 % bootstrap interval."""
    sample = np.asarray(values, float)
    interval = bootstrap_statistic(lambda draws: np.asarray(np.median(sample[draws], axis=1)), len(sample))
    return Result(name, float(np.median(sample)), unit, interval, at_most, at_least)


@dataclass
class Race:
    """Seconds of each variant, one of each in every round."""

    wall: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, wall: float, cpu: float) -> None:
        self.wall.setdefault(name, []).append(wall)
        self.cpu.setdefault(name, []).append(cpu)

    def ratio(
        self, name: str, base: str, *, clock: Clock = "wall", times: float = 1.0, **limits: float | None
    ) -> Result:
        """The median over the rounds of the time of a variant over that of another."""
        seconds: dict[str, list[float]] = getattr(self, clock)
        ratios = times * np.array(seconds[name]) / np.array(seconds[base])
        return median(f"{name} / {base}" + (", CPU time" if clock == "cpu" else ""), ratios, "×", **limits)

    def time(self, name: str, unit: Literal["ms", "s"] = "ms", per: float = 1.0, clock: Clock = "wall") -> Result:
        """The median time of a variant; `per`: the number of steps or texts in one round."""
        scale = (1000.0 if unit == "ms" else 1.0) / per
        return median(
            name + (", CPU time" if clock == "cpu" else ""), scale * np.array(getattr(self, clock)[name]), unit
        )


def race(variants: Mapping[str, Callable[[], object]], rounds: int, warm_up: int = 1) -> Race:
    """Run all variants in turn, in each round; every second round in reverse order."""
    result = Race()
    for number in range(rounds + warm_up):
        for name in list(variants)[:: -1 if number % 2 else 1]:
            wall, cpu, _ = clocked(variants[name])
            if number >= warm_up:
                result.add(name, wall, cpu)
    return result


def clocked(work: Callable[[], T]) -> tuple[float, float, T]:
    """Wall seconds, CPU seconds and result of a call; work on a GPU included."""
    synchronize()
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    synchronize()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def synchronize() -> None:
    """Wait for the GPU, if one is used."""
    import torch

    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()


def in_child(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function of a module in a new process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Environment variables of child processes; those of OpenMP are removed before."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith(("OMP_", "GOMP_"))]:
        del os.environ[name]
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def peak_memory() -> float:
    """Peak memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def record(name: str, options: list[str], results: list[Result]) -> dict[str, Any]:
    """A timing as data: its options, results, machine and commit."""
    import torch

    root = Path(__file__).parents[1]
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True, check=False
    )
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    machine = {"cpu": platform.machine(), "cores": os.cpu_count(), "gpu": gpu, "load": os.getloadavg()[0]}
    versions = {"python": platform.python_version(), "torch": torch.__version__, "commit": head.stdout.strip()}
    numbers = [asdict(result) for result in results]
    return {"timing": name, "options": options, "results": numbers, "machine": machine, **versions}
