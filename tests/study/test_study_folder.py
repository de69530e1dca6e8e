"""The folder of a comparison: what it refuses, and that what goes on is what was begun."""

from pathlib import Path

import numpy as np
import pytest

from steadygaze.core.errors import UserError
from steadygaze.results.row import ValueKey
from steadygaze.study.study_folder import StudyFolder, read_arrays, write_arrays

SETTINGS = {"seeds": [0, 1], "own": {"word-at": {"epsilon": 0.2}}, "vectors": None}


def test_the_same_order_goes_on(tmp_path: Path):
    folder = StudyFolder(tmp_path / "new")
    folder.begin(SETTINGS)
    before = (tmp_path / "new" / "settings.json").stat().st_mtime_ns
    folder.refuse_foreign()
    folder.begin({"vectors": None, **SETTINGS})
    assert (tmp_path / "new" / "settings.json").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("changed", "hint"),
    [
        ({"own": {"word-at": {"epsilon": 0.3}}}, r"another own.word-at.epsilon: 0.2, now 0.3"),
        ({"own": {"word-at": {"epsilon": 0.2}, "seat": {"k": 7}}}, r"another own.seat.k: none, now 7"),
        ({"own": {}}, r"another own.word-at.epsilon: 0.2, now none"),
        ({"seeds": [0, 1, 2]}, r"another seeds: \[0, 1\], now \[0, 1, 2\]"),
        ({"vectors": "glove"}, r"another vectors: None, now 'glove'"),
    ],
)
def test_another_order_is_refused_with_what_differs(tmp_path: Path, changed, hint):
    StudyFolder(tmp_path).begin(SETTINGS)
    with pytest.raises(UserError, match=hint):
        StudyFolder(tmp_path).begin({**SETTINGS, **changed})


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis").mkdir()
    StudyFolder(tmp_path / "thesis").refuse_foreign()
    (tmp_path / "thesis" / "chapter1.txt").write_text("precious")
    with pytest.raises(UserError, match="is not a comparison"):
        StudyFolder(tmp_path / "thesis").refuse_foreign()
    with pytest.raises(UserError, match="is a file"):
        StudyFolder(tmp_path / "thesis" / "chapter1.txt").refuse_foreign()


@pytest.mark.parametrize("content", ["{", "5", '"order"', "[1]"])
def test_damaged_settings_are_an_error_of_one_sentence(tmp_path: Path, content):
    (tmp_path / "settings.json").write_text(content)
    with pytest.raises(UserError, match=r"settings\.json (is not JSON|is damaged).*; name another folder"):
        StudyFolder(tmp_path).begin(SETTINGS)


def test_arrays_come_back_as_they_were(tmp_path: Path):
    arrays = {
        "normalized-entropy|attention": np.array([0.5, np.nan]),
        "accuracy": np.arange(6.0)[::2],
        "jensen-shannon/seeds|attention|0+12": np.ones(2),
    }
    values = {ValueKey.parse(name): array for name, array in arrays.items()}
    assert {str(key) for key in values} == arrays.keys()
    write_arrays(tmp_path / "deep" / "values.safetensors", values)
    result = read_arrays(tmp_path / "deep" / "values.safetensors")
    assert {name: array.dtype for name, array in result.items()} == dict.fromkeys(values, np.dtype(np.float64))
    for name, expected in values.items():
        assert np.array_equal(result[name], expected, equal_nan=True)
    (tmp_path / "deep" / "values.safetensors").write_bytes(b"torn")
    with pytest.raises(UserError, match="is damaged"):
        read_arrays(tmp_path / "deep" / "values.safetensors")
