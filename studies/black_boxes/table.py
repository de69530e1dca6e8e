"""Tables of docs/results/shortcuts.md about black boxes.

Values are means over seeds with half the width of their 95 % t interval.  Rows without records are left out.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from studies.black_boxes.plan import FILLS, IMAGES, K
from studies.tables import RECORDS, markdown, mean_and_interval, read_records

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
BOLD = {
    ("planted", "l2x-y-plain-simple"): (POST_HOC, FIDELITY),
    ("planted", "l2x-y-random-pretraining-simple"): (POST_HOC,),
    ("planted", "l2x-y-random-query-simple"): (POST_HOC,),
    ("imdb", "l2x"): (POST_HOC,),
    ("imdb", "l2x-y-plain-cnn"): (POST_HOC, FIDELITY),
    ("imdb", "l2x-y-random-pretraining-cnn"): (POST_HOC,),
    ("yelp_polarity", "l2x-y-random-pretraining-cnn"): (POST_HOC,),
    **{(corpus, "l2x-y-random-pretraining-cnn"): (POST_HOC,) for corpus in IMAGES},
}
"""Corpus, row -> bold columns."""


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


def cell(corpus: str, row: str, runs: Runs, measure: str) -> str:
    mark = "**" if measure in BOLD.get((corpus, row), ()) else ""
    return f"{mark}{mean_and_interval(values(runs, measure))}{mark}"


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


def text_table(cells: Cells, corpus: str) -> list[list[str]]:
    measures = [measure for measure in HEADINGS if (corpus, measure) != ("yelp_polarity", MASK)]
    paper = corpus in PAPER
    table = [["explainer", "seeds", *(HEADINGS[measure] for measure in measures), *["paper"] * paper]]
    for row in NAMES:
        if runs := cells[corpus, ""].get(row):
            numbers = [cell(corpus, row, runs, measure) for measure in measures]
            table.append([name_of(corpus, row), str(len(runs)), *numbers, *[published(corpus, row)] * paper])
    return table


def image_table(cells: Cells, corpus: str) -> list[list[str]]:
    first, *others = FILLS
    heading = [f"{first} fill", *list(HEADINGS.values())[1:3], *(f"{fill} fill" for fill in others), "paper"]
    table = [[IMAGE_SETS[corpus], *heading]]
    for row in IMAGE_NAMES:
        by_fill = {fill: cells[corpus, fill].get(row, []) for fill in FILLS}
        if any(by_fill.values()):
            numbers = [cell(corpus, row, by_fill[first], measure) for measure in (POST_HOC, REST, FIDELITY)]
            numbers += [mean_and_interval(values(by_fill[fill], POST_HOC)) for fill in others]
            table.append([name_of(corpus, row), *numbers, published(corpus, row)])
    return table


def tables(cells: Cells) -> dict[str, str]:
    """Corpus -> its table on the page; corpora without records are left out."""
    texts = {corpus: text_table(cells, corpus) for corpus in CORPORA}
    images = {corpus: image_table(cells, corpus) for corpus in IMAGES}
    return {corpus: markdown(table) for corpus, table in (texts | images).items() if len(table) > 1}


def table(records: list[Path] = FILES) -> str:
    """Folders or files; default: the records of the repository."""
    names = CORPORA | IMAGE_SETS
    return "\n".join(f"{names[corpus]}, k = {K[corpus]}\n\n{text}\n" for corpus, text in tables(load(records)).items())
