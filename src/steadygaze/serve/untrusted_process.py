"""Run a module of this package on untrusted input, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path


def run_module(
    name: str, *arguments: str, body: bytes = b"", seconds: float, **variables: str
) -> "subprocess.CompletedProcess[bytes]":
    """Run it with a time limit.  With -P, nothing is imported from the working directory, where others may write."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]
    environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-P", "-m", name, *arguments]
    return subprocess.run(command, input=body, env=environment, capture_output=True, timeout=seconds, check=False)
