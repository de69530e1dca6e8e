"""A saved model, and a transformer to train from."""

from pathlib import Path

import pytest

from estimator.tiny import fitted, transformer_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fitted().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return transformer_folder(tmp_path_factory.mktemp("elsewhere") / "tiny-bert")
