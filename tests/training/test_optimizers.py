"""Weight decay, learning rates, and the errors for players without parameters or with shared ones."""

import pytest
import torch
from torch import nn

from steadygaze.core.settings import settings
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.models.encoders import ENCODERS
from steadygaze.models.encoders.transformer import from_config
from steadygaze.techniques.rnp import Rnp
from steadygaze.techniques.technique import Player, Stage
from steadygaze.training import optimizers
from steadygaze.training.optimizers import Training
from training.toys import Vanilla, make_model, make_run, model_for, weights

BERT = {
    "model_type": "bert",
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 8,
    "vocab_size": 20,
    "max_position_embeddings": 16,
}


def groups(model: nn.Module, *players: Player, **training: object) -> dict[str, tuple[str, float, float]]:
    """(player, step size, decay) of every parameter that moves."""
    modules = {"critic": nn.Linear(2, 2)}
    named = optimizers.named_parameters(model, modules)
    adam = optimizers.make_optimizer(model, modules, players or (Player(),), Training(**training))  # type: ignore[arg-type]
    names = {id(parameter): name for name, parameter in named.items()}
    return {
        names[id(parameter)]: (group["player"], group["lr"], group["weight_decay"])
        for group in adam.param_groups
        for parameter in group["params"]
    }


def transformer() -> Classifier:
    return Classifier(from_config(BERT), Architecture(), classes=2, pair=False)


@pytest.mark.parametrize("encoder", [*ENCODERS, "transformer"])
def test_decay_acts_on_tower_and_decoder_and_on_nothing_else(encoder: str) -> None:
    model = transformer() if encoder == "transformer" else make_model(encoder)
    result = groups(model)
    assert len(result) == len(list(model.parameters())) + 2
    for name, (_, _, decay) in result.items():
        spared = name.startswith(("model.scorer.", "modules.")) or "embedding.weight" in name or "_embeddings." in name
        assert decay == (0.0 if spared else 1e-5), name
    assert sum(decay > 0 for _, _, decay in result.values()) >= 4  # weight and bias of a tower and of the decoder


@pytest.mark.parametrize("encoder", ["bilstm", "transformer"])
def test_a_transformer_moves_more_slowly_than_what_stands_on_it(encoder: str) -> None:
    model = transformer() if encoder == "transformer" else make_model(encoder)
    rates = {name: rate for name, (_, rate, _) in groups(model).items()}
    inside = {rate for name, rate in rates.items() if name.startswith("model.encoder.")}
    assert inside == {5e-5 if encoder == "transformer" else 1e-3}
    assert {rate for name, rate in rates.items() if not name.startswith("model.encoder.")} == {1e-3}


def test_a_chosen_encoder_rate_wins_over_the_usual_and_a_players_own_over_both() -> None:
    chosen = groups(transformer(), encoder_learning_rate=1e-4, learning_rate=0.5)
    assert {rate for _, rate, _ in chosen.values()} == {1e-4, 0.5}
    own = groups(make_model(), Player("slow", trains=("model.encoder",), learning_rate=1e-6), encoder_learning_rate=1)
    assert {(player, rate) for player, rate, _ in own.values()} == {("slow", 1e-6)}


@pytest.mark.parametrize("chosen", [None, 2e-5])
def test_a_transformer_keeps_its_own_rate_whoever_moves_it(chosen: float | None) -> None:
    result = groups(transformer(), Player("fast", learning_rate=0.3), encoder_learning_rate=chosen)
    assert {rate for name, (_, rate, _) in result.items() if name.startswith("model.encoder.")} == {chosen or 5e-5}
    assert {rate for name, (_, rate, _) in result.items() if not name.startswith("model.encoder.")} == {0.3}


@pytest.mark.parametrize("encoder", ["bigru", "transformer"])
def test_a_rationalizer_scores_at_the_generators_rate_and_its_transformers_move_at_their_own(encoder: str) -> None:
    technique = Rnp(generator_learning_rate=0.3)
    if encoder == "transformer":
        model = technique.build(
            lambda: from_config(BERT), Architecture(), 2, False, lambda: torch.ones(20, dtype=torch.bool)
        )
    else:
        model = model_for(technique, encoder)
    certificates: dict[str, set[float]] = {}
    for name, (_, rate, _) in groups(model, *technique.players()).items():
        certificates.setdefault(".".join(name.split(".")[1:3]), set()).add(rate)
    slow = encoder == "transformer"
    assert certificates == {
        "generator.encoder": {5e-5 if slow else 0.3},
        "generator.scorer": {0.3},
        "predictor.encoder": {5e-5 if slow else 1e-3},
        "predictor.heads": {1e-3},
    }


def test_a_part_is_known_by_what_it_is_wherever_it_stands() -> None:
    result = groups(nn.ModuleDict({"generator": transformer(), "predictor": make_model(), "gate": nn.Linear(2, 2)}))
    for name, (_, rate, decay) in result.items():
        spared = "embedding" in name or ".scorer." in name or name.startswith("modules.")
        assert decay == (0.0 if spared and "LayerNorm" not in name else 1e-5), name
        assert rate == (5e-5 if name.startswith("model.generator.encoder.") else 1e-3), name
    assert result["model.gate.weight"] == ("all", 1e-3, 1e-5)


def test_frozen_vectors_are_in_no_group() -> None:
    assert "model.encoder.embedding.weight" not in groups(make_model(train_vectors=False))


def test_a_stage_freezes_what_it_does_not_train_and_what_nobody_moves() -> None:
    model = make_model(train_vectors=False)
    named = optimizers.named_parameters(model, {"critic": nn.Linear(2, 2)})
    optimizers.player_parameters(named, Stage("s", trains=("model.encoder", "modules.")), [Player(trains=("model.",))])
    moving = {name for name, parameter in named.items() if parameter.requires_grad}
    assert moving == {name for name in named if name.startswith("model.encoder.text.")}


def test_the_step_size_falls_linearly_to_zero_over_a_stage() -> None:
    parameter = nn.Parameter(torch.ones(1))
    adam = torch.optim.Adam([{"params": [parameter], "lr": 0.4, "rate": 0.4}])
    results = []
    for step in range(5):
        optimizers.set_rates(adam, "linear", step / 4)
        results.append(adam.param_groups[0]["lr"])
    assert results == pytest.approx([0.4, 0.3, 0.2, 0.1, 0.0])
    optimizers.set_rates(adam, "constant", 0.5)
    assert adam.param_groups[0]["lr"] == 0.0  # a constant step size is never written


def test_a_falling_step_size_changes_training() -> None:
    falling, constant = (make_run(Vanilla(), schedule=schedule).execute() for schedule in ("linear", "constant"))
    assert weights(falling) != weights(constant)


def test_players_must_have_something_to_move_and_must_not_share_it() -> None:
    @settings
    class Wrong(Vanilla):
        trains: tuple[str, ...]

        def players(self) -> tuple[Player, ...]:
            return Player("one", trains=("model.encoder",)), Player("two", trains=self.trains)

    with pytest.raises(ValueError, match=r"player 'two' has no parameters.* nothing matches \('model.scrore',\)"):
        make_run(Wrong(trains=("model.scrore",))).execute()
    with pytest.raises(ValueError, match=r"players 'one' and 'two' both train model.encoder.embedding.weight"):
        make_run(Wrong(trains=("model.",))).execute()
