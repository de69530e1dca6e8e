"""The numbers and data of docs/results/kitada.md."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from statistics import mean

from studies.numbers import Number, Origin
from studies.papers.comparisons import Table, comparison_numbers, estimate_number, number_cell, printed_rows
from studies.papers.data import (
    ACCURACY,
    COMMITS,
    CORRELATION,
    F1,
    STABILITY,
    TECHNIQUES,
    Curves,
    against_vanilla,
    curve_scores,
    paper_difference,
    printed_values,
    records,
    values,
)
from studies.stability.comparison import compare_with_vanilla, rows_of
from studies.stability.plan import HATE
from studies.stability.records import study_records
from studies.stability.statistics import Estimate, difference, paired_difference
from studies.tables import RECORDS, read_records

CLASSIFICATION_BLOCKS = {
    "sst2_bilstm": "SST",
    "imdb_bilstm": "IMDB",
    "newsgroups_sport_bilstm": "20News",
    "ag_news_bilstm": "AGNews",
    "snli_bilstm": "SNLI",
}
"""Blocks of Table 2 whose models learn to classify or to infer -> name in the paper."""
LEARNED_BLOCKS = (*CLASSIFICATION_BLOCKS, "babi_1_bilstm", "babi_2_bilstm")
"""All blocks whose models learn the task."""
OTHER_BLOCKS = ("babi_3_bilstm", "multinli_bilstm", "multinli_test_mismatched_bilstm")
"""Blocks with too few training texts, or with those of another corpus."""
MISMATCHED = "multinli_test_mismatched"
"""The paper prints no correlation of it."""
SETS = {
    **{block.removesuffix("_bilstm"): (block,) for block in (*LEARNED_BLOCKS, *OTHER_BLOCKS)},
    "five": tuple(CLASSIFICATION_BLOCKS),
    "four": tuple(block for block in CLASSIFICATION_BLOCKS if block != "snli_bilstm"),
    "seven": LEARNED_BLOCKS,
    "ten": (*LEARNED_BLOCKS, *OTHER_BLOCKS),
}
"""Data set, or set of data sets -> its blocks; `four` is without SNLI."""
BABI_SETTINGS = {
    "default": "GloVe vectors, 128 units, linear decoder",
    "default-rate-3": "GloVe vectors, 128 units, linear decoder, learning rate 0.003",
    "default-mlp": "GloVe vectors, 128 units, MLP decoder",
    "small": "own vectors, 32 units, linear decoder",
    "small-mlp": "own vectors, 32 units, MLP decoder",
    "small-mlp-unit": "own vectors from N(0, 1), 32 units, MLP decoder: Jain & Wallace",
    "small-mlp-unit-rate-3": "own vectors from N(0, 1), 32 units, MLP decoder, learning rate 0.003",
}
KITADA = {name: label for name, label in TECHNIQUES.items() if name != "seat"}
RUN = "python -m studies run papers {} --out DIR --data DATA --glove FILE"
TABLE2 = Origin(", ".join(COMMITS["kitada-table2"]), RUN.format("kitada babi multinli"))
FIGURE4 = Origin(", ".join(COMMITS["kitada-figure4"]), RUN.format("figure4 multinli-figure4"))
ALONE = Origin("3a7fb79", "python -m studies run hypothesis_only --data-dir DATA --glove FILE --out DIR")
CANDIDATE = re.compile(r"epsilon = ([\d.]+): ([\d.]+)")


def numbers() -> Iterator[Number]:
    estimates = differences()
    yield from comparison_numbers(TABLE2, estimates, {name: _seeds(name) for name in estimates})
    for name in KITADA:
        for measure, is_correlation in (("score", False), ("correlation", True)):
            change = paper_difference(name, CLASSIFICATION_BLOCKS.values(), is_correlation)
            yield TABLE2.number(f"kitada.paper-{measure}.{name}", change)
    yield from _printed_scores()
    yield from _curves()
    alone = [run["accuracy"] for run in read_records([RECORDS / "hypothesis_only.jsonl"])]
    yield ALONE.number("kitada.hypothesis-alone", mean(alone), n=len(alone))
    yield from _counts()
    yield from _hate()


@cache
def differences() -> dict[str, Estimate]:
    """kitada.MEASURE.TECHNIQUE.SET -> difference from the vanilla models of the same seeds."""
    estimates = {}
    for technique in KITADA:
        for name, blocks in SETS.items():
            estimates[f"kitada.score.{technique}.{name}"] = score_difference(technique, blocks)
            if name != MISMATCHED:
                change = against_vanilla(paired_difference, "kitada-table2", technique, [CORRELATION], blocks)
                estimates[f"kitada.correlation.{technique}.{name}"] = change
    return estimates


def score_difference(technique: str, blocks: Sequence[str]) -> Estimate:
    """Macro-F1, or accuracy where the paper has it."""
    return against_vanilla(paired_difference, "kitada-table2", technique, [F1, ACCURACY], blocks)


def _seeds(name: str) -> int:
    """The smallest number of seeds of its data sets."""
    blocks = SETS[name.rpartition(".")[2]]
    scores = [values("kitada-table2", "vanilla", measure, blocks) for measure in (F1, ACCURACY)]
    return min(len(of_seeds) for by_block in scores for of_seeds in by_block.values())


def _printed_scores() -> Iterator[Number]:
    """Scores of the tasks that the models learn, in %, by the labels of the paper."""
    for value in printed_values(records("kitada-table2")[0]):
        data, _, technique, _, measure = value.labels
        if measure != "Corr" and value.value is not None:
            yield TABLE2.number(
                f"kitada.table2.{_slug(data)}.{_slug(technique)}", value.value, value.interval, value.seeds
            )


def _slug(label: str) -> str:
    return label.lower().replace(" ", "-")


def _curves() -> Iterator[Number]:
    """Macro-F1 on SST-2: mean, lowest and highest seed by size of the perturbation."""
    for label, variants in scores_of_test_texts().items():
        for size, scores in variants.items():
            name = f"kitada.figure4.{_slug(label)}.{size}"
            yield FIGURE4.number(name, mean(scores), n=len(scores))
            yield FIGURE4.number(f"{name}.lowest", min(scores))
            yield FIGURE4.number(f"{name}.highest", max(scores))


def scores_of_test_texts() -> Curves:
    return curve_scores("sst2", lambda cell: cell.scores[F1])


def scores_of_validation_texts() -> Curves:
    """Validation macro-F1 of the models that were trained on SNLI."""
    return curve_scores("multinli", lambda cell: cell.validation)


def _counts() -> Iterator[Number]:
    for origin, table in ((TABLE2, "kitada-table2"), (FIGURE4, "kitada-figure4")):
        reproduction, cells = records(table)
        yield origin.number(f"{table}.models", len(cells))
        yield origin.number(f"{table}.code", reproduction.versions["code"])
        yield origin.number(f"{table}.torch", reproduction.versions["torch"])
    yield TABLE2.number("kitada.searched", len(_candidates()))
    babi_2 = [values("kitada-table2", name, ACCURACY, ["babi_2_bilstm"])["babi_2_bilstm"] for name in KITADA]
    yield TABLE2.number("kitada.babi-2.range", max(max(scores) - min(scores) for scores in babi_2))
    babi_1 = [values("kitada-table2", name, ACCURACY, ["babi_1_bilstm"])["babi_1_bilstm"] for name in KITADA]
    lowest, second = sorted(score for scores in babi_1 for score in scores)[:2]
    yield TABLE2.number("kitada.babi-1.lowest", lowest)
    yield TABLE2.number("kitada.babi-1.second", second)


def _hate() -> Iterator[Number]:
    """Macro-F1 of Word AT on hate speech in the stability study."""
    change = compare_with_vanilla(difference, rows_of(study_records()), "word-at", "macro-f1", [HATE])
    assert change is not None
    yield estimate_number(STABILITY, "kitada.hate-f1.word-at", change)


def data() -> dict[str, Table]:
    table2, figure4 = (records(table)[0] for table in ("kitada-table2", "kitada-figure4"))
    departures = {"Table 2": table2.departures, "Figure 4": figure4.departures}
    return {
        "kitada-table2.csv": printed_rows(printed_values(table2), (0, 2), ("data", "technique")),
        "kitada-differences.csv": _difference_rows(),
        "kitada-figure4.csv": _curve_rows(),
        "kitada-settings.csv": [["data", "technique", "epsilon", "validation macro-F1", "chosen"], *_candidates()],
        "babi-settings.csv": _babi_rows(),
        "kitada-departures.csv": [
            ["table", "departure"],
            *([table, text] for table, texts in departures.items() for text in texts),
        ],
    }


def _difference_rows() -> Table:
    corrected = {number.name: number.value for number in numbers() if number.name.startswith("p.")}
    rows = [["technique", "data", "measure", "difference", "low", "high", "p (Holm)"]]
    for name, estimate in differences().items():
        _, measure, technique, data_set = name.split(".")
        ends = [number_cell(number) for number in (estimate.value, estimate.low, estimate.high)]
        rows.append([KITADA[technique], data_set, measure, *ends, f"{corrected[f'p.{name}']:.3f}"])
    return rows


def _curve_rows() -> Table:
    rows = [["data", "technique", "epsilon", "measure", "mean", "lowest seed", "highest seed"]]
    curves = {
        ("SST-2", "test macro-F1"): scores_of_test_texts(),
        ("SNLI", "validation macro-F1"): scores_of_validation_texts(),
        ("MultiNLI", "test accuracy"): curve_scores("multinli", lambda cell: cell.scores[ACCURACY]),
    }
    for (corpus, measure), scores in curves.items():
        for label, variants in scores.items():
            for size in sorted(variants, key=float):
                ends = [number_cell(number(variants[size])) for number in (mean, min, max)]
                rows.append([corpus, label, size, measure, *ends])
    return rows


def _candidates() -> list[list[str]]:
    """Sizes of the perturbation that a validation score chose between."""
    rows = []
    for name, fact in records("kitada-table2")[0].facts.items():
        if ", " in name:
            chosen = fact.partition(" (")[0].removeprefix("epsilon = ")
            for epsilon, score in CANDIDATE.findall(fact):
                rows.append([*name.split(", "), epsilon, score, "yes" if epsilon == chosen else ""])
    return rows


def _babi_rows() -> Table:
    """Best validation macro-F1 of every seed, and the first epoch with 0.9 or more."""
    order, labels = (
        list(BABI_SETTINGS),
        ["data", "settings", "seed", "best validation macro-F1", "first epoch with 0.9"],
    )
    runs = read_records([RECORDS / "babi_settings.jsonl"])
    rows = [labels]
    for run in sorted(runs, key=lambda run: (run["corpus"], order.index(run["configuration"]), run["seed"])):
        first = next((str(i) for i, score in enumerate(run["validation"], 1) if score >= 0.9), "")
        best = f"{max(run['validation']):.3f}"
        rows.append([run["corpus"], BABI_SETTINGS[run["configuration"]], str(run["seed"]), best, first])
    return rows
