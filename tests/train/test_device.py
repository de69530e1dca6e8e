"""Where training happens, and what is said when it cannot happen there."""

import pytest
import torch
from accelerate.state import AcceleratorState

from steadygaze.errors import UserError
from steadygaze.objective.vanilla import Vanilla
from steadygaze.train.device import accelerator, best, check
from train.toys import make_model, make_run, weights


def test_a_wrong_device_is_refused_naming_the_nearest() -> None:
    with pytest.raises(UserError, match=r"unknown device 'gpu'.*Known: auto, cpu, cuda, mps"):
        check("gpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="torch sees no GPU here; use --device cpu"):
        accelerator("cuda", "no")


def test_the_cpu_is_the_cpu() -> None:
    assert best("cpu") == accelerator("cpu", "no").device == torch.device("cpu")


def test_half_precision_on_a_cpu_is_refused() -> None:
    with pytest.raises(UserError, match="precision 'fp16' needs a GPU"):
        accelerator("cpu", "fp16")


@pytest.mark.parametrize("launcher", ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_several_processes_are_refused_before_they_wait_for_one_another(
    launcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(launcher, "2")
    with pytest.raises(UserError, match="training runs in one process"):
        accelerator("cpu", "no")


def test_two_runs_of_different_precision_follow_each_other_in_one_process() -> None:
    first = accelerator("cpu", "no").mixed_precision
    second = accelerator("cpu", "bf16").mixed_precision
    assert (first, second) == ("no", "bf16")
    AcceleratorState._reset_state(reset_partial_state=True)


def test_bfloat16_trains_in_it_and_keeps_full_weights() -> None:
    plain = make_run(Vanilla())
    mixed = make_run(Vanilla())
    object.__setattr__(mixed.job, "accelerator", accelerator("cpu", "bf16"))
    model = mixed.execute()
    assert {value.dtype for value in model.state_dict().values()} == {torch.float32}
    assert weights(model) != weights(plain.execute())
    ours, full = (run.history[-1]["terms"]["task"] for run in (mixed, plain))
    assert ours == pytest.approx(full, rel=0.02)  # eight bits of mantissa
    assert weights(make_model()).keys() == weights(model).keys()
