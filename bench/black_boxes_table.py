"""Tables of bench/black_boxes.py: the mean over seeds with its 95 % t interval, the paper's beside ours.

python bench/black_boxes_table.py RECORDS...        folders of records, or files of one record a line
"""

import sys
from collections import defaultdict
from math import sqrt
from statistics import mean, stdev
from typing import Any

from scipy.stats import t

from black_boxes import ROWS, K
from job_cells import read_records

MEASURES = {
    "post-hoc-accuracy": "post-hoc",
    "post-hoc-accuracy/unselected": "from the rest",
    "fidelity": "own fidelity",
    "probe-loss": "mask, nats",
}
PAPER: dict[str, dict[str, float]] = {  # Bai et al. 2021, Table 3; of images the fill is the mean
    "imdb": {"gradient": 0.856, "lime": 0.898, "cxplain": 0.906, "l2x": 0.892, "vibi": 0.908, "ail": 0.985},
    "yelp_polarity": {"gradient": 0.823, "lime": 0.874, "cxplain": 0.977, "l2x": 0.882, "vibi": 0.944, "ail": 0.993},
    "mnist_3_8": {"gradient": 0.982, "lime": 0.804, "cxplain": 0.994, "l2x": 0.914, "vibi": 0.983, "ail": 0.990},
    "fashion_mnist_pullover_shirt": {
        "gradient": 0.586,
        "lime": 0.756,
        "cxplain": 0.597,
        "l2x": 0.773,
        "vibi": 0.841,
        "ail": 0.978,
    },
}
TOLD: dict[str, tuple[float, float, float]] = {  # the same, of L2X that is told ŷ
    "imdb": (0.488, 0.971, 0.943),
    "yelp_polarity": (0.778, 0.990, 0.877),
    "mnist_3_8": (0.949, 0.663, 0.998),
    "fashion_mnist_pullover_shirt": (0.853, 0.894, 0.954),
}
TOLD_ROWS = ("l2x-y-plain-cnn", "l2x-y-random-pretraining-cnn", "l2x-y-mask-neutral-simple")
"""Its approximators are not said; A.1 has powerful ones for pretraining and simple ones for weights."""
IMAGE_ROWS = (*TOLD_ROWS[:2], "l2x-y-mask-neutral-cnn")


def shown(values: list[float]) -> str:
    """The mean, and half the width of its interval."""
    if len(values) < 2:
        return f"{values[0]:.3f}" if values else ""
    half = t.ppf(0.975, len(values) - 1) * stdev(values) / sqrt(len(values))
    return f"{mean(values):.3f} ± {half:.3f}"


def published(corpus: str, row: str, fill: str) -> str:
    """Beside the row that is most like it, and no other."""
    told = dict(zip(TOLD_ROWS if fill == "" else IMAGE_ROWS, TOLD.get(corpus, ()), strict=False))
    own = {"l2x-cnn": "l2x"}.get(row, row) if fill else row
    value = {**PAPER.get(corpus, {}), **told}.get(own) if fill in ("", "mean") else None
    return "" if value is None else f"{value:.3f}"


def main() -> None:
    cells: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for record in read_records(sys.argv[1:]):
        cells[record["corpus"], record.get("fill", "")][record["row"]].append(record)
    order = list(ROWS)
    for (corpus, fill), rows in cells.items():
        print(f"\n**{corpus}**" + (f", {fill} fill" if fill else "") + f", k = {K[corpus]}\n")
        print("| explainer | seeds | " + " | ".join(MEASURES.values()) + " | paper's post-hoc |")
        print("|---" * (len(MEASURES) + 3) + "|")
        for row in sorted(rows, key=lambda name: order.index(name) if name in order else len(order)):
            numbers = [shown([run[name] for run in rows[row] if name in run]) for name in MEASURES]
            print(f"| {row} | {len(rows[row])} | " + " | ".join(numbers) + f" | {published(corpus, row, fill)} |")


if __name__ == "__main__":
    main()
