"""Numbers of docs/results/shortcuts.md about black boxes.  Rows without records are left out."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from studies.black_boxes.plan import FILLS, IMAGES, K
from studies.numbers import Number, Origin
from studies.stability.statistics import difference
from studies.study import Data
from studies.tables import RECORDS, read_records, summary, summary_heading

FILES = sorted(RECORDS.glob("black_boxes-*.jsonl.gz"))
Runs = list[dict[str, Any]]
Cells = dict[tuple[str, str], dict[str, Runs]]
"""Corpus and fill -> row -> runs, ordered by seed; the fill of texts is empty."""
POST_HOC, REST, FIDELITY, MASK = "post-hoc-accuracy", "post-hoc-accuracy/unselected", "fidelity", "probe-loss"
HEADINGS = {POST_HOC: "post-hoc accuracy", REST: "from the rest", FIDELITY: "own fidelity", MASK: "mask, nats"}
CORPORA = {"planted": "planted corpus", "imdb": "IMDB", "yelp_polarity": "Yelp"}
IMAGE_SETS = dict(zip(IMAGES, ("MNIST 3/8", "Fashion-MNIST pullover/shirt"), strict=True))
VARIANTS = {
    "random-pretraining": "… random-pretraining",
    "random-query": "… random-query",
    "mask-neutral": "… mask-neutral",
    "mask-neutral-wide": "… mask-neutral, clip 10⁶",
}
NAMES = {
    "random": "random",
    "gradient": "gradient",
    "input-x-gradient": "input × gradient",
    "lime": "LIME",
    "cxplain": "CXPlain",
    "l2x": "L2X",
    "l2x-cnn": "L2X, CNN approximator",
    "vibi": "VIBI",
    "ail": "AIL",
    "l2x-y-plain-simple": "L2X with ŷ",
    "l2x-y-plain-cnn": "… CNN approximator",
} | {
    f"l2x-y-{variant}-{approximator}": name + more
    for variant, name in VARIANTS.items()
    for approximator, more in (("simple", ""), ("cnn", ", CNN"))
}
"""Row -> name in a table of texts."""
IMAGE_NAMES = {
    row: name.removesuffix(", CNN").removesuffix(", CNN approximator").replace("… CNN approximator", "L2X with ŷ")
    for row, name in NAMES.items()
    if row not in ("l2x", "input-x-gradient") and not row.endswith("-simple")
}
"""The same in a table of images, whose approximators are all CNNs."""
NOTES = {"cxplain": " (one member)"}
LIME_NOTES = {"planted": " (1,000 texts, 1,000 samples)", **dict.fromkeys(IMAGES, " (1,000 images, 1,000 samples)")}
QUERY_NOTE = " (ours)"
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
CONDITIONED: dict[str, tuple[float, float, float]] = {  # the same, of L2X that reads the prediction
    "imdb": (0.488, 0.971, 0.943),
    "yelp_polarity": (0.778, 0.990, 0.877),
    "mnist_3_8": (0.949, 0.663, 0.998),
    "fashion_mnist_pullover_shirt": (0.853, 0.894, 0.954),
}
CONDITIONED_ROWS = ("l2x-y-plain-cnn", "l2x-y-random-pretraining-cnn", "l2x-y-mask-neutral-simple")
"""The paper does not name the approximators; A.1 has powerful ones for pretraining and simple ones for weights."""
CONDITIONED_IMAGES = (*CONDITIONED_ROWS[:2], "l2x-y-mask-neutral-cnn")
ORIGIN = Origin("b3bf9c8a", "python -m studies run black_boxes --out DIR --data DATA --device cuda --workers 12")
PLAIN, PRETRAINED, QUERY, NEUTRAL = (
    [f"l2x-y-{name}-{approximator}" for approximator in ("simple", "cnn")]
    for name in ("plain", "random-pretraining", "random-query", "mask-neutral")
)
WIDE = [row.replace("neutral", "neutral-wide") for row in NEUTRAL]
MASK_NEUTRAL = [*NEUTRAL, *WIDE]
PAIRS = (
    *zip(PLAIN, NEUTRAL, strict=True),
    *zip(PLAIN, ("l2x", "l2x-cnn"), strict=True),
    ("l2x-cnn", PRETRAINED[1]),
    (PRETRAINED[0], PRETRAINED[1]),
)
GAP_ROWS = {
    "leaking": [*PLAIN, *NEUTRAL],
    "not-leaking": ["l2x", "l2x-cnn", *PRETRAINED, *QUERY],
    "clip-10-6": WIDE,
    "ail": ["ail"],
}


def load(paths: Iterable[Path | str] = ()) -> Cells:
    """Read folders or files of records; by default those of the repository."""
    if not (paths or FILES):
        raise SystemExit("the repository has no records of black boxes: run the study, and pass DIR/records")
    cells: Cells = defaultdict(lambda: defaultdict(list))
    for record in sorted(read_records(paths or FILES), key=lambda record: record["seed"]):
        cells[record["corpus"], record.get("fill", "")][record["row"]].append(record)
    return cells


def values(runs: Runs, measure: str) -> list[float]:
    return [run[measure] for run in runs if measure in run]


def published(corpus: str, row: str) -> str:
    """The paper's number, at the row that is most like the paper's."""
    images = corpus in IMAGES
    rows = CONDITIONED_IMAGES if images else CONDITIONED_ROWS
    numbers = PAPER.get(corpus, {}) | dict(zip(rows, CONDITIONED.get(corpus, ()), strict=False))
    value = numbers.get("l2x" if images and row == "l2x-cnn" else row)
    return "" if value is None else f"{value:.3f}"


def name_of(corpus: str, row: str) -> str:
    images = corpus in IMAGES
    note = LIME_NOTES.get(corpus, "") if row == "lime" else NOTES.get(row, "")
    if row == ("l2x-y-random-query-cnn" if images else "l2x-y-random-query-simple"):
        note = QUERY_NOTE
    return (IMAGE_NAMES if images else NAMES)[row] + note


def rows(cells: Cells) -> list[list[str]]:
    """All explainers: means over seeds with 95 % t intervals, lowest and highest seeds; the paper has the mean fill."""
    columns = [column for name in HEADINGS.values() for column in summary_heading(name)]
    table = [["data", "k", "fill", "explainer", "seeds", *columns, "paper"]]
    for corpus, name in (CORPORA | IMAGE_SETS).items():
        for fill in FILLS if corpus in IMAGES else ("",):
            for row in IMAGE_NAMES if corpus in IMAGES else NAMES:
                if runs := cells.get((corpus, fill), {}).get(row):
                    numbers = [cell for measure in HEADINGS for cell in summary(values(runs, measure))]
                    start = [name, str(K[corpus]), fill, name_of(corpus, row), str(len(runs))]
                    table.append([*start, *numbers, published(corpus, row) if fill in ("", FILLS[0]) else ""])
    return table


def row_numbers(cells: Cells) -> Iterator[Number]:
    for (corpus, fill), explainers in cells.items():
        for row, runs in explainers.items():
            name = ".".join(part for part in (corpus, fill, row) if part)
            for key, measure in {"post-hoc": POST_HOC, "fidelity": FIDELITY}.items():
                if scores := values(runs, measure):
                    yield ORIGIN.mean(f"{key}.{name}", scores)
            if len(runs) > 1:
                scores = values(runs, POST_HOC)
                yield ORIGIN.number(f"lowest.{name}", min(scores))
                yield ORIGIN.number(f"highest.{name}", max(scores))


def differences(cells: Cells) -> Iterator[Number]:
    """By how much the second row is above the first, with Welch's interval."""
    texts = [(corpus, "", *pair) for corpus in CORPORA for pair in PAIRS]
    images = [(corpus, FILLS[0], PLAIN[1], "l2x-cnn") for corpus in IMAGES]
    for corpus, fill, first, second in (*texts, *images):
        scores = ({"": values(cells[corpus, fill][row], POST_HOC)} for row in (second, first))
        result = difference(*scores)
        name = ".".join(filter(None, ("difference", corpus, fill, first, second)))
        yield ORIGIN.number(name, result.value, (result.low, result.high))


def gaps(cells: Cells) -> Iterator[Number]:
    """How many runs on texts have gaps of more than 0.05 to the reader and to the black box."""
    for group, explainers in GAP_ROWS.items():
        runs = [run for corpus in CORPORA for row in explainers for run in cells[corpus, ""][row]]
        wide = [min(run["leakage-gap"], run["leakage-gap/black-box"]) > 0.05 for run in runs]
        yield ORIGIN.number(f"both-gaps.{group}", sum(wide), n=len(runs))


def numbers() -> list[Number]:
    cells = load()
    runs = [run for (_, fill), explainers in cells.items() if fill for group in explainers.values() for run in group]
    losses = [run[MASK] for run in runs if MASK in run]
    fitted = [run[MASK] for row in MASK_NEUTRAL for run in cells["imdb", ""][row]]
    return [
        *row_numbers(cells),
        *differences(cells),
        *gaps(cells),
        ORIGIN.number("images.positions-predict-label", sum(loss < 0.3 for loss in losses), n=len(losses)),
        ORIGIN.number("imdb.mask-neutral.probe-guesses", sum(loss >= 0.6855 for loss in fitted), n=len(fitted)),
        ORIGIN.number("records", sum(len(group) for explainers in cells.values() for group in explainers.values())),
    ]


def data(records: list[Path] = FILES) -> Data:
    return {"black-boxes.csv": rows(load(records))}
