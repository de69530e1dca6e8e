"""Recurrent towers against torch's own packed networks with the same weights, on ragged batches."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from contract.tiny import assert_close
from steadygaze.models.encoders.word_encoders import CELLS, Recurrent, _reversal

lengths = st.lists(st.integers(1, 9), min_size=1, max_size=5)


def packed(tower: Recurrent, cell: str, embedded: torch.Tensor, sizes: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states and last states of torch's network, given our weights, reading a packed batch."""
    twin = CELLS[cell](5, 3, batch_first=True, bidirectional=tower.backwards is not None).double()
    state = dict(tower.forwards.state_dict())
    if tower.backwards is not None:
        state |= {f"{name}_reverse": value for name, value in tower.backwards.state_dict().items()}
    twin.load_state_dict(state)
    output, last = twin(pack_padded_sequence(embedded, torch.tensor(sizes), batch_first=True, enforce_sorted=False))
    last = last[0] if cell == "lstm" else last  # an LSTM also gives its cells
    return pad_packed_sequence(output, batch_first=True)[0], last.transpose(0, 1).flatten(1)


@pytest.mark.sweep
@pytest.mark.parametrize("both", [False, True], ids=["one direction", "both"])
@pytest.mark.parametrize("cell", CELLS)
@settings(max_examples=12, deadline=None)
@given(sizes=lengths)
def test_states_are_those_of_torchs_packed_network(cell, both, sizes):
    torch.manual_seed(0)
    tower = Recurrent(cell, 5, 3, both=both).double()
    embedded = torch.randn(len(sizes), max(sizes), 5, dtype=torch.float64)
    present = torch.arange(max(sizes)) < torch.tensor(sizes)[:, None]
    result = tower(embedded, present)
    expected = packed(tower, cell, embedded, sizes)
    assert_close(result[0], expected[0])
    assert_close(result[1], expected[1])


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_are_those_of_torchs_packed_network(cell):
    sizes = [7, 1, 4]
    tower = Recurrent(cell, 5, 3, both=True).double()
    embedded = torch.randn(3, 7, 5, dtype=torch.float64, requires_grad=True)
    result = tower(embedded, torch.arange(7) < torch.tensor(sizes)[:, None])
    expected = packed(tower, cell, embedded, sizes)
    gradients = [
        torch.autograd.grad(states.sin().sum() + last.square().sum(), embedded)[0]
        for states, last in (result, expected)
    ]
    assert_close(*gradients)
    assert not gradients[0][1, 1:].any()


def test_reversal_turns_the_real_tokens_round_and_leaves_the_padding():
    present = torch.tensor([[True, True, True, False], [True, False, False, False], [False] * 4])
    assert _reversal(present).tolist() == [[2, 1, 0, 3], [0, 1, 2, 3], [0, 1, 2, 3]]


def test_in_one_direction_a_word_does_not_know_what_follows_and_in_both_it_does():
    embedded, present = torch.randn(1, 6, 5), torch.ones(1, 6, dtype=torch.bool)
    changed = embedded.clone()
    changed[0, -1] += 1
    for both, blind in ((False, True), (True, False)):
        tower: nn.Module = Recurrent("gru", 5, 3, both=both)
        assert torch.allclose(tower(embedded, present)[0][:, :-1], tower(changed, present)[0][:, :-1]) is blind
