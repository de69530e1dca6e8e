"""Cells on Ray: the same results as on this machine, also if a node is lost.  Skipped without Ray."""

import os
import sys
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from steadygaze.cli.ray_bulk import fitting_workers
from steadygaze.core.errors import UserError
from steadygaze.core.types import no_progress
from steadygaze.study.cell_record import gpu_share
from steadygaze.study.compare import StudyRuntime, begin
from steadygaze.study.engine import choose_executor, run_cells
from steadygaze.study.ray_executor import RayExecutor
from study.tiny import config_with
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


class FakeRay(ModuleType):
    """A cluster that is connected, and counts nothing else."""

    def __init__(self, **resources: float) -> None:
        super().__init__("ray")
        self.resources, self.options = resources, list[dict[str, object]]()

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return self.resources

    def remote(self, **_: object) -> object:
        future = SimpleNamespace(future=Future)
        task = SimpleNamespace(remote=lambda *_: future)
        return lambda _: SimpleNamespace(options=lambda **options: self.options.append(options) or task)


def test_ray_receives_few_cells_at_a_time_and_reserves_a_part_of_a_gpu(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", ray := FakeRay(CPU=3.0, GPU=1.0))
    with RayExecutor("ray") as executor:
        assert executor.slots == 6
        for device in ("cpu", "cuda"):
            executor.submit(replace(square_cell(1), gpus=gpu_share(device)), tmp_path, no_progress)
    assert [options["num_gpus"] for options in ray.options] == [0, 0.25]


@pytest.mark.parametrize("imports", [False, True])
def test_workers_of_ray_import_from_the_working_directory_only_if_the_command_does(tmp_path, monkeypatch, imports):
    """Ray adds the directory in which it is started to the module path of its workers."""
    ray = FakeRay(CPU=3.0)
    ray.is_initialized = lambda: False
    ray.init = lambda **_: SimpleNamespace(folder=folders.append(Path.cwd()))
    ray.shutdown = lambda: None
    folders: list[Path] = []
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path] + [str(tmp_path)] * imports)
    monkeypatch.chdir(tmp_path)
    with RayExecutor("ray"):
        assert Path.cwd() == tmp_path
    assert (folders == [tmp_path]) is imports
    assert (folders[0] / "steadygaze").is_dir() is not imports


def test_a_cell_that_needs_a_gpu_is_refused_by_a_cluster_without_one(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", FakeRay(CPU=3.0))
    cell = replace(square_cell(1), gpus=0.25)
    with pytest.raises(UserError, match="the Ray cluster has no GPU: use --device cpu"):
        run_cells([cell], tmp_path, RayExecutor("ray"))


def test_cells_of_a_comparison_name_the_resolved_device_and_its_share(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("steadygaze.study.compare.best_device", lambda _: SimpleNamespace(type="cuda"))
    monkeypatch.setattr("steadygaze.study.study_data.best_device", lambda name: SimpleNamespace(type=name))
    job = begin(config_with(seeds=2), StudyRuntime(tmp_path, device="auto"))
    assert job.device == "cuda"
    assert {cell.gpus for cell in job.cells()} == {0.25}
    assert {cell.inputs["device"] for cell in job.cells() if "device" in cell.inputs} == {"cuda"}


@pytest.mark.parametrize(
    ("resources", "workers", "gpu", "expected"),
    [
        ({"CPU": 4.0}, None, True, (4, 0)),
        ({"CPU": 4.0}, 9, True, (4, 0)),
        ({"CPU": 8.0, "GPU": 2.0}, None, True, (2, 1)),
        ({"CPU": 8.0, "GPU": 2.0}, 5, True, (5, 1 / 3)),
        ({"CPU": 8.0, "GPU": 3.0}, 1, True, (1, 1)),
        ({"CPU": 8.0, "GPU": 2.0}, None, False, (8, 0)),
    ],
)
def test_the_workers_of_a_table_fit_the_cluster(resources, workers, gpu, expected):
    assert fitting_workers(resources, workers, gpu) == expected
    with pytest.raises(UserError, match="no CPU"):
        fitting_workers({}, workers, gpu)


def test_without_ray_the_error_names_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(UserError, match=r"steadygaze\[scale\]"):
        choose_executor("ray", None, "cpu", 5)
