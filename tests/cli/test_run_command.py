"""Standard streams that are closed or broken: the exit code is the one that the command has without them."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from report.audited import full_report
from robustness.small import Small, small
from steadygaze import cli
from steadygaze.adapters import streaming
from steadygaze.cli import audit_and_verify
from steadygaze.cli.run_command import termination_as_interruption

FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return small(tmp_path_factory.mktemp("small"))


@contextmanager
def closed_pipe() -> Iterator[io.TextIOWrapper]:
    """A stream whose other end is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, "w", encoding="utf-8")
    try:
        yield stream
    finally:
        with suppress(BrokenPipeError):
            stream.close()


def exit_code(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["list", "techniques"], ["list", "corpora", "--json"]]
)
def test_a_closed_pipe_does_not_fail_a_command(
    arguments: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closed_pipe() as stream:
        monkeypatch.setattr(sys, name, stream)
        assert exit_code(*arguments) == 0
        assert getattr(sys, name) is stream, "the caller's stream is restored"


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("more", [[], ["--json"]])
@pytest.mark.parametrize("requirement", ["accuracy>=0", "accuracy>=1.5"])
def test_a_closed_pipe_keeps_the_exit_code_of_the_gate(
    requirement: str, more: list[str], made: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_and_verify.LoadedAudit, "run", lambda *_: full_report(plots={}))
    command = ["audit", made.model, "--data", made.data, "--require", requirement, *more]
    expected = exit_code(*command)
    assert expected == (1 if requirement.endswith("1.5") else 0)
    for names in (["stdout"], ["stderr"], ["stdout", "stderr"]):
        with closed_pipe() as stream, monkeypatch.context() as patch:
            for name in names:
                patch.setattr(sys, name, stream)
            assert exit_code(*command) == expected


def test_a_closed_pipe_keeps_the_exit_code_of_a_verification(
    made: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_and_verify.LoadedAudit, "run", lambda *_: full_report(plots={}))
    assert exit_code("audit", made.model, "--data", made.data, "--bundle", tmp_path / "b") == 0
    with (tmp_path / "b" / "report.html").open("a") as page:
        page.write("altered")
    with closed_pipe() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert exit_code("audit", "--verify", tmp_path / "b") == 1


def test_a_wrong_argument_still_exits_with_2_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with closed_pipe() as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        assert exit_code("list", "nothing") == 2


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_predict_stops_if_its_pipe_is_closed(
    more: list[str], made: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "many.txt").write_text("a text like any other\n" * 20_000)
    seen, predict = [], streaming.predict

    def counted(*arguments: object, **more: object) -> Iterator[object]:
        for record in predict(*arguments, **more):  # type: ignore[arg-type]
            seen.append(record)
            yield record

    monkeypatch.setattr(streaming, "predict", counted)
    with closed_pipe() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert exit_code("predict", made.model, "--file", tmp_path / "many.txt", "--device", "cpu", *more) == 0
    assert len(seen) < 2000


@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_stream_that_the_caller_closed_is_no_fault(
    more: list[str], name: str, made: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python has None in its place."""
    monkeypatch.setattr(sys, name, None)
    assert exit_code("predict", made.model, "a text", "--device", "cpu", *more) == 0


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["--version"], ["list", "techniques"]])
def test_a_full_disk_exits_with_2_and_a_message(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = FULL.open("w")
    monkeypatch.setattr(sys, "stdout", full)
    assert exit_code(*arguments) == 2
    full.close()
    assert "error: [Errno 28] No space left on device" in capsys.readouterr().err


def test_a_hangup_that_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with termination_as_interruption() as received:
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert received == []


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_the_process_ends_with_that_exit_code(unbuffered: str) -> None:
    """Python flushes the streams once more when it ends, and would exit with 120."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "steadygaze", "--version"]
    with os.fdopen(writer, "wb") as stream:
        pipes = {"stdout": stream, "stderr": subprocess.PIPE, "env": {**os.environ, "PYTHONUNBUFFERED": unbuffered}}
        ended = subprocess.run(command, **pipes, timeout=60, check=False)  # type: ignore[call-overload]
    assert (ended.returncode, ended.stderr) == (0, b"")
