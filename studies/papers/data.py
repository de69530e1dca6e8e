"""The records of published tables: all runs of a table merged, and its models compared with vanilla."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import geometric_mean, mean

import numpy as np

from steadygaze.results.reproduction import CellScores, ReproducedValue, Reproduction
from steadygaze.study.comparison_table import bounded
from steadygaze.study.published_tables import AXES, find_table
from steadygaze.study.table_blocks import blocks as table_blocks
from studies.numbers import Origin
from studies.stability.statistics import Estimate, Numbers, Values, paired, paired_logs
from studies.tables import RECORDS, mean_and_half

COMMITS = {
    "seat-table1": ("f740e00", "9d8e81b"),
    "seat-table4": ("3a7fb79",),
    "seat-figure2": ("19f2c38",),
    "seat-throughput": ("f740e00",),
    "kitada-table2": ("f740e00", "9d8e81b", "3a7fb79"),
    "kitada-figure4": ("f740e00", "9d8e81b", "3a7fb79"),
}
"""Table -> commits of its runs; a later run replaces the blocks of an earlier one."""
TECHNIQUES = {
    "word-at": "Word AT",
    "word-iat": "Word iAT",
    "attention-rp": "Attention RP",
    "attention-at": "Attention AT",
    "attention-iat": "Attention iAT",
    "seat": "SEAT",
}
"""Name -> label; vanilla is what they are compared with."""
JSD, BETWEEN, TVD, F1, ACCURACY, CORRELATION = (
    "jensen-shannon/noise",
    "jensen-shannon/seeds",
    "prediction-change/noise",
    "macro-f1",
    "accuracy",
    "pearson/gradient",
)
STABILITY = Origin("db9835f", "python -m studies run stability --out DIR --glove FILE --synonyms DIR")
"""Numbers of the stability study."""
Curves = Mapping[str, Mapping[str, Sequence[float]]]
"""Technique -> size of the perturbation -> scores by seed."""
Statistic = Callable[[Values, Values], Estimate]


def files(table: str) -> list[Path]:
    return [RECORDS / f"{table}-{commit}.jsonl.gz" for commit in COMMITS[table]]


@cache
def records(table: str) -> tuple[Reproduction, tuple[CellScores, ...]]:
    """The table and its models, of all runs."""
    runs = [Reproduction.from_records(file) for file in files(table)]
    values = {value.labels: value for reproduction, _ in runs for value in reproduction.values}
    values |= {v.labels: v for reproduction, _ in runs for v in reproduction.values if v.value is not None}
    departures = {text.partition(": ")[0]: text for reproduction, _ in runs for text in reproduction.departures}
    codes = ", ".join(reproduction.versions["code"] for reproduction, _ in runs)
    blocks = {cell.block: number for number, (_, cells) in enumerate(runs) for cell in cells}
    merged = replace(
        runs[0][0],
        values=tuple(values.values()),
        departures=tuple(departures.values()),
        facts={name: fact for reproduction, _ in runs for name, fact in reproduction.facts.items()},
        versions={**runs[0][0].versions, "code": codes},
    )
    cells = tuple(cell for number, (_, cells) in enumerate(runs) for cell in cells if blocks[cell.block] == number)
    return with_t_intervals(merged, cells), cells


def with_t_intervals(reproduction: Reproduction, cells: Sequence[CellScores]) -> Reproduction:
    """95 % t intervals over seeds, within the bounds of the measure: the records have no values of texts."""
    table, by_labels = find_table(reproduction.table), {value.labels: value for value in reproduction.values}
    for block in table_blocks(table):
        for entry in block.entries:
            labels, scale = tuple(entry.label(axis) for axis in AXES), table.counterpart(entry, "measures").scale
            value, model = by_labels.get(labels), (block.folder, block.techniques[entry.label("techniques")].name)
            if value is not None and value.value is not None:
                scores = [cell.scores[value.measure] for cell in cells if (cell.block, cell.technique) == model]
                middle, half = mean_and_half(list(jackknife(scores)) if value.measure == BETWEEN else scores)
                low, high = bounded(value.measure, (middle - half, middle + half)) or (middle, middle)
                by_labels[labels] = replace(value, interval=(scale * low, scale * high))
    return replace(reproduction, values=tuple(by_labels.values()))


def values(table: str, technique: str, measure: str, blocks: Sequence[str] = ()) -> Values:
    """Block -> one number per seed."""
    scores: dict[str, list[float]] = {}
    for cell in records(table)[1]:
        if cell.technique == technique and measure in cell.scores and (not blocks or cell.block in blocks):
            scores.setdefault(cell.block, []).append(cell.scores[measure])
    return scores


def against_vanilla(
    statistic: Statistic, table: str, technique: str, measures: Sequence[str], blocks: Sequence[str] = ()
) -> Estimate:
    """Compared with the vanilla model of the same seed; the first measure that a block has."""
    ours, plain = (_first(table, name, measures, blocks) for name in (technique, "vanilla"))
    return statistic(ours, plain)


def _first(table: str, technique: str, measures: Sequence[str], blocks: Sequence[str]) -> Values:
    merged: dict[str, Sequence[float]] = {}
    for measure in reversed(measures):
        merged |= values(table, technique, measure, blocks)
    return merged


def blocks_of(table: str, encoder: str) -> list[str]:
    return [block for block in values(table, "vanilla", F1) if block.endswith(f"_{encoder}")]


def shift_ratio(technique: str, blocks: Sequence[str]) -> Estimate:
    """The shift under noise in Table 1 of SEAT, ratio to vanilla: geometric mean over the blocks."""
    return against_vanilla(paired, "seat-table1", technique, [JSD], blocks)


def between_ratio(technique: str) -> Estimate:
    """Mean JSD between seeds in Figure 2 of SEAT, ratio to vanilla: geometric mean over the data sets."""
    ours, plain = (values("seat-figure2", name, BETWEEN) for name in (technique, "vanilla"))
    return paired_logs({block: jackknife(ours[block], np.log) - jackknife(plain[block], np.log) for block in plain})


def jackknife(scores: Sequence[float], of: Callable[[Numbers], Numbers] = np.asarray) -> Numbers:
    """Pseudo-values of a function of the mean over all pairs of models; `scores`: of each model with the others."""
    own, models = np.asarray(scores), len(scores)
    without = (models * own.mean() - 2 * own) / (models - 2)  # the mean over the pairs of the other models
    pseudo: Numbers = models * of(own.mean()) - (models - 1) * of(without)
    return pseudo


def largest_difference(technique: str) -> float:
    """The largest relative difference from vanilla of the mean JSD between seeds, of all data sets."""
    ours, plain = (values("seat-figure2", name, BETWEEN) for name in (technique, "vanilla"))
    return max(abs(mean(ours[block]) / mean(plain[block]) - 1) for block in plain)


def paper_ratio(technique: str, label: str, data_sets: int) -> float:
    """The geometric mean of the printed JSD over that of vanilla; `label`: the encoder in the paper."""
    pairs = zip(_paper_shifts(technique, label), _paper_shifts("vanilla", label), strict=True)
    ratios = [ours / plain for ours, plain in pairs]
    assert len(ratios) == data_sets, (technique, label)
    return geometric_mean(ratios)


def _paper_shifts(technique: str, encoder: str) -> list[float]:
    """The printed JSD of Table 1 of SEAT, for the data sets that were run."""
    label = "Vanilla" if technique == "vanilla" else TECHNIQUES[technique].replace(" ", "-")
    return [
        value.paper
        for value in records("seat-table1")[0].values
        if (*value.labels[1:3], value.labels[4]) == (encoder, label, "JSD") and value.paper is not None
    ]


def paper_difference(technique: str, data: Iterable[str], correlation: bool = False) -> float:
    """The printed difference from vanilla in Table 2 of Kitada & Iyatomi, mean over the data sets."""
    scores = {
        value.labels[::2][:2]: value.paper / (1 if correlation else 100)
        for value in records("kitada-table2")[0].values
        if (value.labels[4] == "Corr") is correlation and value.paper is not None
    }
    return mean(scores[name, TECHNIQUES[technique]] - scores[name, "Vanilla"] for name in data)


def curve_scores(corpus: str, score_of: Callable[[CellScores], float | None]) -> Curves:
    """The scores of the models of Figure 4 of Kitada & Iyatomi."""
    scores: dict[str, dict[str, list[float]]] = {}
    for cell in records("kitada-figure4")[1]:
        if cell.block.startswith(corpus) and (score := score_of(cell)) is not None:
            label, size = TECHNIQUES.get(cell.technique, "Vanilla"), cell.block.rpartition("_ε-")[2]
            scores.setdefault(label, {}).setdefault(size, []).append(score)
    return scores


def printed_values(reproduction: Reproduction, data: Sequence[str] = ()) -> list[ReproducedValue]:
    """The numbers that were measured, of all data sets or of those with these labels."""
    return [v for v in reproduction.values if v.value is not None and (not data or v.labels[0] in data)]
