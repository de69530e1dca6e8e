"""Overlapping windows: the most central window by hand, one window as without, invariances, gradients and memory."""

import resource
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.tiny import CLASSES, VOCABULARY, assert_close, batch, bert, read, split, widened
from steadygaze.core.errors import UserError
from steadygaze.core.types import Batch, Forward
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.models.encoders import windows
from steadygaze.models.encoders.transformer import Transformer
from steadygaze.models.encoders.windows import Windows

SMALL = Windows(size=6, stride=4, before=1, after=1)
LENGTHS = (3, 6, 7, 14, 15, 31)
"""Pieces per text; a window has 6."""


def texts(lengths: tuple[int, ...] = LENGTHS, width: int | None = None) -> Batch:
    """[CLS] pieces [SEP], with ids 1 and 2 for the special tokens."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(3, VOCABULARY, (len(lengths), width or max(lengths) + 2), generator=generator)
    sizes = torch.tensor(lengths).unsqueeze(-1)
    column = torch.arange(ids.shape[1])
    ids = torch.where(column == 0, 1, torch.where(column == sizes + 1, 2, ids))
    present, mask = column < sizes + 2, (column > 0) & (column < sizes + 1)
    return Batch(ids.masked_fill(~present, 0), present, mask, torch.arange(len(lengths)))


def encoder(cut: Windows | None = SMALL):
    torch.manual_seed(0)
    return Transformer(bert().network, cut).double().eval()


def hidden(made, batch: Batch) -> torch.Tensor:
    states: torch.Tensor = made(made.embed(batch.ids), batch.present).hidden
    return states


def test_the_state_of_a_token_is_that_of_its_most_central_window():
    """Fake network: column + 100 × the first piece; 9 pieces in windows of 4 from 0, 2 and 5."""

    def network(vectors, rows):
        return rows.columns.unsqueeze(-1) + 100 * rows.join(rows.split(vectors)[:, 1:2].expand((*rows.shape, 1)))

    vectors = torch.arange(11, dtype=torch.float64).view(1, 11, 1)  # [CLS] = 0, pieces 1 to 9, [SEP] = 10
    present = torch.ones(1, 11, dtype=torch.bool)
    states = Windows(size=4, stride=3, before=1, after=1).encode(network, vectors, present)
    first, second, third = 100, 300, 600  # of the windows that begin with the pieces 1, 3 and 6
    expected = [
        first, first + 1, first + 2, first + 3,  # pieces 3 and 4 are in two windows
        second + 2, second + 3,  # piece 6 is in two windows
        third + 1, third + 2, third + 3, third + 4, third + 5,
    ]  # fmt: skip
    assert states.flatten().tolist() == expected


def slow_windows(cut: Windows, length: int) -> list[tuple[list[int], list[int]]]:
    """Pieces of each window of a text, and those whose states it has, by trying and comparing."""
    overlap, count, size = cut.size - cut.stride, 1, 0
    while count * cut.size - (count - 1) * overlap < length:
        count += 1
    while count * size - (count - 1) * overlap < length:
        size += 1
    begins = [window * (length - size) // max(count - 1, 1) for window in range(count)]
    states: list[list[int]] = [[] for _ in begins]
    for piece in range(length):
        context = [min(piece - begin, begin + size - 1 - piece) for begin in begins]
        states[max(range(count), key=lambda window: (context[window], window))].append(piece)
    return [(list(range(begin, begin + size)), pieces) for begin, pieces in zip(begins, states, strict=True)]


CUTS = [SMALL, Windows(6, 6, 1, 1), Windows(6, 1, 1, 1), Windows(20, 17, 1, 1)]


@pytest.mark.parametrize("cut", CUTS)
def test_every_window_is_read_as_a_text_of_its_own(cut):
    batch, plain = texts(), encoder(None)
    states = hidden(encoder(cut), batch)
    for row, length in enumerate(LENGTHS):
        windows_of_text, expected = slow_windows(cut, length), torch.zeros(length + 2, 8, dtype=torch.float64)
        for number, (pieces, used) in enumerate(windows_of_text):
            tokens = [0, *(piece + 1 for piece in pieces), length + 1]
            is_used = [number == 0, *(piece in used for piece in pieces), number == len(windows_of_text) - 1]
            own = hidden(plain, replace_ids(batch.ids[row, tokens]))[0]
            expected[[token for token, flag in zip(tokens, is_used, strict=True) if flag]] = own[torch.tensor(is_used)]
        assert_close(states[row, : length + 2], expected)
    assert not states[~batch.present].any()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("cut", CUTS)
def test_windows_cover_every_text_with_little_more_than_its_tokens(cut):
    lengths = np.arange(100)
    row, begin, size, start, stop, _ = cut.cut(lengths + 2)
    for length in lengths:
        own = row == length
        expected = slow_windows(cut, length)
        assert [list(range(*pair)) for pair in zip(begin[own], (begin + size)[own], strict=True)] == [
            pieces for pieces, _ in expected
        ]
        assert start[own][0] == -1
        assert stop[own][-1] == length + 1
        used = [
            list(range(max(first, 0), min(last, length))) for first, last in zip(start[own], stop[own], strict=True)
        ]
        assert used == [pieces for _, pieces in expected]
        assert size[own].sum() <= length + own.sum() * (cut.size - cut.stride + 1)
    assert size.max() <= cut.size


@pytest.mark.parametrize("lengths", [(5000,), (31, 7, 6, 15, 3, 400)])
def test_no_forward_pass_has_more_tokens_than_the_limit(lengths, monkeypatch):
    monkeypatch.setattr(windows, "MAX_TOKENS", {"cpu": 64})
    made, sizes = encoder(), []
    network = made._run_rows
    monkeypatch.setattr(made, "_run_rows", lambda *inputs: sizes.append(inputs[1]) or network(*inputs))
    hidden(made, texts(lengths))
    assert max(rows.shape[0] * rows.longest for rows in sizes) <= 64
    total = sum(len(rows.columns) for rows in sizes)
    assert total < 2.2 * sum(lengths)  # 6/4 for the overlap, 8/6 for [CLS] and [SEP]


def replace_ids(ids: torch.Tensor) -> Batch:
    present = torch.ones(1, len(ids), dtype=torch.bool)
    return Batch(ids.unsqueeze(0), present, present, torch.zeros(1, dtype=torch.long))


def test_texts_of_one_window_are_the_same_to_the_bit():
    batch = texts((3, 6, 5))
    assert torch.equal(hidden(encoder(), batch), hidden(encoder(None), batch))


def classifier(cut: Windows | None) -> Classifier:
    return Classifier(encoder(cut), Architecture(), CLASSES, False).double().eval()


def row_outputs(output: Forward, row: int, length: int) -> list[torch.Tensor]:
    return [output.logits[row], output.weights[row, : length + 2], output.encoded.hidden[row, : length + 2]]


lengths_of_texts = st.lists(st.integers(0, 60), min_size=1, max_size=5)


@pytest.mark.slow
@given(lengths=lengths_of_texts, cut=st.sampled_from(CUTS), random=st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_outputs_and_gradients_do_not_depend_on_padding_order_or_batches(lengths, cut, random):
    data, model = split(["s" + "w" * length + "s" for length in lengths]), classifier(cut)
    (whole,), gradients = read(model, batch(data))
    order = random.sample(range(len(lengths)), len(lengths))
    half = len(order) // 2
    parts = [widened(batch(data, rows), random.randrange(9)) for rows in (order[:half], order[half:]) if rows]
    outputs, other_gradients = read(model, *parts)
    places = [(output, row) for part, output in zip(parts, outputs, strict=True) for row in range(len(part.ids))]
    for index, (output, row) in zip(order, places, strict=True):
        assert_close(row_outputs(output, row, lengths[index]), row_outputs(whole, index, lengths[index]))
    assert_close(other_gradients, gradients)


@pytest.mark.slow
@given(lengths=lengths_of_texts, cut=st.sampled_from(CUTS))
@settings(max_examples=25, deadline=None)
def test_a_text_of_one_window_has_the_outputs_of_a_model_without_windows(lengths, cut):
    data = split(["s" + "w" * length + "s" for length in lengths])
    output, plain = classifier(cut)(batch(data)), classifier(None)
    for row in [row for row, length in enumerate(lengths) if length <= cut.size]:
        alone = plain(batch(data, [row]))
        assert_close(row_outputs(output, row, lengths[row]), row_outputs(alone, 0, lengths[row]))


def test_passes_of_any_size_give_the_same_states_and_gradients(monkeypatch):
    batch, results = texts(), []
    for tokens, stored in ((1 << 12, 1 << 14), (1, 1 << 14), (20, 0)):
        monkeypatch.setattr(windows, "MAX_TOKENS", {"cpu": tokens})
        monkeypatch.setattr(windows, "STORED_TOKENS", {"cpu": stored})
        made = encoder()
        states = hidden(made, batch)
        (states * torch.linspace(-1, 1, 8, dtype=torch.float64)).sin().sum().backward()
        results.append([states.detach(), *(weights.grad for weights in made.parameters() if weights.grad is not None)])
    assert len(results[0]) > 10
    for other in results[1:]:
        assert len(other) == len(results[0])
        for value, expected in zip(other, results[0], strict=True):
            assert_close(value, expected)


def test_a_removed_piece_is_not_read_by_any_window():
    batch, made = texts(), encoder()
    gone = torch.zeros_like(batch.present)
    gone[5, [4, 5, 6, 20]] = True
    without = replace(batch, present=batch.present & ~gone, mask=batch.mask & ~gone)
    states = hidden(made, without)
    assert not states[gone].any()
    other = replace(without, ids=without.ids.masked_fill(gone, 9))
    assert_close(hidden(made, other), states)


def test_a_window_that_is_larger_than_the_network_reads_is_refused():
    with pytest.raises(UserError, match="window is 39; the network reads at most 38 pieces at a time"):
        Transformer(bert().network, Windows(39, 30, 1, 1))


def test_attention_weighs_every_word_of_a_long_text():
    model = Classifier(encoder(), Architecture(), 2, False).double().eval()
    batch = texts()
    output = model(batch)
    assert (output.weights[batch.mask] > 0).all()
    assert_close(output.weights.sum(-1), torch.ones(len(LENGTHS), dtype=torch.float64))


@pytest.mark.slow
def test_a_text_of_100_000_pieces_needs_little_memory():
    model = Classifier(encoder(Windows(32, 28, 1, 1)), Architecture(), 2, False).float().eval()
    batch = texts((100_000,))
    with torch.no_grad():
        model(texts((1000,)))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        output = model(batch)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert (output.weights[batch.mask] > 0).all()
    assert grown < 300_000, f"{grown} KiB"
