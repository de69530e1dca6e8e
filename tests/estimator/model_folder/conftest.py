"""A saved model."""

from pathlib import Path

import pytest

from estimator.tiny import fitted


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fitted().save(tmp_path / "model")
    return tmp_path / "model"
