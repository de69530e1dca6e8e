"""Speed of our bidirectional LSTM, two unpacked directions, relative to torch's packed one with the same weights.

    python bench/recurrent.py [--batch 32] [--hidden 128] [--dimension 100] [--rounds 30] [--threads 2] [--json]

Lengths in a batch differ by at most 20 %, as in bucketed batches; their means are those of short reviews.  A ratio is
the median over the rounds of packed time over our time: above 1, ours is faster.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from steadygaze.models.encoders.word_encoders import Recurrent

MEAN_LENGTHS = (10, 20, 40, 80)
TOLERANCE = 1e-5

Forward = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def packed_lstm(ours: Recurrent, dimension: int, hidden: int) -> tuple[nn.LSTM, Forward]:
    """torch's network with our weights, and its forward pass with the outputs of ours."""
    lstm = nn.LSTM(dimension, hidden, batch_first=True, bidirectional=True)
    backwards = {f"{name}_reverse": value for name, value in ours.backwards.state_dict().items()}
    lstm.load_state_dict({**ours.forwards.state_dict(), **backwards})

    def forward(embedded: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        sequence = pack_padded_sequence(embedded, present.sum(-1), batch_first=True, enforce_sorted=False)
        output, (last, _) = lstm(sequence)
        return pad_packed_sequence(output, batch_first=True)[0], torch.cat([last[0], last[1]], -1)

    return lstm, forward


def batch(size: int, mean: int, dimension: int) -> tuple[Tensor, Tensor]:
    lengths = (mean * torch.empty(size).uniform_(0.9, 1.1)).round().long()
    return torch.randn(size, int(lengths.max()), dimension), torch.arange(int(lengths.max())) < lengths[:, None]


def forward_seconds(network: Forward, embedded: Tensor, present: Tensor) -> float:
    with torch.no_grad():
        start = perf_counter()
        network(embedded, present)
        return perf_counter() - start


def training_seconds(network: Forward, embedded: Tensor, present: Tensor) -> float:
    start = perf_counter()
    hidden, last = network(embedded, present)
    (hidden.sum() + last.sum()).backward()
    return perf_counter() - start


def compare(options: argparse.Namespace) -> dict[str, float]:
    """Median ratio of packed to ours, forward and forward+backward."""
    ours = Recurrent("lstm", options.dimension, options.hidden, both=True)
    lstm, theirs = packed_lstm(ours, options.dimension, options.hidden)
    batches = [batch(options.batch, mean, options.dimension) for mean in MEAN_LENGTHS]
    for inputs in batches:  # both give the same outputs, and are warmed up
        torch.testing.assert_close(ours(*inputs), theirs(*inputs), rtol=TOLERANCE, atol=TOLERANCE)
    ratios: dict[str, list[float]] = {"forward": [], "forward+backward": []}
    for number in range(options.rounds):
        for name, clock in (("forward", forward_seconds), ("forward+backward", training_seconds)):
            for inputs in batches:
                order = (ours, theirs) if number % 2 else (theirs, ours)
                seconds = {network is theirs: clock(network, *inputs) for network in order}
                ratios[name].append(seconds[True] / seconds[False])
        ours.zero_grad()
        lstm.zero_grad()
    return {name: statistics.median(values) for name, values in ratios.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"batch": 32, "hidden": 128, "dimension": 100, "rounds": 30, "threads": 2, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"(default: {default})")
    parser.add_argument("--json", action="store_true", help="print only the ratios, as JSON")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    ratios = compare(options)
    if options.json:
        json.dump(ratios, sys.stdout)
    else:
        for name, ratio in ratios.items():
            print(f"{name:>17}: packed / ours = {ratio:.2f}")


if __name__ == "__main__":
    main()
