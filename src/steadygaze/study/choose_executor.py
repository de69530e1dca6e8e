"""The executor of --engine and --workers."""

import psutil

from steadygaze.core.errors import UserError
from steadygaze.study.executor import Executor, InProcess, cores
from steadygaze.study.local_processes import LocalProcesses

MEMORY_PER_WORKER = 1 << 30
"""Bytes that one worker needs: torch, the texts, a model and its audit."""


def choose_executor(engine: str, workers: int | None, device: str, cells: int) -> Executor:
    """Return the executor; `workers` None: as many workers as cores and memory allow, on a GPU one."""
    if engine == "ray" or engine.startswith("ray://"):
        from steadygaze.study.ray_executor import RayExecutor

        return RayExecutor(engine, workers)
    if engine != "local":
        raise UserError(f"unknown engine {engine!r}: use local, ray, ray://auto or ray://HOST:PORT")
    count = _fitting_workers(device, cells) if workers is None else min(workers, max(cells, 1))
    return InProcess() if count == 1 else LocalProcesses(count)


def _fitting_workers(device: str, cells: int) -> int:
    from steadygaze.models.inference import best_device  # imports torch

    if best_device(device).type != "cpu":
        return 1
    memory = int(psutil.virtual_memory().available) // MEMORY_PER_WORKER
    return max(1, min(cells, cores(), memory))
