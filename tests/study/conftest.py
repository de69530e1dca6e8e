"""Comparisons that several tests look at are run once."""

from pathlib import Path

import pytest

from study.tiny import NO_SWAPS, TWO, config_with, quicken, run


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits with few protocols."""
    quicken(monkeypatch)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two techniques, one seed, two epochs, never interrupted."""
    out = tmp_path_factory.mktemp("compare") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        run(out, config_with(epochs=2))
    return out


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two techniques, two seeds, the same words substituted by all; never interrupted."""
    out = tmp_path_factory.mktemp("compare") / "done"
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        run(out, config_with(techniques=TWO, seeds=2, synonyms=None, settings_for=NO_SWAPS))
    return out
