"""Shared by all tests: fixed seeds, one thread per process, the real data where it is at hand."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

from sweeps import mark_tiers

gc.disable()  # until all tests are collected: imported modules and tests are not garbage
ROOT = Path(__file__).parent.parent
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
settings.register_profile("thorough", deadline=None)  # 100 examples; the time of a test shows nothing about the code
settings.register_profile("short", deadline=None, max_examples=40)  # drawn anew in every run
settings.load_profile("short")  # --hypothesis-profile takes precedence
DATA = Path(os.environ.get("STEADYGAZE_DATA", ROOT.parent / "shared" / "data"))


@pytest.hookimpl(tryfirst=True)  # before `-m "not slow"` is applied
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_tiers(items)


def pytest_collection_finish() -> None:
    gc.enable()


@pytest.fixture(autouse=True)
def fixed_seeds() -> None:
    torch.random.default_generator.manual_seed(0)
    np.random.seed(0)


@pytest.fixture(scope="module", autouse=True)
def what_is_there_is_no_garbage() -> None:
    """Training and commands collect garbage; what was imported before is left out of that, or each test would pay."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def unlearned_teachers(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of consensus on tiny texts, whose teachers learn nothing; training refuses such teachers."""
    monkeypatch.setattr("steadygaze.training.training_run.TrainingRun._check_learned", lambda *_: None)


@pytest.fixture(scope="module")
def short_probe_in_module() -> Iterator[None]:
    """For modules that do not test label leakage: the probe takes most of the time of a small fit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steadygaze.explainers.learned.selector_training.STEPS", 25)
        yield


@pytest.fixture
def short_probe_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """For single tests of fits: few steps of the probe of the mask and of the independent reader.

    Fixtures of a wider scope are made before this one, so fits that a module shares are trained in full.
    """
    monkeypatch.setattr("steadygaze.explainers.learned.selector_training.STEPS", 25)
    monkeypatch.setattr("steadygaze.explainers.learned.independent_reader.EPOCHS", 2)


@pytest.fixture(scope="module")
def short_reader_in_module() -> Iterator[None]:
    """For modules that test no number of the independent reader: it trains for few epochs, in shared fits too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steadygaze.explainers.learned.independent_reader.EPOCHS", 2)
        yield


@pytest.fixture
def fewer_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of an audit that are not about its numbers: it runs four protocols."""
    from study.tiny import quicken

    quicken(monkeypatch)


@pytest.fixture(scope="module", autouse=True)
def short_audits(request: pytest.FixtureRequest) -> Iterator[None]:
    """Audits in folders that test none of their numbers: searches take few steps, intervals have few resamples."""
    if request.path.parent.name not in ("adapters", "auditing", "cli", "estimator", "robustness", "tests"):
        yield
        return
    from steadygaze.properties.probes import text_perturbations
    from steadygaze.properties.protocols.flip_radius import flip_radius
    from steadygaze.results import intervals

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_perturbations.pgd_on_attention, "__defaults__", (2,))
        patch.setitem(flip_radius.__globals__, "ROUNDS", 2)
        patch.setitem(flip_radius.__globals__, "SEAT_STEPS", 2)
        for function in (intervals.bootstrap_mean, intervals.bootstrap_means, intervals.bootstrap_statistic):
            patch.setitem(function.__kwdefaults__, "resamples", 100)
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of published sets, or a skip with the reason."""
    if not (DATA / "sst2" / "train.parquet").is_file():
        pytest.skip("the published sets are not at hand: set STEADYGAZE_DATA to a folder <name>/<split>.parquet")
    return DATA
