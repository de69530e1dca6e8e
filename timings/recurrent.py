"""Speed of our bidirectional LSTM, two unpacked directions, relative to torch's packed one with the same weights.

Lengths in a batch differ by at most 20 %, as in bucketed batches; their means are those of short reviews.  Above 1,
ours is faster.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from steadygaze.models.encoders.word_encoders import Recurrent
from timings.harness import Result, race

MEAN_LENGTHS = (10, 20, 40, 80)
TOLERANCE = 1e-5

Forward = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def packed_lstm(ours: Recurrent, dimension: int, hidden: int) -> tuple[nn.LSTM, Forward]:
    """torch's network with our weights, and its forward pass with the outputs of ours."""
    lstm = nn.LSTM(dimension, hidden, batch_first=True, bidirectional=True)
    assert ours.backwards is not None
    backwards = {f"{name}_reverse": value for name, value in ours.backwards.state_dict().items()}
    lstm.load_state_dict({**ours.forwards.state_dict(), **backwards})

    def forward(embedded: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        sequence = pack_padded_sequence(embedded, present.sum(-1), batch_first=True, enforce_sorted=False)
        output, (last, _) = lstm(sequence)
        return pad_packed_sequence(output, batch_first=True)[0], torch.cat([last[0], last[1]], -1)

    return lstm, forward


def random_batch(size: int, mean: int, dimension: int) -> tuple[Tensor, Tensor]:
    lengths = (mean * torch.empty(size).uniform_(0.9, 1.1)).round().long()
    return torch.randn(size, int(lengths.max()), dimension), torch.arange(int(lengths.max())) < lengths[:, None]


def run(*, batch: int = 32, hidden: int = 128, dimension: int = 100, rounds: int = 30) -> list[Result]:
    """Forward passes alone, and with the backward pass."""
    torch.manual_seed(0)
    ours = Recurrent("lstm", dimension, hidden, both=True)
    lstm, theirs = packed_lstm(ours, dimension, hidden)
    batches = [random_batch(batch, mean, dimension) for mean in MEAN_LENGTHS]
    for inputs in batches:
        torch.testing.assert_close(ours(*inputs), theirs(*inputs), rtol=TOLERANCE, atol=TOLERANCE)

    def forward(network: Forward) -> None:
        with torch.no_grad():
            for inputs in batches:
                network(*inputs)

    def training(network: Forward) -> None:
        for inputs in batches:
            outputs, last = network(*inputs)
            (outputs.sum() + last.sum()).backward()  # type: ignore[no-untyped-call]
        ours.zero_grad()
        lstm.zero_grad()

    results = []
    for name, work in (("forward", forward), ("forward and backward", training)):
        times = race({f"packed, {name}": partial(work, theirs), f"ours, {name}": partial(work, ours)}, rounds)
        results += [times.ratio(*times.wall), times.ratio(*times.wall, clock="cpu")]
    return results
