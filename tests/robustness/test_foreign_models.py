"""Model folders that were damaged or made by an attacker: one sentence and exit code 2, from every command."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import steadygaze as sg
from estimator.tiny import TEXTS
from robustness.conftest import run
from robustness.damage import JSON, SPECIAL, WEIGHTS, Damage, changed, content, filled, tensors
from robustness.harness import assert_clean
from steadygaze.estimator.model_folder import FILES

TEXT = "the film was good and fine"
COMMANDS: dict[str, list[str]] = {
    "predict": ["predict", "{}/model", TEXT],
    "predict-json": ["predict", "{}/model", "--file", "{}/films.csv", "--json"],
    "explain": ["explain", "{}/model", TEXT],
    "explain-lime": ["explain", "{}/model", TEXT, "--explainer", "lime", "--json"],
    "audit": ["audit", "{}/model", "--data", "{}/films.csv"],
    "audit-gate": ["audit", "{}/model", "--data", "{}/films.csv", "--require", "jensen-shannon/noise<=0.02"],
    "audit-accuracy": ["audit", "{}/model", "--data", "{}/films.csv", "--require", "accuracy>=0.4", "--bundle", "{}/b"],
    "certify": ["certify", "{}/model", "--data", "{}/films.csv", "--radius", "0.1"],
    "fit-explainer": ["fit-explainer", "{}/model", "--data", "{}/films.csv", "--k", "2", "--out", "{}/x", "--quiet"],
    "train-from": [
        "train", "{}/films.csv", "--technique", "anchored", "--from", "{}/model", "--out", "{}/y",
        "--teacher-cache", "{}/s", "--set", "hidden=4", "--set", "dimension=6",
    ],
}  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", SPECIAL)
def test_what_is_not_a_regular_file_is_refused_and_never_waited_for(file: str, damage: str, place: Path) -> None:
    SPECIAL[damage](place / "model" / file)
    result = run(place, *COMMANDS["predict"], limit=20)
    assert_clean(result, codes={2})
    assert file in result.err


@pytest.mark.sweep
@pytest.mark.parametrize("command", ["audit", "explain", "fit-explainer", "train-from"])
@pytest.mark.parametrize("damage", ["fifo", "link-loop"])
def test_other_commands_refuse_it_too(command: str, damage: str, place: Path) -> None:
    SPECIAL[damage](place / "model" / "config.json")
    assert_clean(run(place, *COMMANDS[command], limit=20), codes={2})


DAMAGED: dict[str, dict[str, Damage]] = {
    "config.json": JSON,
    "tokenizer.json": {name: damage for name, damage in JSON.items() if name not in ("a-list", "a-number", "null")},
    "model.safetensors": WEIGHTS,
}


@pytest.mark.parametrize(("file", "damage"), [(file, damage) for file in DAMAGED for damage in DAMAGED[file]])
def test_a_damaged_file_is_refused_by_its_name(file: str, damage: str, place: Path) -> None:
    DAMAGED[file][damage](place / "model" / file)
    result = run(place, *COMMANDS["explain"])
    assert_clean(result, codes={2})
    assert file in result.err


@pytest.mark.sweep
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_pass_no_command_and_no_gate(command: str, value: float, place: Path) -> None:
    filled(value)(place / "model" / "model.safetensors")
    result = run(place, *COMMANDS[command])
    assert_clean(result, codes={2})
    assert "contains NaN or infinity" in result.err
    assert result.out == ""


def overflow(weights: dict[str, torch.Tensor]) -> None:
    """Finite weights with one logit of 3e38 (1 + s) and one of 3e38 (1 − s), s the sum of the hidden states."""
    weights["decoder.output.weight"][:] = torch.tensor([[3e38], [-3e38]])
    weights["decoder.output.bias"][:] = 3e38


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "train-from"])
def test_finite_weights_whose_output_is_not_finite_pass_no_command_and_no_gate(command: str, place: Path) -> None:
    tensors(overflow)(place / "model" / "model.safetensors")
    result = run(place, *COMMANDS[command])
    assert_clean(result, codes={2})
    assert "the model's output for text" in result.err
    assert "nan" not in result.out.lower()


def test_the_position_of_the_text_is_named(place: Path) -> None:
    tensors(overflow)(place / "model" / "model.safetensors")
    clf = sg.load(place / "model", device="cpu")
    for query in (clf.predict_proba, clf.predict, clf.explain):
        with pytest.raises(sg.UserError, match="the model's output for text 1 is not finite"):
            query(TEXTS[:3])


CONFIGS: dict[str, Damage] = {
    "hidden": changed(architecture={"hidden": 8192, "dimension": 4096}),
    "more-hidden": changed(architecture={"hidden": 10**9}),
    "no-classes": changed(classes=[]),
    "one-class": changed(classes=["a"]),
    "many-classes": changed(classes=list(range(200_000))),
    "classes-of-lists": changed(classes=[[], {}]),
    "schema": changed(schema=10**18),
    "schema-text": changed(schema="1"),
    "length": changed(max_length=-1),
    "long-length": changed(max_length=10**300),
    "encoder": changed(encoder="transformer:x", network={"model_type": "bert", "num_hidden_layers": 10**6}),
    "encoder-width": changed(encoder="transformer:x", network={"model_type": "bert", "hidden_size": 10**7}),
    "encoder-heads": changed(encoder="transformer:x", network={"model_type": "bert", "num_attention_heads": 0}),
    "encoder-kind": changed(encoder="transformer:x", network={"model_type": ["bert"]}),
    "technique": changed(technique=7),
    "network-list": changed(network=[1]),
    "kind": changed(kind="letters"),
}


@pytest.mark.sweep(keep=5)
@pytest.mark.parametrize("damage", CONFIGS)
def test_a_configuration_of_impossible_values_is_refused_before_anything_is_allocated(damage: str, place: Path) -> None:
    CONFIGS[damage](place / "model" / "config.json")
    result = run(place, *COMMANDS["predict"], limit=30)
    assert_clean(result, codes={2})


LOADS: dict[str, Callable[[Path], object]] = {
    "load": lambda place: sg.load(place / "model", device="cpu"),
    "audit": lambda place: sg.audit(place / "model", TEXTS),
    "load_explainer": lambda place: sg.load_explainer(place / "model", place / "model"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("damage", ["fifo", "dev-zero", "link-loop"])
def test_the_python_functions_raise_a_user_error(load: str, damage: str, place: Path) -> None:
    SPECIAL[damage](place / "model" / "config.json")
    with pytest.raises(sg.UserError):
        LOADS[load](place)


def test_a_tokenizer_with_ids_beyond_the_vectors_is_refused(place: Path) -> None:
    text = (place / "model" / "tokenizer.json").read_text()
    content(text.replace('"good": ', '"good": 99999'))(place / "model" / "tokenizer.json")
    result = run(place, *COMMANDS["predict"])
    assert_clean(result, codes={2})
    assert "no tensor has a vector for each of the" in result.err
