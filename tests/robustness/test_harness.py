"""The harness finds what it looks for: other exit codes, long or unprintable lines, changed files, hangs."""

import os
import time
from pathlib import Path

import pytest

from robustness.harness import Hang, Result, assert_clean, changes, run_case, snapshot, time_limit


def ended(code: int = 2, err: str = "error: x\n", changed: tuple[str, ...] = ()) -> Result:
    return Result(("predict",), code, b"", err.encode(), changed)


def test_a_command_is_run_and_a_user_error_is_clean(tmp_path: Path) -> None:
    result = run_case(["predict", tmp_path / "none", "a text"], watch=tmp_path)
    assert result.code == 2
    assert "none" in result.err
    assert_clean(result)
    assert run_case(["--version"]).out.startswith("steadygaze ")


@pytest.mark.parametrize(
    "result",
    [
        ended(code=70),
        ended(err="error: " + "x" * 500 + "\n"),
        ended(err="error: \x1b[31mred\n"),
        ended(err="error: one\nand two\n"),
        ended(err="Traceback\n"),
        ended(changed=("a.csv",)),
    ],
)
def test_assert_clean_fails_for_an_unclean_result(result: Result) -> None:
    with pytest.raises(AssertionError):
        assert_clean(result)


def test_warnings_may_come_before_an_error_and_outputs_may_be_written() -> None:
    assert_clean(ended(err="! few texts\nerror: x\n"))
    assert_clean(ended(code=0, err="", changed=("a.html",)), written={"a.html"})


def test_a_snapshot_sees_content_links_and_new_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    before = snapshot([tmp_path])
    (tmp_path / "a").write_text("2")
    (tmp_path / "b").unlink()
    (tmp_path / "c").mkdir()
    assert changes(before, snapshot([tmp_path])) == ("a", "b", "c")


def test_a_hang_is_ended() -> None:
    with pytest.raises(Hang), time_limit(0.05):
        time.sleep(5)
