"""Stability of consensus relative to vanilla, for models of a stack and for models that are trained one by one.

`compare DATA --techniques vanilla,consensus --seeds 5` on a GPU; with --single every model is trained alone.  Several
processes with --single can share one folder.
"""

from pathlib import Path
from unittest.mock import patch

import torch

from steadygaze.study import compare
from steadygaze.study.compare_config import CompareConfig
from steadygaze.training import stacked_stages


def run(
    folder: Path,
    *,
    single: bool = False,
    data: str = "sst2",
    data_dir: Path | None = None,
    seeds: int = 5,
    epochs: int | None = None,
    limit: int = 500,
    encoder: str = "bilstm",
    synonyms: str | None = None,
    device: str = "cuda",
) -> None:
    """`limit`: test texts."""
    config = CompareConfig(
        data=data,
        techniques=("vanilla", "consensus"),
        seeds=seeds,
        epochs=epochs,
        limit=limit,
        encoder=encoder,
        synonyms=synonyms,
        settings={} if synonyms is None else {"synonyms": synonyms},
    )

    def on_progress(activity: str, done: int, total: int) -> None:
        print(f"{done}/{total} {activity}", flush=True)

    runtime = compare.StudyRuntime(folder, data_dir, device, on_progress)
    if not single:
        compare.compare(config, runtime)
        return
    with (
        patch.object(stacked_stages, "can_stack", lambda _: False),
        patch.object(compare, "best_device", lambda _: torch.device("cpu")),  # cells do not train models of others
    ):
        compare.compare(config, runtime)
