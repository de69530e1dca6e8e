"""Seconds of a search whose trials are trained as a stack, against the same trials one after another, on a GPU.

    python bench/tune_throughput.py [--data sst2] [--technique word-at] [--trials 8] [--rounds 1] [--device cuda]

Both ways run in turn.  The first, short search loads all code.  The last line is the largest difference between the
validation macro-F1 of a trial in the two ways.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from steadygaze.results.tuning import Tuning
from steadygaze.study import tune
from steadygaze.study.compare import StudyRuntime
from steadygaze.study.tune_config import TuneConfig

TRAIN_ROUND = tune.train_round


def search(arguments: argparse.Namespace, is_stacked: bool, trials: int, epochs: int | None) -> tuple[float, Tuning]:
    tune.train_round = TRAIN_ROUND if is_stacked else lambda *_: None
    config = TuneConfig(
        data=arguments.data,
        technique=arguments.technique,
        trials=trials,
        parallel=trials,
        prune=False,
        epochs=epochs,
        encoder=arguments.encoder,
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        tuning = tune.tune(config, StudyRuntime(Path(folder) / "out", arguments.data_dir, arguments.device))
        return time.perf_counter() - start, tuning


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", default="sst2")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--technique", default="word-at")
    parser.add_argument("--encoder", default="bilstm")
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    for is_stacked in (True, False):
        search(arguments, is_stacked, 2, 1)
    ratios, differences = [], []
    for _ in range(arguments.rounds):
        seconds, results = zip(
            *(search(arguments, way, arguments.trials, arguments.epochs) for way in (True, False)), strict=True
        )
        ratios.append(seconds[1] / seconds[0])
        scores = [[trial.values[0] for trial in result.trials] for result in results]
        differences += [abs(first - second) for first, second in zip(*scores, strict=True)]
        print(f"{arguments.trials} trials: stack {seconds[0]:.1f} s, one by one {seconds[1]:.1f} s", flush=True)
    print(f"one by one / stack: {statistics.median(ratios):.2f}; macro-F1 differs by at most {max(differences):.4f}")


if __name__ == "__main__":
    main()
