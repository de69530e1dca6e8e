"""Shared by all tests: fixed seeds, one thread per process, the real data where it is at hand."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

ROOT = Path(__file__).parent.parent
torch.set_num_threads(1)
DATA = Path(os.environ.get("STEADYGAZE_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(autouse=True)
def fixed_seeds() -> None:
    torch.random.default_generator.manual_seed(0)
    np.random.seed(0)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of published sets, or a skip that says why."""
    if not (DATA / "sst2" / "train.parquet").is_file():
        pytest.skip("the published sets are not at hand: set STEADYGAZE_DATA to a folder <name>/<split>.parquet")
    return DATA
