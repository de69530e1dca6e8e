"""Time of a search whose trials are trained as a stack, against the same trials one after another, on a GPU.

The first, short search loads all code.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

from steadygaze.results.tuning import Tuning
from steadygaze.study import tune
from steadygaze.study.compare import StudyRuntime
from steadygaze.study.tune_config import TuneConfig
from timings.harness import Race, Result, clocked


def search(config: TuneConfig, data_dir: Path | None, device: str) -> Tuning:
    with tempfile.TemporaryDirectory() as folder:
        return tune.tune(config, StudyRuntime(Path(folder) / "out", data_dir, device))


def one_by_one(work: Callable[[], Tuning]) -> Tuning:
    with patch.object(tune, "train_round", lambda *_: None):
        return work()


def run(
    *,
    data: str = "sst2",
    data_dir: Path | None = None,
    technique: str = "word-at",
    encoder: str = "bilstm",
    trials: int = 8,
    epochs: int | None = None,
    rounds: int = 1,
    device: str = "cuda",
) -> list[Result]:
    """The last result is the largest difference of a trial's validation macro-F1."""

    def work(trials: int, epochs: int | None) -> Callable[[], Tuning]:
        config = TuneConfig(
            data=data, technique=technique, trials=trials, parallel=trials, prune=False, epochs=epochs, encoder=encoder
        )
        return partial(search, config, data_dir, device)

    one_by_one(work(2, 1))
    work(2, 1)()
    times, differences = Race(), []
    for _ in range(rounds):
        stack_wall, stack_cpu, stack = clocked(work(trials, epochs))
        wall, cpu, single = clocked(partial(one_by_one, work(trials, epochs)))
        times.add("one by one", wall, cpu)
        times.add("stack", stack_wall, stack_cpu)
        pairs = zip(stack.trials, single.trials, strict=True)
        differences += [abs(first.values[0] - second.values[0]) for first, second in pairs]
    largest = Result("largest difference of macro-F1", max(differences))
    return [*(times.time(name, "s") for name in times.wall), times.ratio("one by one", "stack"), largest]
