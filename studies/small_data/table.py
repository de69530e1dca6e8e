"""Numbers of docs/results/small-data.md from the records."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean

from scipy.stats import ttest_1samp

from steadygaze.study.seed_statistics import holm
from studies.numbers import Number, Origin
from studies.small_data.plan import CORPORA, DIFFERENCES, NAMES, OTHER_CORPORA
from studies.study import Data
from studies.tables import (
    RECORDS,
    Records,
    read_records,
    summary,
    summary_heading,
)

RUN = "python -m studies run small_data --out DIR"
TEST = Origin("6eb1502f", RUN)
OTHER = Origin(
    "b3832fcb", f"{RUN} --corpora {','.join(OTHER_CORPORA)} --sizes 500 --rows default,tfidf-lr,tfidf-lr-10-balanced"
)
HELD_OUT = Origin("5f750903", f"{RUN} --split held-out --rows hidden-64,hidden-128 --seeds 3")
TABLE_PAIRS = tuple((row, base) for base in DIFFERENCES for row in ("default", "glove"))
"""Differences of the tables: corrected for their number by Holm's method."""
TEXT_PAIRS = (
    ("tfidf-lr", "tfidf-lr-10-balanced"),
    ("default", "tfidf-lr-balanced"),
    ("glove", "tfidf-lr-balanced"),
    ("glove", "default"),
)
"""Further differences that the page names."""
FILES = [RECORDS / f"small_data{part}.jsonl" for part in ("", "_other", "_settings")]
FEW = 600
"""Texts from which on the default has larger batches and networks."""
Cell = tuple[str, int]
Scores = dict[Cell, dict[str, dict[int, float]]]
"""Corpus and number of texts -> row -> seed -> macro-F1."""


def scores_of(records: Records) -> Scores:
    scores: Scores = defaultdict(lambda: defaultdict(dict))
    for record in records:
        scores[record["corpus"], record["size"]][record["row"]][record["seed"]] = record["macro-f1"]
    corpora = [*CORPORA, *OTHER_CORPORA]
    return dict(sorted(scores.items(), key=lambda item: (corpora.index(item[0][0]), item[0][1])))


def paired(values: Mapping[str, Mapping[int, float]], row: str, base: str) -> list[float]:
    """By seed, what this row is above the other."""
    return [values[row][seed] - values[base][seed] for seed in values[row] if seed in values[base]]


def score_numbers(records: Records, origin: Origin, prefix: str = "") -> Iterator[Number]:
    """Mean macro-F1 of every row and cell, and the paired differences of our models from regressions."""
    scores = scores_of(records)
    tested: dict[str, list[float]] = {}
    for (corpus, size), rows in scores.items():
        for row, values in rows.items():
            yield origin.mean(f"{prefix}score.{corpus}.{size}.{row}", [*values.values()])
        for row, base in (*TABLE_PAIRS, *TEXT_PAIRS):
            if row in rows and base in rows:
                name = f"{corpus}.{size}.{row}.{base}"
                yield origin.mean(f"{prefix}difference.{name}", paired(rows, row, base))
                if (row, base) in TABLE_PAIRS:
                    tested[name] = paired(rows, row, base)
    for name, p in zip(tested, corrected(list(tested.values())), strict=True):
        yield origin.number(f"{prefix}p.{name}", p)


def corrected(differences: Sequence[Sequence[float]]) -> list[float]:
    """p values of the means of differences, after Holm's correction for their number."""
    return holm([float(ttest_1samp(values, 0).pvalue) for values in differences])


def setting_numbers(records: Records) -> Iterator[Number]:
    """Macro-F1 and CPU time of both sizes of network and batch, on held-out texts."""
    seconds: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for record in records:
        seconds[record["corpus"], record["size"], record["row"]].append(record["cpu_seconds"])
    differences: dict[str, list[float]] = {"few": [], "many": []}
    for (corpus, size), rows in scores_of(records).items():
        differences["few" if size < FEW else "many"] += paired(rows, "hidden-64", "hidden-128")
        for row, values in rows.items():
            yield HELD_OUT.mean(f"held-out.{corpus}.{size}.{row}", [*values.values()])
            yield HELD_OUT.number(f"cpu-seconds.{corpus}.{size}.{row}", mean(seconds[corpus, size, row]))
    for name, pairs in differences.items():
        yield HELD_OUT.mean(f"hidden-64-over-hidden-128.{name}", pairs)


def numbers() -> list[Number]:
    records, other, held_out = (read_records([file]) for file in FILES)
    usual = [r["macro-f1"] for r in records if (r["corpus"], r["size"], r["row"]) == ("sst2", 200, "standard")]
    entropies: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if "entropy" in record:
            entropies[record["row"]].append(record["entropy"])
    return [
        *score_numbers(records, TEST),
        *score_numbers(other, OTHER, "other."),
        *setting_numbers(held_out),
        *(TEST.number(f"entropy.{row}", mean(values), n=len(values)) for row, values in entropies.items()),
        TEST.number("failed-fit", min(usual)),
        TEST.number("fits", len(records)),
    ]


def data(records: list[Path] = FILES) -> Data:
    """Macro-F1 of every row, and the differences of our models from two regressions."""
    names, labels = CORPORA | OTHER_CORPORA, {row: name.replace("`", "") for row, name in NAMES.items()}
    scores = [["corpus", "texts", "split", "row", "seeds", *summary_heading("macro-F1")]]
    differences = [["corpus", "texts", "row", "regression", "difference", "±", "p after Holm's correction"]]
    for runs in (read_records([path]) for path in records):
        split, lines, tested = runs[0]["split"], list[list[str]](), list[list[float]]()
        for (corpus, size), rows in scores_of(runs).items():
            start = [names[corpus], str(size)]
            for row in (row for row in NAMES if row in rows):
                values = [*rows[row].values()]
                scores.append([*start, split, labels[row], str(len(values)), *summary(values)])
            for row, base in TABLE_PAIRS:
                if row in rows and base in rows:
                    tested.append(paired(rows, row, base))
                    lines.append([*start, labels[row], labels[base], *summary(tested[-1])[:2]])
        differences += [[*line, f"{p:.3f}"] for line, p in zip(lines, corrected(tested), strict=True)]
    return {"small-data.csv": scores, "small-data-differences.csv": differences}
