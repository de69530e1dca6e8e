"""Two processes of DDP, each with half of a batch, have the gradients of the whole batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch.testing import assert_close

SCRIPT = Path(__file__).with_name("first_gradients.py")


def run(folder: Path, *command: str) -> None:
    path = os.pathsep.join([str(SCRIPT.parents[1]), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    result = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "checkpointing"), [("roberta", False), ("bert", True)])
def test_two_processes_have_the_gradients_of_a_whole_batch(tmp_path: Path, kind: str, checkpointing: bool) -> None:
    run(tmp_path, str(SCRIPT), str(tmp_path), kind, "8", "False")
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    run(tmp_path, *launch, str(SCRIPT), str(tmp_path), kind, "4", str(checkpointing))
    whole, halves = (load_file(tmp_path / f"{number}.safetensors") for number in (1, 2))
    assert whole.keys() == halves.keys()
    assert max(float(value.norm()) for value in whole.values()) > 0.01
    for name, value in whole.items():
        assert_close(halves[name], value, rtol=1e-9, atol=1e-11)
