"""SIGKILL, with real processes: the study of the same name, in small."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow  # tests/test_kills.py kills commands at their disk operations
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is a Unix thing")
def test_a_run_killed_at_any_moment_and_resumed_ends_in_the_same_bytes() -> None:
    command = [sys.executable, "-m", "studies", "run", "kill_resume", "--kills", "3", "--inside", "1", "--ending", "1"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search("3 kills, [123] inside a checkpoint's write, [123] at the end, 0 different", ended.stdout)
