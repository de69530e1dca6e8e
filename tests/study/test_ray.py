"""Cells on Ray: the same results as on this machine, also if a node is lost.  Skipped without Ray."""

import os
import time
from pathlib import Path

import pytest

from steadygaze.core.errors import UserError
from steadygaze.study.engine import choose_executor, run_cells
from steadygaze.study.ray_executor import RayExecutor
from study.toy_cells import runs, square_cell, study


@pytest.fixture(autouse=True)
def _cells_that_workers_can_import(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


@pytest.fixture
def two_nodes():
    """A cluster of two nodes with one CPU each, on this machine."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    yield cluster, second
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_of_this_machine_runs_the_cells_once(tmp_path: Path):
    pytest.importorskip("ray")
    executor = choose_executor("ray", 2, "cpu", 5)
    records = run_cells(study(), tmp_path, executor)
    assert records["sum"].result == {"sum": 14}
    assert {runs(folder) for folder in (tmp_path / "cells").iterdir()} == {1}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_lost_node_is_survived(tmp_path: Path, two_nodes):
    cluster, second = two_nodes
    cells = [square_cell(number, seconds=2.0) for number in range(6)]
    lost = []

    def on_progress(activity: str, done: int, total: int) -> None:
        if done == 1 and not lost:
            lost.append(time.monotonic())
            cluster.remove_node(second, allow_graceful=False)

    records = run_cells(cells, tmp_path, RayExecutor("ray"), on_progress)
    assert lost
    assert [record.result for record in records.values()] == [{"square": number**2} for number in range(6)]


def test_without_ray_the_error_names_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(UserError, match=r"steadygaze\[scale\]"):
        choose_executor("ray", None, "cpu", 5)
