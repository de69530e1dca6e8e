"""The convolutional tower against loops over words and kernels."""

import torch

from contract.tiny import assert_close
from steadygaze.models.encoders.word_encoders import WIDTHS, Convolutional


def slow(tower: Convolutional, text: torch.Tensor) -> torch.Tensor:
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
        expected = slow(tower, embedded[row, :size])
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
