"""The code version: what changes results changes it, and nothing else does."""

from pathlib import Path

import pytest

from steadygaze.study.code_version import PACKAGES, code_version, source_digest

CODE = '''"""What it is."""

LIMIT = 3


def bounded(value: int) -> int:
    """At most LIMIT."""
    # or less
    return min(value, LIMIT)
'''


def digest(folder: Path, code: str, name: str = "module.py") -> str:
    (folder / name).write_text(code)
    return source_digest(folder, [folder / name])


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("What it is.", "What it was.", True),
        ("At most LIMIT.", "Not more than LIMIT.", True),
        ("    # or less\n", "", True),
        ("# or less", "#", True),
        ("LIMIT = 3\n", "\n\nLIMIT = 3\n", True),
        ("LIMIT = 3", "LIMIT = 4", False),
        ("min(", "max(", False),
        ("bounded", "limited", False),
    ],
)
def test_only_what_runs_counts(tmp_path: Path, old: str, new: str, same: bool):
    assert (digest(tmp_path, CODE) == digest(tmp_path, CODE.replace(old, new))) is same


def test_data_files_and_names_count(tmp_path: Path):
    assert digest(tmp_path, "a", "words.txt") != digest(tmp_path, "b", "words.txt")
    assert digest(tmp_path, CODE) != digest(tmp_path, CODE, "other.py")


def test_it_is_of_this_installation_and_covers_what_trains_and_measures():
    assert len(code_version()) == 16
    assert {"training", "properties", "auditing", "techniques"} < set(PACKAGES)
    assert not {"cli", "report", "images"} & set(PACKAGES)


def test_it_covers_the_modules_of_a_study(monkeypatch: pytest.MonkeyPatch):
    digested: list[Path] = []
    monkeypatch.setattr("steadygaze.study.code_version.source_digest", lambda _, files: digested.extend(files))
    code_version.__wrapped__()
    names = {"/".join(path.parts[-2:]) for path in digested}
    assert {"study/cells.py", "study/study_data.py", "study/trial.py", "training/training_loop.py"} <= names
    assert not [name for name in names if name.endswith(".toml") and "published" in name]
