"""What the tests of saved models look at."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from steadygaze.estimator.text_classifier import TextClassifier


def assert_same(first: TextClassifier, second: TextClassifier, X: list[Any]) -> None:
    """Bit for bit, in all that a user sees."""
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))
    assert first.explain(X) == second.explain(X)
    assert first.classes_.tolist() == second.classes_.tolist()
    assert first.classes_.dtype == second.classes_.dtype
    assert first.history_ == second.history_


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def rewrite(folder: Path, **changes: Any) -> None:
    """Some values of config.json changed."""
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**values, **changes}))
