"""A tiny transformer to train from."""

from pathlib import Path

import pytest

from estimator.tiny import transformer_folder


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return transformer_folder(tmp_path_factory.mktemp("elsewhere") / "tiny-bert")


@pytest.fixture(scope="session")
def encoder(network: Path) -> str:
    return f"transformer:{network}"
