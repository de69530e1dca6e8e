"""Passes without padding: states and gradients of the padded rows, fewer tokens, and networks that cannot do it."""

import json
import pickle

import pytest
import torch

from contract.tiny import VOCABULARY, assert_close, bert
from steadygaze.models.encoders import unpadded
from steadygaze.models.encoders.transformer import Transformer, from_config
from steadygaze.models.encoders.windows import Windows

CUT = Windows(size=20, stride=17, before=1, after=1)
LAYERS = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12}
SMALL = {"vocab_size": VOCABULARY, "max_position_embeddings": 40, "initializer_range": 0.5}


def encoder(kind: str = "bert") -> Transformer:
    torch.manual_seed(0)
    return from_config({"model_type": kind, **SMALL, **LAYERS}, CUT).double().eval()


def texts() -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and present tokens of texts with 1 to 5 windows of 14 to 20 pieces; pieces of the fourth text are removed."""
    lengths = torch.tensor([3, 20, 25, 47, 80, 33]).unsqueeze(-1)
    present = torch.arange(82) < lengths + 2
    present[3, 5:9] = False
    return torch.randint(3, VOCABULARY, present.shape, generator=torch.Generator().manual_seed(0)), present


def states_and_gradients(made: Transformer) -> list[torch.Tensor]:
    ids, present = texts()
    states = made(made.embed(ids), present).hidden
    weights = [weight for name, weight in made.named_parameters() if "token_type" not in name]
    return [states, *torch.autograd.grad((states * torch.linspace(-1, 1, 8)).sin().sum(), weights)]


@pytest.mark.parametrize("kind", sorted(unpadded.NETWORKS))
def test_states_and_gradients_are_those_of_padded_rows(kind):
    made = encoder(kind)
    assert made.skips_padding
    values = states_and_gradients(made)
    made.skips_padding = False
    assert_close(values, states_and_gradients(made))


def test_layers_outside_of_attention_read_present_tokens_alone(monkeypatch):
    made, shapes = encoder(), []
    made.network.encoder.layer[0].intermediate.register_forward_hook(lambda *call: shapes.append(call[1][0].shape))
    ids, present = texts()
    made(made.embed(ids), present)
    sizes = [part.exists & present.flatten()[part.tokens] for part in CUT.passes(present, buckets=1)]
    assert [shape[:2] for shape in shapes] == [(1, int(size.sum())) for size in sizes]


def test_other_networks_and_kernels_read_padded_rows():
    sizes = {"dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 12}
    assert not from_config({"model_type": "distilbert", **SMALL, **sizes}, CUT).skips_padding
    network = bert().network
    network.config._attn_implementation = "eager"
    assert not Transformer(network, CUT).skips_padding
    assert network.config._attn_implementation == "eager"


def test_a_network_that_does_not_pass_the_rows_on_is_refused():
    made = encoder()
    made.network.config._attn_implementation = "sdpa"
    ids, present = texts()
    with pytest.raises(RuntimeError, match="does not pass the rows of a batch"):
        made(made.embed(ids), present)


def test_a_pickled_encoder_runs_in_another_process(monkeypatch):
    from transformers import AttentionInterface

    made = encoder()
    expected, stored = states_and_gradients(made), pickle.dumps(made)
    monkeypatch.delitem(AttentionInterface._global_mapping, unpadded.NAME)  # as in a new process
    assert_close(states_and_gradients(pickle.loads(stored)), expected)


def test_a_saved_configuration_does_not_name_the_attention_function():
    assert unpadded.NAME not in json.dumps(encoder().config.to_dict())
