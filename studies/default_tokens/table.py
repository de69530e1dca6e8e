"""Attention on default tokens: the table of docs/results/shortcuts.md."""

from itertools import product
from pathlib import Path
from statistics import mean

from studies.default_tokens.run import ENCODERS, TECHNIQUES
from studies.tables import RECORDS, markdown, mean_and_deviation, read_records

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
BOLD_CELLS = (("pooling", "vanilla"), ("pooling", "random-pretraining"))


def table(records: list[Path] = FILES) -> str:
    """The table of docs/results/shortcuts.md: means and standard deviations over seeds; attention in %."""
    trained, tokens = read_records(records), ["a", "b", "c", "d"]
    ends = ["all four", "paper", "both labels", "gap", "train / test accuracy"]
    lines = [["decoder", "technique", "label", *tokens, *ends]]
    for encoder, technique in product(ENCODERS, TECHNIQUES):
        runs = [record for record in trained if (record["encoder"], record["technique"]) == (encoder, technique)]
        if not runs:
            continue
        mark = "**" if (encoder, technique) in BOLD_CELLS else ""
        both = [_percent([run["mass"] for run in runs]), mean_and_deviation([run["gap"] for run in runs], 2)]
        accuracy = " / ".join(f"{mean(run[split] for run in runs):.3f}" for split in ("train", "test"))
        common = [*(f"{mark}{cell}{mark}" for cell in both), accuracy]
        for label, name, paper in zip((1, 0), ("pos", "neg"), PAPER[encoder, technique], strict=True):
            attention = [f"{100 * mean(run['attention'][label][i] for run in runs):.1f}" for i in range(len(tokens))]
            all_four = _percent([run["defaults"][label] for run in runs])
            start = [NAMES.get(encoder, encoder), technique] if label else ["", ""]
            lines.append([*start, name, *attention, all_four, f"{paper:.1f}", *(common if label else [""] * 3)])
    return markdown(lines)


def _percent(shares: list[float]) -> str:
    return mean_and_deviation([100 * share for share in shares])
