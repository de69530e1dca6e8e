"""Parts of a bulk output on a Ray cluster: each worker loads the model once, and writes parts to the shared folder.

This process reads the rows, so that files of all formats are read once and in order.  Ray restarts a worker that is
lost, and repeats its part.
"""

import os
from collections.abc import Callable, Mapping
from itertools import groupby
from math import ceil
from operator import itemgetter
from typing import Any

from steadygaze.adapters.bulk import BulkRun, BulkTask, Parts
from steadygaze.core.errors import UserError
from steadygaze.study.executor import RETRIES
from steadygaze.study.ray_executor import RayExecutor


def write_with_ray(
    run: BulkRun, make_task: Callable[[], BulkTask], engine: str, workers: int | None, gpu: bool
) -> None:
    """Write the missing parts; `workers` None: one for each core of the cluster, or for each GPU if `gpu`."""
    with RayExecutor(engine, workers):
        import ray
        from ray.util import ActorPool

        count, share = fitting_workers(ray.cluster_resources(), workers, gpu)
        options = {"num_cpus": 1, "num_gpus": share, "max_restarts": RETRIES, "max_task_retries": RETRIES}
        worker: Any = ray.remote(**options)(_Worker)
        pool: Any = ActorPool([worker.remote(run.parts, make_task, os.getcwd()) for _ in range(count)])
        for part, group in groupby(run.missing(), key=itemgetter(0)):
            if not pool.has_free():
                pool.get_next_unordered()
            pool.submit(lambda actor, item: actor.write.remote(*item), (part, [chunk[1:] for chunk in group]))
        while pool.has_next():
            pool.get_next_unordered()


def fitting_workers(resources: Mapping[str, float], workers: int | None, gpu: bool) -> tuple[int, float]:
    """The number of workers that the cluster can run at a time, and the GPUs of each; more would wait forever."""
    cpus, gpus = int(resources.get("CPU", 0)), int(resources.get("GPU", 0)) if gpu else 0
    if not cpus:
        raise UserError("the Ray cluster has no CPU for a worker: start it with --num-cpus")
    count = min(workers or gpus or cpus, cpus)
    return count, 1 / ceil(count / gpus) if gpus else 0


class _Worker:
    """A process of the cluster with a model."""

    def __init__(self, parts: Parts, make_task: Callable[[], BulkTask], folder: str) -> None:
        import torch

        torch.set_num_threads(1)
        if os.path.isdir(folder):  # relative paths refer to the driver's folder
            os.chdir(folder)
        self.parts, self.task = parts, make_task()

    def write(self, part: int, chunks: list[tuple[list[Any], list[dict[str, Any]]]]) -> None:
        results = self.task.results(texts for texts, _ in chunks)
        rows = (row for _, rows in chunks for row in rows)
        self.parts.write(part, [{**row, **result} for row, result in zip(rows, results, strict=True)])
