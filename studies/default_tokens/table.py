"""Attention on default tokens: numbers of docs/results/shortcuts.md."""

from itertools import product
from pathlib import Path
from statistics import mean

from studies.default_tokens.run import ENCODERS, TECHNIQUES
from studies.numbers import Number, Origin
from studies.stability.statistics import difference
from studies.study import Data
from studies.tables import RECORDS, Records, mean_and_deviation, read_records

FILES = sorted(RECORDS.glob("default_tokens-*.jsonl.gz"))
NAMES = {"rcnn": "RCNN"}
PAPER = {  # Tables 1 and 2: attention on the four tokens in positive and in negative reviews, in %
    ("pooling", "vanilla"): (68.3, 93.5),
    ("pooling", "random-pretraining"): (6.9, 20.6),
    ("pooling", "mask-neutral"): (6.5, 6.7),
    ("rcnn", "vanilla"): (17.0, 85.2),
    ("rcnn", "random-pretraining"): (2.6, 15.7),
    ("rcnn", "mask-neutral"): (20.5, 20.8),
}
MEASURES = ("mass", "gap", "train", "test")
TOKENS = ("a", "b", "c", "d")
LABELS = {1: "pos", 0: "neg"}
ORIGIN = Origin(
    "b3bf9c8a",
    "python -m studies run default_tokens --data-dir DATA --out TOKENS --seeds 5 --batch-size 128",
)


def runs_of(records: Records) -> dict[tuple[str, str], Records]:
    """Encoder and technique -> the runs of all seeds."""
    groups: dict[tuple[str, str], Records] = {key: [] for key in product(ENCODERS, TECHNIQUES)}
    for record in records:
        groups[record["encoder"], record["technique"]].append(record)
    return {key: runs for key, runs in groups.items() if runs}


def rows(records: Records) -> list[list[str]]:
    """Means and standard deviations over seeds; attention in %."""
    ends = ["all four", "paper", "both labels", "gap", "train accuracy", "test accuracy"]
    lines = [["decoder", "technique", "label", *TOKENS, *ends]]
    for (encoder, technique), runs in runs_of(records).items():
        both = [_percent([run["mass"] for run in runs]), mean_and_deviation([run["gap"] for run in runs], 2)]
        both += [f"{mean(run[split] for run in runs):.3f}" for split in ("train", "test")]
        for (label, name), paper in zip(LABELS.items(), PAPER[encoder, technique], strict=True):
            attention = [f"{100 * mean(run['attention'][label][i] for run in runs):.1f}" for i in range(len(TOKENS))]
            all_four = _percent([run["defaults"][label] for run in runs])
            start = [NAMES.get(encoder, encoder), technique, name]
            lines.append([*start, *attention, all_four, f"{paper:.1f}", *both])
    return lines


def numbers() -> list[Number]:
    """Attention on the tokens, gaps and accuracies, and by how much they are below those of vanilla."""
    groups, entries = runs_of(read_records(FILES)), list[Number]()
    for (encoder, technique), runs in groups.items():
        name = f"{encoder}.{technique}"
        entries += [ORIGIN.mean(f"{key}.{name}", [run[key] for run in runs]) for key in MEASURES]
        entries += [ORIGIN.mean(f"mass-{LABELS[k]}.{name}", [run["defaults"][k] for run in runs]) for k in LABELS]
        if technique == "mask-neutral":
            entries.append(ORIGIN.mean(f"probe-loss.{name}", [run["terms"][-1]["mask"] for run in runs]))
        for key in MEASURES if technique != "vanilla" else ():
            vanilla, own = ({"": [run[key] for run in group]} for group in (groups[encoder, "vanilla"], runs))
            fall = difference(vanilla, own)
            entries.append(ORIGIN.number(f"{key}-below-vanilla.{name}", fall.value, (fall.low, fall.high), len(runs)))
    return entries


def data(records: list[Path] = FILES) -> Data:
    return {"default-tokens.csv": rows(read_records(records))}


def _percent(shares: list[float]) -> str:
    return mean_and_deviation([100 * share for share in shares])
