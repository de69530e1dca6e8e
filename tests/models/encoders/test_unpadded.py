"""Passes without padding: states and gradients of the padded rows, fewer tokens, and networks that cannot do it."""

import json
import pickle

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from contract.tiny import VOCABULARY, assert_close, bert
from steadygaze.models.encoders import unpadded, windows
from steadygaze.models.encoders.transformer import Transformer, from_config
from steadygaze.models.encoders.windows import Windows

CUT = Windows(size=20, stride=17, before=1, after=1)
LAYERS = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12}
SMALL = {"vocab_size": VOCABULARY, "max_position_embeddings": 40, "initializer_range": 0.5}


def encoder(kind: str = "bert", **more: float) -> Transformer:
    torch.manual_seed(0)
    return from_config({"model_type": kind, **SMALL, **LAYERS, **more}, CUT).double().eval()


def texts() -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and present tokens of texts with 1 to 5 windows of 14 to 20 pieces; pieces of the fourth text are removed."""
    lengths = torch.tensor([3, 20, 25, 47, 80, 33]).unsqueeze(-1)
    present = torch.arange(82) < lengths + 2
    present[3, 5:9] = False
    return torch.randint(3, VOCABULARY, present.shape, generator=torch.Generator().manual_seed(0)), present


def states_and_gradients(made: Transformer) -> list[torch.Tensor]:
    ids, present = (values.to(made.vectors.device) for values in texts())
    states = made(made.embed(ids), present).hidden
    weights = [weight for name, weight in made.named_parameters() if "token_type" not in name]
    return [states, *torch.autograd.grad((states * torch.linspace(-1, 1, 8, device=ids.device)).sin().sum(), weights)]


@pytest.mark.parametrize("kind", sorted(unpadded.NETWORKS))
def test_states_and_gradients_are_those_of_padded_rows(kind):
    made = encoder(kind)
    assert made.skips_padding
    values = states_and_gradients(made)
    made.skips_padding = False
    assert_close(values, states_and_gradients(made))


def kernel(query, key, value, bias, limits, key_limits, longest, longest_key, **more):
    """The kernel for sequences: attention within limits[i] to limits[i + 1] alone."""
    lengths = limits.diff().tolist()
    assert query.shape[0] == 1, "one sequence"
    assert limits.dtype == key_limits.dtype == torch.int32
    assert sum(lengths) == query.shape[1]
    assert max(lengths) <= longest == longest_key <= query.shape[1]
    assert (bias, more["dropout_p"], more["custom_mask_type"]) == (None, 0, 0)
    rows = zip(*(states.transpose(1, 2).split(lengths, 2) for states in (query, key, value)), strict=True)
    states = [scaled_dot_product_attention(*row, scale=more["scale"]) for row in rows]
    return torch.cat(states, 2).transpose(1, 2), None, None, None, longest, longest_key


@pytest.fixture
def sequence_kernel(monkeypatch):
    """The kernel, on a CPU."""
    monkeypatch.setattr(unpadded, "has_sequence_kernel", lambda states: True)
    monkeypatch.setattr(torch.ops.aten, "_efficient_attention_forward", kernel)


def test_the_kernel_for_sequences_gives_the_states_and_gradients_of_padded_rows(request):
    made = encoder()
    expected = states_and_gradients(made)
    request.getfixturevalue("sequence_kernel")
    assert_close(states_and_gradients(made), expected)


def test_the_kernel_reads_a_single_window_with_removed_pieces(request, monkeypatch):
    """The rows have fewer tokens in all than the window has columns."""
    made = encoder()
    monkeypatch.setattr(windows, "MAX_TOKENS", {"cpu": 1})  # one window per pass
    ids, present = texts()
    present[:, 4:12] = False
    expected = made(made.embed(ids), present).hidden
    request.getfixturevalue("sequence_kernel")
    assert_close(made(made.embed(ids), present).hidden, expected)


def test_dropout_is_not_left_to_the_kernel(sequence_kernel, monkeypatch):
    made = encoder(attention_probs_dropout_prob=0.5, hidden_dropout_prob=0.0)
    calls = []
    padded = unpadded.padded_attention
    monkeypatch.setattr(unpadded, "padded_attention", lambda *call: calls.append(call[4]) or padded(*call))
    ids, present = texts()
    states = made(made.embed(ids), present).hidden
    assert calls == []
    assert (made.train()(made.embed(ids), present).hidden - states).abs().max() > 0.1
    assert set(calls) == {0.5}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_states_and_gradients_of_a_gpu_are_those_of_padded_rows():
    made = encoder(num_attention_heads=1).to("cuda", torch.float32)
    assert unpadded.has_sequence_kernel(made.vectors[None, None])
    values = states_and_gradients(made)
    made.skips_padding = False
    assert_close(values, states_and_gradients(made), torch.float32)


def test_a_pass_of_equal_windows_is_not_copied():
    (part,) = CUT.passes(torch.ones(2, 36, dtype=torch.bool), buckets=1)  # 34 pieces: two windows of 19 each
    assert part.rows.is_full
    assert part.rows.shape == (4, 21)
    assert torch.equal(part.rows.columns, torch.arange(21).repeat(4))
    values = torch.rand(84, 3)
    assert part.rows.split(values).data_ptr() == part.rows.join(part.rows.split(values)).data_ptr() == values.data_ptr()


def test_layers_outside_of_attention_read_present_tokens_alone(monkeypatch):
    made, shapes = encoder(), []
    made.network.encoder.layer[0].intermediate.register_forward_hook(lambda *call: shapes.append(call[1][0].shape))
    ids, present = texts()
    made(made.embed(ids), present)
    sizes = [len(part.tokens) for part in CUT.passes(present, buckets=1)]
    assert [shape[:2] for shape in shapes] == [(1, size) for size in sizes]


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
