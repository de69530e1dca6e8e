"""One folder of each kind of classifier, made once."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from adapters.folders import save


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """By the kind of network."""
    return cache(lambda kind: save(kind, tmp_path_factory.mktemp("models") / kind))
