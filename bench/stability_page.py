"""The tables of docs/results/stability.md, from the records of bench/stability.py.

bench/stability_text.py makes the page.
"""

from collections.abc import Mapping
from functools import cache
from statistics import mean

import numpy as np

from stability_table import SHIFTS, difference_cell, ratio_cell, start_difference_cell, start_ratio_cell, table
from studies.stability.comparison import (
    FIRST_SEEDS,
    Rows,
    compare_with_start,
    compare_with_vanilla,
    rows_of,
    values,
    with_first_seeds,
)
from studies.stability.plan import MAIN_SETTINGS, SETTINGS, STARTS_FROM_VANILLA, TEMPERATURES
from studies.stability.records import Record, study_records
from studies.stability.statistics import Estimate, difference, paired, paired_difference
from studies.tables import mean_and_deviation

LABELS = {
    FIRST_SEEDS: FIRST_SEEDS,
    "consensus": "**consensus**",
    "consensus-word-at": "consensus, word-at teachers (ε = 0.2)",
    "anchored": "anchored",
    "word-at": "word-at (ε = 0.2)",
    "vanilla-groups": "vanilla, synonym groups",
    "word-at-groups": "word-at (ε = 0.2), synonym groups",
    "consensus-groups": "consensus, synonym groups",
    "word-at-by-f1": "word-at, by F1",
    "word-at-by-rule": "word-at, by the rule",
    "synonym-augmentation": "synonym augmentation",
    "ensemble": "ensemble of five vanilla models",
    "word-iat-by-f1": "word-iat, by F1",
    "word-iat-by-rule": "word-iat, by the rule",
    "attention-rp-by-f1": "attention-rp",
    "attention-at-by-f1": "attention-at",
    "attention-iat-word-by-f1": "attention-iat (`word`)",
    "seat-paper-ce": "seat (`paper`), cross-entropy",
    "seat-paper-kl": "seat (`paper`), KL",
    "seat-joint-ce": "seat (`joint`), cross-entropy",
    "seat-joint-kl": "seat (`joint`), KL",
    **{f"tempered-{t}": f"*vanilla, scores / {t:g}*" for t in TEMPERATURES},
}
"""Rows of the main tables, in their order."""
RANKS = {
    f"{name} {label}": f"{measure}/{probe}"
    for name, measure in (("top-7", "top-k-overlap"), ("τ", "kendall"))
    for label, probe in {
        "noise": "noise",
        "PGD": "pgd-attention",
        "3 syn": "3-synonyms",
        "3 held-out": "3-held-out",
        "1 WordNet": "1-wordnet",
    }.items()
}
EFFECTS = {
    "Δp 3 syn": "prediction-change/3-synonyms",
    "Δp 3 held-out": "prediction-change/3-held-out",
    "flips 3 syn": "label-flip/3-synonyms",
    "comprehensiveness": "comprehensiveness",
}
SCORE_LABELS = {
    "vanilla": "vanilla",
    "consensus": "consensus",
    "consensus-word-at": "consensus, word-at teachers",
    "word-at": "word-at, ε = 0.2",
    "ensemble": "ensemble",
    "synonym-augmentation": "synonym augmentation",
    "vanilla-groups": "vanilla, synonym groups",
    "word-at-groups": "word-at, synonym groups",
    "consensus-groups": "consensus, synonym groups",
}
PART_LABELS = {
    FIRST_SEEDS: FIRST_SEEDS,
    "anchored": "anchored",
    "anchored-no-noise": "without noise",
    "anchored-no-swaps": "without substitutions",
    "synonym-augmentation": "substitutions alone (synonym augmentation)",
    "consensus": "consensus",
    "consensus-no-noise-no-swaps": "without both",
    "ensemble": "averaging alone (ensemble)",
}
ABLATION_LABELS = {
    "seat-both-terms-ce": "both terms, cross-entropy",
    "seat-both-terms-kl": "both terms, KL",
    "seat-no-top-k-ce": "without top-k, cross-entropy",
    "seat-no-top-k-kl": "without top-k, KL",
    "seat-no-stability": "without stability",
    "seat-neither": "neither",
}
OWN_DIFFERENCES = {
    "macro-F1": "macro-f1",
    "normalized entropy": "normalized-entropy",
    "τ 3 held-out": "kendall/3-held-out",
}
OWN_RATIOS = {"confidence": "confidence", **{name.removeprefix("JSD "): key for name, key in SHIFTS.items()}, **EFFECTS}
ABLATION_SETTING = "sst2-bilstm"
"""The setting of the two ablations."""


def shift_table(rows: Rows, seeds: Mapping[tuple[str, str], Record], settings: list[str]) -> str:
    lines = []
    for row, label in LABELS.items():
        cells = [ratio_cell(rows, row, key, settings) for key in SHIFTS.values()]
        lines.append([label, *cells, _range(between_seeds(row, seeds, settings))])
    return table(["", *(name.removeprefix("JSD ") for name in SHIFTS), "between seeds"], lines)


def between_seeds(row: str, seeds: Mapping[tuple[str, str], Record], settings: list[str]) -> list[float]:
    """JSD between models of different seeds, ratio to vanilla's, by setting."""
    key = "jensen-shannon/seeds"
    return [seeds[s, row][key] / seeds[s, "vanilla"][key] for s in settings if (s, row) in seeds]


def _range(ratios: list[float]) -> str:
    return f"{min(ratios):.2f}–{max(ratios):.2f}" if ratios else ""


def effect_table(rows: Rows, settings: list[str]) -> str:
    lines = []
    for row, label in LABELS.items():
        runs = [record for s in settings for record in rows[row].get(s, {}).values()]
        first = difference_cell(rows, row, "macro-f1", settings)
        middle = [ratio_cell(rows, row, key, settings) for key in EFFECTS.values()]
        last = difference_cell(rows, row, "normalized-entropy", settings)
        lines.append([label, first, *middle, last, f"{sum(r['collapsed'] for r in runs)} of {len(runs)}"])
    return table(["", "macro-F1", *EFFECTS, "normalized entropy", "collapsed"], lines)


def rank_table(rows: Rows, settings: list[str]) -> str:
    plain = [mean(mean(values(rows["vanilla"], key, [s])[s]) for s in settings) for key in RANKS.values()]  # type: ignore[index]
    lines = [["vanilla, as it is", *(f"{value:.3f}" for value in plain)]]
    for row, label in LABELS.items():
        lines.append([label, *(difference_cell(rows, row, key, settings) for key in RANKS.values())])
    return table(["", *RANKS], lines)


def _starts_from_vanilla(row: str) -> bool:
    return row.startswith(STARTS_FROM_VANILLA)


def _entropy_difference(rows: Rows, row: str, settings: list[str]) -> float:
    """Difference in normalized entropy from vanilla."""
    ways = (compare_with_start, paired_difference) if _starts_from_vanilla(row) else (compare_with_vanilla, difference)
    estimate: Estimate | None = ways[0](ways[1], rows, row, "normalized-entropy", settings)
    return estimate.value if estimate else 0.0


def tempered_log_ratio(rows: Rows, row: str, setting: str, key: str) -> float:
    """ln of the ratio to vanilla, interpolated at the row's normalized entropy between temperatures 1, 1.5, 2 and 3."""
    gain = _entropy_difference(rows, row, [setting])
    own = {setting: {seed: rows["vanilla"][setting][seed] for seed in rows["tempered-1.5"][setting]}}
    entropies, logs = [0.0], [0.0]
    for t in TEMPERATURES:
        runs = rows[f"tempered-{t}"]
        here, plain = (values(part, "normalized-entropy", [setting]) for part in (runs, own))
        entropies.append(mean(here[setting]) - mean(plain[setting]))  # type: ignore[index]
        ours, theirs = (values(part, key, [setting]) for part in (runs, own))
        logs.append(float(np.log(paired(ours, theirs).value)))  # type: ignore[arg-type]
    return float(np.interp(gain, entropies, logs))


def ablation_table(rows: Rows, labels: Mapping[str, str]) -> str:
    keys = {**{name.removeprefix("JSD "): key for name, key in SHIFTS.items()}, **EFFECTS}
    lines = []
    for row, label in labels.items():
        cells = [difference_cell(rows, row, key, [ABLATION_SETTING]) for key in ("macro-f1", "normalized-entropy")]
        cells += [ratio_cell(rows, row, key, [ABLATION_SETTING]) for key in keys.values()]
        cells += [difference_cell(rows, row, "kendall/3-held-out", [ABLATION_SETTING])]
        lines.append([label, *cells])
    return table(["", "macro-F1", "normalized entropy", *keys, "τ 3 held-out"], lines)


def start_table(rows: Rows, labels: Mapping[str, str], settings: list[str], form: str) -> str:
    """Rows against the vanilla model that each of their models starts from: effects of vanilla seeds cancel."""
    lines = []
    for row, label in labels.items():
        if _starts_from_vanilla(row):
            cells = [start_difference_cell(rows, row, key, settings) for key in OWN_DIFFERENCES.values()]
            cells += [start_ratio_cell(rows, row, key, settings, form) for key in OWN_RATIOS.values()]
            lines.append([label, *cells])
    return table(["", *OWN_DIFFERENCES, *OWN_RATIOS], lines)


def score_table(rows: Rows) -> str:
    """Macro-F1 of the main rows by data set, mean ± standard deviation over seeds."""
    lines = []
    for row, label in SCORE_LABELS.items():
        by_setting = [[record["macro-f1"] for record in rows[row][setting].values()] for setting in SETTINGS]
        cells = [mean_and_deviation(f1_scores, 3) for f1_scores in by_setting]
        lines.append([f"{label} ({len(by_setting[0])})", *cells])
    return table(["", "SST-2", "Rotten Tomatoes", "emotion", "hate"], lines)


@cache
def tables() -> dict[str, str]:
    """Title -> table."""
    records = study_records()
    rows = with_first_seeds(rows_of(records))
    settings = MAIN_SETTINGS
    seeds = {(r["setting"], r["row"]): r for r in records if r["phase"] == "seeds"}
    return {
        "Shift of attention, ratio to vanilla": shift_table(rows, seeds, settings),
        "Rank-based stability, difference from vanilla": rank_table(rows, settings),
        "Effect on the model": effect_table(rows, settings),
        "Macro-F1 by setting": score_table(rows),
        "Parts, SST-2": ablation_table(rows, PART_LABELS),
        "Against the vanilla model that each starts from": start_table(rows, LABELS, settings, ".3f"),
        "Parts against their own start, SST-2": start_table(rows, PART_LABELS, [ABLATION_SETTING], ".2f"),
        "SEAT's terms against their own start, SST-2": start_table(rows, ABLATION_LABELS, [ABLATION_SETTING], ".3f"),
    }
