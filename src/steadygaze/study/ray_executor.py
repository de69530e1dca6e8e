"""Cells on a Ray cluster: the local machine, or an existing cluster whose nodes share the folder of the study.

Ray schedules the cells by the resources that they need, and runs a cell again whose worker or node is lost.
"""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from steadygaze.core.errors import UserError
from steadygaze.core.types import OnProgress
from steadygaze.study.cell_record import Cell, CellRecord, run_cell_in_worker
from steadygaze.study.executor import RETRIES, CellFuture, cores

QUEUED = 2
"""Cells in the queue of Ray for each CPU: each has a copy of the texts."""
INSTALL = "the Ray engine needs the package ray: pip install 'steadygaze[scale]'"


class RayExecutor:
    """`engine`: ray starts a cluster on this machine; ray://auto and ray://HOST:PORT connect to a running one."""

    slots = 1
    retries = 0  # Ray runs lost cells again

    def __init__(self, engine: str, workers: int | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise UserError(INSTALL) from None
        self._ray: Any = ray
        self._engine, self._workers = engine, workers
        self._is_ours = False
        self.link = ""

    def __enter__(self) -> Self:
        if not self._ray.is_initialized():  # otherwise the caller has connected
            self.link = self._connect()
            self._is_ours = True
        self._resources = self._ray.cluster_resources()
        self.slots = max(1, QUEUED * int(self._resources.get("CPU", 0)))
        options = {"num_cpus": 1, "max_retries": RETRIES, "retry_exceptions": False}
        self._task = self._ray.remote(**options)(_run_on_node)
        return self

    def _connect(self) -> str:
        """Connect to the cluster or start one; return the address of the dashboard."""
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if self._engine == "ray":
            options |= {"address": "local", "num_cpus": self._workers or cores(), "configure_logging": False}
        else:
            options["address"] = "auto" if self._engine == "ray://auto" else self._engine
        try:
            with _module_folder():
                context = self._ray.init(**options)
        except (ConnectionError, ImportError, ValueError) as error:
            raise UserError(f"cannot connect to the Ray cluster {self._engine}: {error}") from None
        address = getattr(context, "dashboard_url", None)
        return f"http://{address}" if address else ""

    def submit(self, cell: Cell, root: Path, on_progress: OnProgress) -> CellFuture:
        if cell.gpus > self._resources.get("GPU", 0):  # the cell would wait forever
            raise UserError("the Ray cluster has no GPU: use --device cpu")
        task = self._task.options(name=cell.label, num_gpus=cell.gpus)
        future: Future[Any] = task.remote(cell, root.absolute(), os.getcwd()).future()
        return future

    def is_loss(self, error: BaseException) -> bool:
        return False

    def __exit__(self, *_: object) -> None:
        if self._is_ours:
            self._ray.shutdown()


@contextmanager
def _module_folder() -> Iterator[None]:
    """Connect in a folder that this process imports modules from: the workers of Ray import from it as well."""
    folder = os.getcwd()
    if "" in sys.path or folder in sys.path:
        yield
        return
    os.chdir(Path(__file__).parents[2])
    try:
        yield
    finally:
        os.chdir(folder)


def _run_on_node(cell: Cell, root: Path, folder: str) -> tuple[CellRecord | None, list[Warning]]:
    """Run a cell in the driver's working folder, which relative paths refer to."""
    import torch

    torch.set_num_threads(1)
    if os.path.isdir(folder):
        os.chdir(folder)
    return run_cell_in_worker(cell, root)
