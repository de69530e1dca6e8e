"""Word encoders: vectors and dropout; towers against loops over words, and against torch's own packed networks."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from contract.tiny import VOCABULARY, assert_close, batch, split
from steadygaze.models.classifier import Architecture, word_encoder
from steadygaze.models.encoders.word_encoders import (
    CELLS,
    WIDTHS,
    Average,
    Convolutional,
    Recurrent,
    _reversal,
    embedding,
)


def test_vectors_that_are_given_are_taken_and_padding_stays_zero():
    vectors = torch.randn(6, 3)
    table = embedding(6, 3, vectors, trainable=True)
    assert torch.equal(table.weight[1:], vectors[1:])
    assert not table.weight[0].any()
    assert table.weight.requires_grad


def test_vectors_that_are_not_given_have_length_about_one():
    table = embedding(500, 40, None, trainable=True)
    assert table.weight[1:].norm(dim=-1).mean().item() == pytest.approx(1, abs=0.05)
    assert not table.weight[0].any()


def test_vectors_can_be_kept_from_moving():
    assert not embedding(6, 3, None, trainable=False).weight.requires_grad


def test_vectors_determine_the_size_of_a_word_in_every_architecture():
    made = word_encoder("lstm", Architecture(hidden=3, dimension=50), 6, False, torch.randn(6, 7))
    assert made.embedding.weight.shape == (6, 7)
    assert made.text.forwards.input_size == 7


def test_a_pair_has_a_tower_of_its_own_for_the_question_and_a_single_text_has_none():
    architecture = Architecture(hidden=3, dimension=5)
    pair, single = (word_encoder("bilstm", architecture, VOCABULARY, both) for both in (True, False))
    assert single.question is None
    assert pair.question.state_dict().keys() == pair.text.state_dict().keys()
    assert not torch.equal(pair.question.forwards.weight_hh_l0, pair.text.forwards.weight_hh_l0)
    pairs = batch(split(pair=True))
    encoded = pair(pair.embed(pairs.ids), pairs.present, pair.embed(pairs.question_ids), pairs.question_present)
    _, state = pair.question(pair.embed(pairs.question_ids), pairs.question_present)
    assert torch.equal(encoded.question, state)


def test_dropout_falls_on_word_vectors_in_training_only():
    made = word_encoder("average", Architecture(hidden=3, dimension=5, dropout=0.9), VOCABULARY, False)
    texts = batch(split())
    vectors, other = (made.train().embed(texts.ids) for _ in range(2))
    assert not torch.equal(vectors, other)
    assert torch.equal(made.eval().embed(texts.ids), made.embedding(texts.ids))


def test_what_is_embedded_is_what_is_read():
    """So that a perturbation of the embeddings is not drowned in a second draw of dropout."""
    made = word_encoder("average", Architecture(hidden=3, dimension=5, dropout=0.9), VOCABULARY, False).train()
    texts = batch(split())
    embedded = made.embed(texts.ids)
    hidden, other = (made(embedded, texts.present).hidden for _ in range(2))
    assert torch.equal(hidden, other)


def test_word_dropout_replaces_words_by_the_unknown_word_in_training_only():
    made = word_encoder("average", Architecture(hidden=3, dimension=5, word_dropout=0.4), VOCABULARY, False)
    ids = torch.arange(VOCABULARY).repeat(4000, 1)
    vectors = made.embedding(ids)
    torch.manual_seed(0)
    embedded = made.train().embed(ids)
    unknown = (embedded == made.embedding.weight[1]).all(-1)
    assert (unknown | (embedded == vectors).all(-1)).all()
    assert torch.equal(unknown[:, :4], (ids[:, :4] == 1))  # special tokens stay
    assert abs(float(unknown[:, 4:].float().mean()) - 0.4) < 0.02
    assert torch.equal(made.eval().embed(ids), vectors)


@pytest.mark.parametrize("name", ["dropout", "word_dropout"])
def test_dropout_from_keys_depends_on_the_key_the_row_and_the_position_alone(name):
    made = word_encoder("average", Architecture(hidden=3, dimension=5, **{name: 0.4}), VOCABULARY, False).train()
    ids = torch.full((300, 6), VOCABULARY - 1)
    before = torch.get_rng_state()
    with made.keyed_dropout(torch.tensor([7])):
        first, second = made.embed(ids), made.embed(ids)
    with made.keyed_dropout(torch.tensor([3, 7])):  # rows of two models alternate; the batch is wider
        other = made.embed(torch.full((600, 9), VOCABULARY - 1))
    assert torch.equal(other[1::2, :6], first)
    assert not torch.equal(other[::2, :6], first)
    assert not torch.equal(second, first)
    assert torch.equal(torch.get_rng_state(), before)
    changed = first != made.embedding(ids) if name == "word_dropout" else first == 0
    assert abs(float(changed.float().mean()) - 0.4) < 0.03
    if name == "dropout":  # the mean stays
        assert torch.allclose(first[~changed], (made.embedding(ids) / 0.6)[~changed])
    assert not torch.equal(made.embed(ids), made.embed(ids))  # again from torch's generator
    with made.eval().keyed_dropout(torch.tensor([7])):
        assert torch.equal(made.embed(ids), made.embedding(ids))


def test_each_word_is_projected_by_itself_and_the_summary_is_their_mean():
    tower = Average(4, 3).double()
    sizes = [5, 1, 3]
    embedded = torch.randn(3, 5, 4, dtype=torch.float64)
    hidden, summary = tower(embedded, torch.arange(5) < torch.tensor(sizes)[:, None])
    weight, bias = tower.project.weight, tower.project.bias
    for row, size in enumerate(sizes):
        expected = torch.stack([(weight @ word + bias).clamp_min(0) for word in embedded[row, :size]])
        assert_close(hidden[row, :size], expected)
        assert_close(summary[row], expected.sum(0) / size)
        assert not hidden[row, size:].any()


def test_an_average_hidden_state_depends_on_its_own_word_alone():
    embedded = torch.randn(1, 6, 4, requires_grad=True)
    hidden, _ = Average(4, 8)(embedded, torch.ones(1, 6, dtype=torch.bool))
    (gradient,) = torch.autograd.grad(hidden[0, 2].sum(), embedded)
    assert gradient[0].any(-1).tolist() == [False, False, True, False, False, False]


def convolved(tower: Convolutional, text: torch.Tensor) -> torch.Tensor:
    """One unpadded text (T,E) -> (T,H): every kernel at every word, with zeros beyond both ends."""
    rows = []
    for place in range(len(text)):
        row = []
        for kernel, width in zip(tower.kernels, WIDTHS, strict=True):
            total = kernel.bias.clone()
            for offset in range(width):
                at = place + offset - width // 2
                if 0 <= at < len(text):
                    total = total + kernel.weight[:, :, offset] @ text[at]
            row.append(total.clamp_min(0))
        rows.append(torch.cat(row))
    return torch.stack(rows)


def test_hidden_states_are_those_of_the_loops_and_the_summary_their_maximum():
    tower = Convolutional(4, 5).double()
    sizes = [9, 1, 4]
    embedded = torch.randn(3, 9, 4, dtype=torch.float64)
    hidden, summary = tower(embedded, torch.arange(9) < torch.tensor(sizes)[:, None])
    for row, size in enumerate(sizes):
        expected = convolved(tower, embedded[row, :size])
        assert_close(hidden[row, :size], expected)
        assert_close(summary[row], expected.amax(0))
        assert not hidden[row, size:].any()


def test_the_units_are_shared_out_over_the_widths_to_the_last_one():
    assert [kernel.out_channels for kernel in Convolutional(4, 5).kernels] == [3, 3, 2, 2]
    assert [kernel.kernel_size for kernel in Convolutional(4, 5).kernels] == [(width,) for width in WIDTHS]


def test_a_word_sees_three_words_to_either_side_and_no_further():
    tower = Convolutional(4, 8)
    embedded = torch.randn(1, 11, 4, requires_grad=True)
    hidden, _ = tower(embedded, torch.ones(1, 11, dtype=torch.bool))
    (gradient,) = torch.autograd.grad(hidden[0, 5].sum(), embedded)
    assert gradient[0].any(-1).tolist() == [False] * 2 + [True] * 7 + [False] * 2


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
