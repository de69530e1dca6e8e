"""Files and folders written whole or not at all, whatever happens in between."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from disk import disk_limit
from steadygaze.core import atomic_files
from steadygaze.core.atomic_files import (
    exclusive,
    exclusive_output,
    locked,
    new_file,
    new_folder,
    recover_folder,
    remove_leftovers,
    try_lock,
    write_text,
)
from steadygaze.core.errors import LockWarning, UserError


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

    monkeypatch.setattr(atomic_files.os, "replace", replace)
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

    monkeypatch.setattr(atomic_files.os, "replace", replace)
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
    with full, disk_limit(100_000), (new_file if kind == "file" else new_folder)(standing / kind) as new:
        write(new)
    assert content(standing) == before
    assert sorted(path.name for path in standing.iterdir()) == ["file", "folder"]


def folder(path: Path, text: str) -> Path:
    path.mkdir()
    (path / "content").write_text(text)
    return path


def test_a_replacement_killed_between_its_two_renames_is_finished_and_reported(tmp_path: Path) -> None:
    folder(tmp_path / ".model.0123abcd.old", "old")
    folder(tmp_path / ".model.0123abcd.tmp", "new")
    with pytest.warns(UserWarning, match="a process was killed while it replaced .*model"):
        recover_folder(tmp_path / "model")
    assert content(tmp_path) == {"model/content": b"new"}


@pytest.mark.parametrize("left", [".model.0123abcd.old", ".model.0123abcd.tmp"])
def test_a_replaced_folder_or_an_unfinished_one_is_never_restored(left: str, tmp_path: Path) -> None:
    """The first may be half deleted, the second half written; the user may have deleted the model since."""
    folder(tmp_path / left, "half")
    recover_folder(tmp_path / "model")
    assert content(tmp_path) == {f"{left}/content": b"half"}


def test_a_folder_that_stands_is_not_replaced_by_leftovers(tmp_path: Path) -> None:
    for name in ("model", ".model.0123abcd.old", ".model.0123abcd.tmp"):
        folder(tmp_path / name, name)
    recover_folder(tmp_path / "model")
    assert (tmp_path / "model" / "content").read_text() == "model"


@pytest.mark.parametrize("write", [new_file, new_folder])
def test_the_next_write_deletes_the_leftovers_of_its_own_name_alone(write: Any, tmp_path: Path) -> None:
    ours = [".x.0123abcd.tmp", ".x.456789ab.old", ".x.456789ac.old"]
    others = [".y.0123abcd.tmp", ".x.y.0123abcd.old", ".x.tmp", ".x.0123abcd.tmp.bak", "x.0123abcd.tmp"]
    for name in (*ours, *others):
        folder(tmp_path / name, name)
    (tmp_path / "x").mkdir() if write is new_folder else None
    with write(tmp_path / "x") as new:
        (new / "content" if write is new_folder else new).write_text("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "x"])


@pytest.mark.parametrize("name", ["*", "[a-z]", "?", "model(1)"])
def test_a_name_is_not_a_pattern(name: str, tmp_path: Path) -> None:
    for other in (".model.0123abcd.tmp", ".a.0123abcd.old", ".model1.0123abcd.tmp"):
        folder(tmp_path / other, "theirs")
    before = content(tmp_path)
    with new_folder(tmp_path / name):
        pass
    remove_leftovers(tmp_path / name)
    recover_folder(tmp_path / name)
    assert content(tmp_path) == before


@pytest.mark.parametrize("write", [new_file, new_folder])
def test_what_a_live_process_writes_is_not_swept(write: Any, tmp_path: Path) -> None:
    with write(tmp_path / "x") as new:
        (new / "content" if write is new_folder else new).write_text("new")
        remove_leftovers(tmp_path / "x")
    assert (tmp_path / "x").exists()


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP])
def test_without_locks_leftovers_stay_because_a_live_process_may_write_them(
    error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(fcntl, "flock", flock)
    killed = {".x.0123abcd.tmp", ".x.0123abcd.old"}
    for name in killed:
        (tmp_path / name).mkdir()
    with new_folder(tmp_path / "x") as live:
        remove_leftovers(tmp_path / "x")
        assert live.is_dir()
    with pytest.warns(LockWarning, match="x cannot be locked"), exclusive(tmp_path / "x", "comparing"):
        pass  # works without a lock
    with pytest.warns(LockWarning, match="cannot be locked"), locked(tmp_path):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"x", *killed}


def only_writable(descriptor: int, operation: int, flock: Any = fcntl.flock) -> None:
    """The lock of NFS: the file must be open for writing."""
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    flock(descriptor, operation)


def test_a_folder_on_nfs_is_locked_by_a_file_next_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", only_writable)
    folder, leftover = tmp_path / "run", tmp_path / ".run.0123abcd.tmp"
    folder.mkdir()
    with try_lock(folder) as first, try_lock(folder) as second:
        assert (first, second) == ("locked", "busy")
        assert atomic_files.unknown_entries(tmp_path, ["run"]) == []
        with pytest.raises(UserError, match="another process is comparing in"):
            exclusive(folder, "comparing").__enter__()
    with locked(folder), try_lock(folder) as lock:
        assert lock == "busy"
    leftover.mkdir()
    (tmp_path / "..run.0123abcd.tmp.lock").touch()
    with new_folder(folder) as new:
        (new / "file").touch()
        remove_leftovers(folder)
        assert new.is_dir()
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "file"]


def test_a_lock_file_that_its_owner_deletes_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise two processes would have locked files of the same name."""
    (tmp_path / "run").mkdir()
    file = tmp_path / ".run.lock"

    def flock(descriptor: int, operation: int) -> None:
        only_writable(descriptor, operation)
        if not deleted:
            deleted.append(file.unlink())

    deleted: list[None] = []
    monkeypatch.setattr(fcntl, "flock", flock)
    with try_lock(tmp_path / "run") as lock:
        assert lock == "locked"
        assert file.exists()


def test_a_lock_is_taken_busy_or_unsupported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with try_lock(tmp_path) as first, try_lock(tmp_path) as second:
        assert (first, second) == ("locked", "busy")
    with try_lock(tmp_path / "missing") as lock:
        assert lock == "busy"
    monkeypatch.setattr(atomic_files, "has_fcntl", False)
    with try_lock(tmp_path) as lock:
        assert lock == "unsupported"


def test_one_process_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    code = "import sys, pathlib; from steadygaze.core.atomic_files import exclusive as only_one\n"
    code += "with only_one(pathlib.Path(sys.argv[1]), 'comparing'): print('in', flush=True); sys.stdin.read()"
    first = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"in\n"
        with pytest.raises(UserError, match=rf"process {first.pid} is comparing in {tmp_path}: wait until it ends"):
            exclusive(tmp_path, "comparing").__enter__()
        first.kill()
    with exclusive(tmp_path, "comparing"):
        pass


@pytest.mark.parametrize(("umask", "mode"), [(0o027, 0o640), (0o077, 0o600), (0o002, 0o664)])
def test_files_have_the_permissions_of_the_umask(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        with new_file(tmp_path / "file") as file:
            os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))  # as safetensors does
        with new_folder(tmp_path / "folder") as folder:
            os.close(os.open(folder / "file", os.O_CREAT | os.O_WRONLY, 0o600))
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "file", tmp_path / "folder/file")] == [mode, mode]


def test_the_folder_of_an_output_that_fails_is_removed_with_its_parents(tmp_path: Path) -> None:
    output = exclusive_output(tmp_path / "a" / "b", "auditing")
    output.__enter__()
    assert (tmp_path / "a" / "b").is_dir()
    assert not output.__exit__(ValueError, ValueError("stop"), None)
    assert list(tmp_path.iterdir()) == []
    with exclusive_output(tmp_path / "a" / "b", "auditing"):
        (tmp_path / "a" / "b" / "file").write_text("x")
    assert (tmp_path / "a" / "b" / "file").exists()


@pytest.mark.parametrize("make", [new_file, new_folder])
@pytest.mark.parametrize("is_named", [False, True])
def test_the_error_of_a_full_disk_names_the_path(tmp_path: Path, make: Any, is_named: bool) -> None:
    """The errors of writes have no name, others that of a temporary file."""
    target = tmp_path / "out"
    with pytest.raises(OSError, match="No space") as refused, make(target) as new:
        raise OSError(errno.ENOSPC, "No space left on device", *[str(new)] * is_named)
    assert str(refused.value) == f"[Errno 28] No space left on device: {str(target)!r}"


def test_the_error_of_another_file_keeps_its_name(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="'other'"), new_file(tmp_path / "out.csv"):
        raise OSError(errno.ENOSPC, "No space left on device", "other")
    with pytest.raises(OSError, match=r"broken$"), new_file(tmp_path / "out.csv"):
        raise OSError(errno.EIO, "broken")
