"""Device and precision of training, and the errors if they are not available."""

from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState

from steadygaze.core.errors import UserError
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.inference import best_device, check_device
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.device import accelerator, lstm_runs_in_bfloat16, own_state
from training.toys import make_model, make_run, weights


def refused(device: str, precision: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence), accelerator(device, precision):
        pass


def test_a_wrong_device_is_refused_naming_the_nearest() -> None:
    with pytest.raises(UserError, match=r"unknown device 'gpu'.*Known: auto, cpu, cuda, mps"):
        check_device("gpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    refused("cuda", "no", "torch finds no GPU; use --device cpu")


def test_the_cpu_is_the_cpu() -> None:
    with accelerator("cpu", "no") as accelerate:
        assert best_device("cpu") == accelerate.device == torch.device("cpu")


def test_half_precision_on_a_cpu_is_refused() -> None:
    refused("cpu", "fp16", "precision 'fp16' needs a GPU")


@pytest.mark.parametrize("launcher", ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_several_processes_are_refused_before_they_wait_for_one_another(
    launcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(launcher, "2")
    refused("cpu", "no", "training runs in one process")


def test_two_runs_of_different_precision_follow_each_other_in_one_process() -> None:
    results = []
    for precision in ("no", "bf16", "no"):
        with accelerator("cpu", precision) as accelerate:
            results.append(accelerate.mixed_precision)
    assert results == ["no", "bf16", "no"]


def states() -> list[dict[str, object]]:
    return [dict(kind._shared_state) for kind in (PartialState, AcceleratorState, GradientState)]


@pytest.mark.parametrize("fails", [False, True])
def test_a_users_own_accelerator_is_as_it_was_after_a_fit(fails: bool, tmp_path: Path) -> None:
    with own_state():
        users = Accelerator(mixed_precision="bf16", cpu=True, gradient_accumulation_steps=3)
        before = states()
        clf = TextClassifier("average", epochs=1, device="cpu", verbose=False)
        if fails:
            (tmp_path / "checkpoint.safetensors").touch()
            with pytest.raises(UserError):
                clf.fit(["good", "bad"] * 10, [1, 0] * 10, checkpoint=tmp_path)
        else:
            clf.fit(["good", "bad"] * 10, [1, 0] * 10)
        assert (users.mixed_precision, users.gradient_accumulation_steps) == ("bf16", 3)
        assert states() == before


def test_a_fit_leaves_nothing_behind_for_an_accelerator_made_later() -> None:
    with own_state():
        with accelerator("cpu", "bf16"):
            assert states() != [{}, {}, {}]
        assert states() == [{}, {}, {}]


@pytest.mark.skipif(not lstm_runs_in_bfloat16(), reason="this CPU cannot run an LSTM in bfloat16")
def test_bfloat16_trains_in_it_and_keeps_full_weights() -> None:
    plain = make_run(Vanilla())
    with accelerator("cpu", "bf16") as accelerate:
        mixed = make_run(Vanilla(), accelerate=accelerate)
        model = mixed.execute()
    assert {value.dtype for value in model.state_dict().values()} == {torch.float32}
    assert weights(model) != weights(plain.execute())
    ours, full = (run.history[-1]["terms"]["task"] for run in (mixed, plain))
    assert ours == pytest.approx(full, rel=0.02)  # eight bits of mantissa
    assert weights(make_model()).keys() == weights(model).keys()


def test_an_lstm_in_bfloat16_is_refused_where_the_cpu_cannot_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steadygaze.training.device.lstm_runs_in_bfloat16", lambda: False)
    clf = TextClassifier("bilstm", settings={"precision": "bf16"}, device="cpu", verbose=False)
    with pytest.raises(UserError, match="this CPU cannot run an LSTM in bfloat16"):
        clf.fit(["good", "bad"] * 20, [1, 0] * 20)
