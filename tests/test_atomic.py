"""Files and folders written whole or not at all, whatever happens in between."""

import os
import sys
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from disk import room_for
from steadygaze import atomic
from steadygaze.atomic import new_file, new_folder, recover, write_text


def content(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, hidden ones too."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def standing(tmp_path: Path) -> Path:
    """A folder with an old file and an old folder of one file."""
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "content").write_bytes(b"old")
    return tmp_path


def test_a_new_file_takes_the_place_of_the_old_only_when_it_is_whole(standing: Path) -> None:
    with new_file(standing / "file") as new:
        new.write_bytes(b"new")
        assert (standing / "file").read_bytes() == b"old"
    assert content(standing) == {"file": b"new", "folder/content": b"old"}


def test_a_new_folder_takes_the_place_of_the_old_only_when_it_is_whole(standing: Path) -> None:
    with new_folder(standing / "folder") as new:
        (new / "other").write_bytes(b"new")
        assert content(standing / "folder") == {"content": b"old"}
    assert content(standing) == {"file": b"old", "folder/other": b"new"}


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    with new_folder(tmp_path / "a" / "b") as new:
        (new / "sub").mkdir()
        (new / "sub" / "c").write_bytes(b"c")
    write_text(tmp_path / "d" / "e", "ä\ud800")
    assert content(tmp_path) == {"a/b/sub/c": b"c", "d/e": "ä?".encode()}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_exception_inside_leaves_the_old_whole_and_nothing_behind(
    kind: str, error: type[BaseException], standing: Path
) -> None:
    before = content(standing)

    def write(new: Path) -> None:
        (new if kind == "file" else new / "content").write_bytes(b"half")
        raise error

    with pytest.raises(error), (new_file if kind == "file" else new_folder)(standing / kind) as new:
        write(new)
    assert content(standing) == before
    assert sorted(path.name for path in standing.iterdir()) == ["file", "folder"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("at", [0, 1])
def test_a_folder_whose_rename_fails_leaves_the_old_whole(
    at: int, error: type[BaseException], standing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are two renames, the old one aside and the new one in; either may fail, or be interrupted."""
    before, renames, real = content(standing), [], os.replace

    def replace(source: Path, target: Path) -> None:
        renames.append(target)
        if len(renames) - 1 == at:
            raise error
        real(source, target)

    monkeypatch.setattr(atomic.os, "replace", replace)
    with pytest.raises(error), new_folder(standing / "folder") as new:
        (new / "content").write_bytes(b"new")
    assert content(standing) == before
    assert sorted(path.name for path in standing.iterdir()) == ["file", "folder"]


def test_an_old_folder_that_cannot_be_put_back_is_never_deleted(
    standing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, renames = os.replace, []

    def replace(source: Path, target: Path) -> None:
        renames.append(target)
        if len(renames) > 1:
            raise OSError("the disk is gone")
        real(source, target)

    monkeypatch.setattr(atomic.os, "replace", replace)
    with pytest.raises(OSError, match="the disk is gone"), new_folder(standing / "folder") as new:
        (new / "content").write_bytes(b"new")
    (kept,) = [path for path in standing.iterdir() if path.suffix == ".old"]
    assert content(kept) == {"content": b"old"}


@pytest.mark.skipif(sys.platform == "win32", reason="resource limits are a Unix thing")
@pytest.mark.parametrize(("kind", "writer"), [("file", "plain"), ("folder", "plain"), ("folder", "safetensors")])
def test_a_disk_that_fills_up_leaves_the_old_whole(kind: str, writer: str, standing: Path) -> None:
    before = content(standing)

    def write(new: Path) -> None:
        target = new if kind == "file" else new / "content"
        if writer == "plain":
            target.write_bytes(b"n" * 1_000_000)
        else:
            save_file({"x": torch.zeros(1_000_000)}, target)

    full = pytest.raises((OSError, SafetensorError), match="File too large")  # an exception, not a signal
    with full, room_for(100_000), (new_file if kind == "file" else new_folder)(standing / kind) as new:
        write(new)
    assert content(standing) == before
    assert sorted(path.name for path in standing.iterdir()) == ["file", "folder"]


def test_a_folder_left_aside_by_a_kill_between_two_renames_comes_back(tmp_path):
    aside = tmp_path / ".model.0123abcd.old"
    aside.mkdir()
    (aside / "config.json").write_text("old")
    recover(tmp_path / "model")
    assert (tmp_path / "model" / "config.json").read_text() == "old"
    assert not aside.exists()


def test_a_folder_that_stands_is_not_replaced_by_one_left_aside(tmp_path):
    for name in ("model", ".model.0123abcd.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(name)
    recover(tmp_path / "model")
    assert (tmp_path / "model" / "config.json").read_text() == "model"
