"""The pages docs/results/seat.md and docs/results/kitada.md, from the records of `steadygaze reproduce`.

python bench/published_page.py seat > docs/results/seat.md
python bench/published_page.py kitada > docs/results/kitada.md
"""

import gzip
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

import numpy as np

from stability_plan import MAIN_SETTINGS
from stability_records import study_records
from stability_table import (
    Cell,
    compare_with_start,
    compare_with_vanilla,
    format_estimate,
    format_number,
    rows_of,
    table,
    with_first_seeds,
)
from steadygaze.results.reproduction import CellScores, ReproducedValue, Reproduction
from steadygaze.study.comparison_table import bounded
from steadygaze.study.published_tables import AXES, find_table
from steadygaze.study.table_blocks import blocks as table_blocks
from studies.stability.statistics import (
    Estimate,
    Numbers,
    Values,
    difference,
    paired,
    paired_difference,
    paired_logs,
    ratio,
)
from studies.tables import mean_and_half, minus_signs, read_records

RECORDS = Path(__file__).parents[1] / "studies" / "records"
COMMITS = {
    "seat-table1": ("f740e00", "9d8e81b"),
    "seat-table4": ("3a7fb79",),
    "seat-figure2": ("19f2c38",),
    "seat-throughput": ("f740e00",),
    "kitada-table2": ("f740e00", "9d8e81b", "3a7fb79"),
    "kitada-figure4": ("f740e00", "9d8e81b", "3a7fb79"),
}
"""Table -> commits of its runs; a later run replaces the blocks of an earlier one."""
SWEEP = RECORDS / "partial" / "seat-sweep-f8f96777.jsonl.gz"
TECHNIQUES = {
    "word-at": "Word AT",
    "word-iat": "Word iAT",
    "attention-rp": "Attention RP",
    "attention-at": "Attention AT",
    "attention-iat": "Attention iAT",
    "seat": "SEAT",
}
JSD, BETWEEN, TVD, F1, ACCURACY, CORRELATION = (
    "jensen-shannon/noise",
    "jensen-shannon/seeds",
    "prediction-change/noise",
    "macro-f1",
    "accuracy",
    "pearson/gradient",
)
ONE_WORKER_TECHNIQUES = ("word-at", "word-iat", "attention-rp", "attention-at")
"""Techniques that one worker ran."""
CLASSIFICATION_BLOCKS = {
    "sst2_bilstm": "SST",
    "imdb_bilstm": "IMDB",
    "newsgroups_sport_bilstm": "20News",
    "ag_news_bilstm": "AGNews",
    "snli_bilstm": "SNLI",
}
"""Blocks of Kitada's Table 2 whose models learn to classify or to infer -> name in the paper."""
LEARNED_BLOCKS = (*CLASSIFICATION_BLOCKS, "babi_1_bilstm", "babi_2_bilstm")
"""All blocks whose models learn the task."""
OTHER_BLOCKS = ("babi_3_bilstm", "multinli_bilstm", "multinli_test_mismatched_bilstm")
"""Blocks with too few training texts, or with those of another corpus."""
MINILM = "transformer-minilm"
ENCODERS = {"rnn": "RNN", "bilstm": "BiLSTM", MINILM: "BERT"}
"""Ours, and the label of the paper."""
FIVE, FOUR = "**mean of the five**", "**mean of four, without SNLI**"
SEVEN, ALL = "**mean of the seven**", "**mean of all ten**"
MISMATCHED = "multinli_test_mismatched_bilstm"
ABLATION = {"L3": ("sst2_rnn_1", "sst2_bilstm_1"), "both": ("sst2_rnn_3", "sst2_bilstm_3")}
"""Blocks of SEAT's Table 4: the stability term alone, both terms."""
BABI_SETTINGS = {
    "default": "GloVe vectors, 128 units, linear decoder",
    "default-rate-3": "GloVe vectors, 128 units, linear decoder, learning rate 0.003",
    "default-mlp": "GloVe vectors, 128 units, MLP decoder",
    "small": "own vectors, 32 units, linear decoder",
    "small-mlp": "own vectors, 32 units, MLP decoder",
    "small-mlp-unit": "own vectors from N(0, 1), 32 units, MLP decoder: **Jain & Wallace**",
    "small-mlp-unit-rate-3": "the same, learning rate 0.003",
}


def template(name: str) -> str:
    """The text of a page, with the names of its numbers in braces."""
    return (Path(__file__).parent / f"published_{name}.md").read_text(encoding="utf-8")


@cache
def records(table: str) -> tuple[Reproduction, tuple[CellScores, ...]]:
    """The table and its models, of all runs."""
    runs = [Reproduction.from_records(RECORDS / f"{table}-{commit}.jsonl.gz") for commit in COMMITS[table]]
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
    table, found = find_table(reproduction.table), {value.labels: value for value in reproduction.values}
    for block in table_blocks(table):
        for entry in block.entries:
            labels, scale = tuple(entry.label(axis) for axis in AXES), table.counterpart(entry, "measures").scale
            value, model = found.get(labels), (block.folder, block.techniques[entry.label("techniques")].name)
            if value is not None and value.value is not None:
                scores = [cell.scores[value.measure] for cell in cells if (cell.block, cell.technique) == model]
                middle, half = mean_and_half(list(jackknife(scores)) if value.measure == BETWEEN else scores)
                low, high = bounded(value.measure, (middle - half, middle + half)) or (middle, middle)
                found[labels] = replace(value, interval=(scale * low, scale * high))
    return replace(reproduction, values=tuple(found.values()))


def values(table: str, technique: str, measure: str, blocks: Sequence[str] = ()) -> Values:
    """Block -> one number per seed."""
    scores: dict[str, list[float]] = {}
    for cell in records(table)[1]:
        if cell.technique == technique and measure in cell.scores and (not blocks or cell.block in blocks):
            scores.setdefault(cell.block, []).append(cell.scores[measure])
    return scores


def against_vanilla(
    statistic: Callable[[Values, Values], Estimate],
    table: str,
    technique: str,
    measures: Sequence[str],
    blocks: Sequence[str] = (),
) -> Estimate:
    """Compared with the vanilla model of the same seed; the first measure that a block has."""
    ours, plain = (_first(table, name, measures, blocks) for name in (technique, "vanilla"))
    return statistic(ours, plain)


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


def _first(table: str, technique: str, measures: Sequence[str], blocks: Sequence[str]) -> Values:
    merged: dict[str, Sequence[float]] = {}
    for measure in reversed(measures):
        merged |= values(table, technique, measure, blocks)
    return merged


def comparison_table(
    reproduction: Reproduction,
    rows: Sequence[int],
    column_of: Callable[[ReproducedValue], str],
    data: Sequence[str] = (),
) -> str:
    """Ours [95 % interval] (paper), with these labels as rows; `data`: labels of data sets, or all."""
    grid: dict[tuple[str, ...], dict[str, str]] = {}
    for value in reproduction.values:
        if value.value is not None and (not data or value.labels[0] in data):
            paper = f" ({value.paper_text})" if value.paper is not None else ""
            column = column_of(value)
            grid.setdefault(tuple(value.labels[i] for i in rows), {})[column] = value.our_text + paper
    heads = list(dict.fromkeys(name for line in grid.values() for name in line))
    names = ("data", "encoder", "technique", "variant", "measure")
    lines = [[*labels, *(line.get(name, "") for name in heads)] for labels, line in grid.items()]
    return table([*(names[i] for i in rows), *heads], lines)


def by_encoder(numbers: dict[str, str]) -> str:
    """
    >>> by_encoder({"rnn": "1.00", "bilstm": "1.00", "minilm": "1.01"})
    '1.00 (RNN), 1.00 (BiLSTM) and 1.01 (MiniLM)'
    """
    names = {"rnn": "RNN", "bilstm": "BiLSTM", "minilm": "MiniLM"}
    if len(set(numbers.values())) == 1:
        return f"{numbers['rnn']} with {names['rnn']}, {names['bilstm']} and {names['minilm']}"
    first, second, third = (f"{numbers[key]} ({name})" for key, name in names.items())
    return f"{first}, {second} and {third}"


def less(ratio: float) -> str:
    return f"{100 * (1 - ratio):.0f} %"


def power(ratio: float) -> str:
    """8.2e-06 as 8 × 10⁻⁶."""
    digit, exponent = f"{ratio:.0e}".split("e-")
    return f"{digit} × 10⁻{exponent.lstrip('0').translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def seat() -> str:
    rows, jsd = [], {}
    for technique, label in TECHNIQUES.items():
        for encoder in ENCODERS:
            blocks, name = blocks_of("seat-table1", encoder), encoder.removeprefix("transformer-")
            ratios = [against_vanilla(paired, "seat-table1", technique, [measure], blocks) for measure in (JSD, TVD)]
            f1 = against_vanilla(paired_difference, "seat-table1", technique, [F1], blocks)
            paper = paper_ratio(technique, encoder)
            jsd[technique, name] = ratios[0].value
            rows.append(
                [
                    label,
                    name,
                    *(Cell(ratio, ".2f") for ratio in ratios),
                    f"{paper:.2g}",
                    Cell(f1, "+.3f"),
                ]
            )
    reproduction, cells = records("seat-table1")
    seconds_alone, among, many = throughput()
    hate = {name: values("seat-table1", name, F1)["tweet_hate_bilstm"] for name in ("vanilla", "word-at")}
    return template("seat").format(
        **outside_numbers(),
        **sweep_numbers(),
        models=len(cells),
        seat=by_encoder({name: f"{jsd['seat', name]:.2f}" for name in ("rnn", "bilstm", "minilm")}),
        paper_rnn=power(paper_ratio("seat", "rnn")),
        paper_bilstm=power(paper_ratio("seat", "bilstm")),
        paper_bert=power(paper_ratio("seat", MINILM)),
        **word_at_reductions(),
        **{f"study_{name}": less(value) for name, value in study().items() if name != "hate"},
        **{f"hate_{name.replace('-', '_')}": f"{mean(hate[name]):.3f}" for name in hate},
        differences=table(
            ["technique", "encoder", "JSD, ratio", "TVD, ratio", "JSD, ratio in the paper", "macro-F1"], rows
        ),
        comparison_table=comparison_table(reproduction, (0, 1, 2), _column),
        ablation=comparison_table(records("seat-table4")[0], (1, 2), lambda value: value.labels[4]),
        stability_alone=format_estimate(against_vanilla(paired, "seat-table4", "seat", [TVD], ABLATION["L3"]), ".2f"),
        both_terms=format_estimate(against_vanilla(paired, "seat-table4", "seat", [TVD], ABLATION["both"]), ".2f"),
        ablated=len(records("seat-table4")[1]),
        between=comparison_table(records("seat-figure2")[0], (0, 2), _column),
        between_ratio=format_estimate(between_ratio("seat"), ".2f"),
        between_largest=f"{100 * largest_difference('seat'):.3f} %",
        compared=len(records("seat-figure2")[1]),
        between_code=records("seat-figure2")[0].versions["code"],
        departures=bullets(reproduction.departures),
        code=reproduction.versions["code"],
        torch=reproduction.versions["torch"],
        one=f"{seconds_alone:.1f}",
        one_hour=f"{3600 / seconds_alone:.0f}",
        among=f"{among:.1f}",
        many=f"{many:,.0f}",
        times=f"{14 * seconds_alone / among:.1f}",
    )


def outside_numbers() -> dict[str, str]:
    """What an outside reviewer measured; we did not repeat it."""
    review = json.loads((RECORDS / "outside_review.json").read_text(encoding="utf-8"))
    run, code = review["SEAT, variant released"], review["SEAT, independent code of Eq. 6"]
    pairs = {"data": "data sets", "jsd": "JSD under noise", "paper": "JSD of the paper"}
    scores = {"f1": "macro-F1", "vanilla": "macro-F1 of vanilla"}
    return {
        **{f"outside_{name}": " and ".join(run[key]) for name, key in pairs.items()},
        **{f"outside_{name}": " and ".join(f"{score:.3f}" for score in run[key]) for name, key in scores.items()},
        "outside_entropy": f"{run['normalized entropy']:.3f}",
        "outside_comp": f"{run['comprehensiveness, ratio to vanilla']:.2f}",
        "outside_settings": str(code["settings"]),
        "outside_ratio": " to ".join(f"{number:.2f}" for number in code["JSD ratio"]),
    }


def sweep_numbers() -> dict[str, str]:
    """The finished part of bench/seat_sweep.py: shift of `paper` under noise, entropy of `released` with λ2 = 1000."""
    _, *models = read_records([SWEEP])
    shifts: dict[str, list[float]] = {}
    for model in models:
        if model["data"] == "emotion-2":
            shifts.setdefault(f"{model['row']} {model['settings']}", []).append(model[JSD])
    plain = mean(shifts["vanilla {}"])
    ratios = [mean(runs) / plain for name, runs in shifts.items() if name.startswith("seat-paper ")]
    released = [model for model in models if model["row"] == "seat-released" and model["settings"]["overlap"] == 1000]
    entropies = sorted({f"{model['normalized-entropy']:.3f}" for model in released})
    return {
        "sweep_settings": str(len(ratios)),
        "sweep_ratios": f"{min(ratios):.2f} to {max(ratios):.2f}",
        "sweep_entropy": " to ".join(dict.fromkeys([entropies[0], entropies[-1]])),
    }


def kitada() -> str:
    rows, techniques = [], [name for name in TECHNIQUES if name != "seat"]
    everything = (*LEARNED_BLOCKS, *OTHER_BLOCKS)
    single = tuple(block for block in CLASSIFICATION_BLOCKS if block != "snli_bilstm")
    means = {FIVE: tuple(CLASSIFICATION_BLOCKS), FOUR: single, SEVEN: LEARNED_BLOCKS, ALL: everything}
    sets = {**{block: (block,) for block in everything}, **means}
    for technique in techniques:
        for name, blocks in sets.items():
            score = against_vanilla(paired_difference, "kitada-table2", technique, [F1, ACCURACY], blocks)
            correlation: str | Cell = "–"
            if name != MISMATCHED:  # the paper prints none
                change = against_vanilla(paired_difference, "kitada-table2", technique, [CORRELATION], blocks)
                correlation = Cell(change, "+.3f")
            data = name.removesuffix("_bilstm").replace("_test_", ", ")
            rows.append([TECHNIQUES[technique], data, Cell(score, "+.3f"), correlation])
    reproduction, cells = records("kitada-table2")
    curves, more = records("kitada-figure4")
    babi = {row[0]: format_estimate(*row[2]) for row in rows if row[1] == "babi_2"}
    alone = _jsonl("hypothesis_only")
    return template("kitada").format(
        models=len(cells) + len(more),
        searched=sum(fact.count("epsilon = ") - 1 for name, fact in reproduction.facts.items() if ", " in name),
        **{
            f"{name.replace('-', '_')}_score": format_number(over_five(name, [F1, ACCURACY]).value)
            for name in techniques
        },
        **{
            f"{name.replace('-', '_')}_corr": format_number(over_five(name, [CORRELATION]).value) for name in techniques
        },
        **{f"{name.replace('-', '_')}_paper": format_number(paper_difference(name)) for name in techniques},
        **{f"{name.replace('-', '_')}_paper_corr": format_number(paper_difference(name, True)) for name in techniques},
        **{f"{row[0].lower().replace(' ', '_')}_ci": format_estimate(*row[2]) for row in rows if row[1] == FIVE},
        **{f"{row[0].lower().replace(' ', '_')}_all": format_estimate(*row[2]) for row in rows if row[1] == ALL},
        **{f"{row[0].lower().replace(' ', '_')}_four": format_estimate(*row[3]) for row in rows if row[1] == FOUR},
        study_hate=f"{-study()['hate']:.3f}",
        **{f"{name.replace('-', '_')}_babi": babi[TECHNIQUES[name]] for name in techniques},
        differences=table(["technique", "data", "score", "correlation"], rows),
        comparison_table=comparison_table(reproduction, (0, 2), _column),
        babi_settings=babi_settings(),
        alone=f"{100 * mean(run['accuracy'] for run in alone):.1f} %",
        alone_models=len(alone),
        curves=curve_table(curve_scores("sst2", lambda cell: cell.scores[F1])),
        snli_curves=curve_table(validation_scores()),
        multinli_curves=comparison_table(curves, (2,), _variant, ("MultiNLI",)),
        settings=bullets([f"{name}: {value}" for name, value in reproduction.facts.items() if ", " in name]),
        departures=bullets([*reproduction.departures, *(d for d in curves.departures if "validation scores" in d)]),
        code=reproduction.versions["code"],
        torch=reproduction.versions["torch"],
    )


def babi_settings() -> str:
    """Best validation macro-F1 of each configuration, and the first epoch with 0.9 or more."""
    runs, lines = group_rows(_jsonl("babi_settings"), "corpus", "configuration"), []
    for corpus, name in sorted(runs, key=lambda key: (key[0], list(BABI_SETTINGS).index(key[1]))):
        scores = [run["validation"] for run in runs[corpus, name]]
        first = [next((str(i) for i, score in enumerate(curve, 1) if score >= 0.9), "–") for curve in scores]
        lines.append(
            [corpus, BABI_SETTINGS[name], ", ".join(f"{max(curve):.3f}" for curve in scores), ", ".join(first)]
        )
    return table(["data", "settings", "best validation macro-F1 of each seed", "first epoch with 0.9"], lines)


def validation_scores() -> dict[str, dict[str, list[float]]]:
    """Technique -> variant -> validation macro-F1 of the models of Figure 4 that were trained on SNLI, by seed."""
    return curve_scores("multinli", lambda cell: cell.validation)


def curve_scores(corpus: str, score_of: Callable[[CellScores], float | None]) -> dict[str, dict[str, list[float]]]:
    """Technique -> variant -> scores of the models of Figure 4, by seed."""
    scores: dict[str, dict[str, list[float]]] = {}
    for cell in records("kitada-figure4")[1]:
        if cell.block.startswith(corpus) and (score := score_of(cell)) is not None:
            label, size = TECHNIQUES.get(cell.technique, "Vanilla"), cell.block.rpartition("_ε-")[2]
            scores.setdefault(label, {}).setdefault(size, []).append(score)
    return scores


def curve_table(scores: dict[str, dict[str, list[float]]]) -> str:
    """Mean [lowest, highest] of the seeds."""
    sizes = sorted(scores["Vanilla"], key=float)
    lines = [[label, *(_percent(of[size]) for size in sizes)] for label, of in scores.items()]
    return table(["technique", *(f"ε = {size}" for size in sizes)], lines)


def _percent(scores: Sequence[float]) -> str:
    """Mean [lowest, highest]."""
    return "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * number for number in (mean(scores), min(scores), max(scores))))


def group_rows(rows: Sequence[dict[str, Any]], *names: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def _jsonl(name: str) -> list[dict[str, Any]]:
    return read_records([RECORDS / f"{name}.jsonl"])


def over_five(technique: str, measures: Sequence[str]) -> Estimate:
    """Difference from vanilla in Table 2 of Kitada & Iyatomi, mean over the data sets that the models learn."""
    return against_vanilla(paired_difference, "kitada-table2", technique, measures, list(CLASSIFICATION_BLOCKS))


def paper_difference(technique: str, correlation: bool = False) -> float:
    """The same of the printed numbers."""
    paper_scores = {
        value.labels[::2][:2]: value.paper / (1 if correlation else 100)
        for value in records("kitada-table2")[0].values
        if (value.labels[4] == "Corr") is correlation and value.paper is not None
    }
    return mean(
        paper_scores[data, TECHNIQUES[technique]] - paper_scores[data, "Vanilla"]
        for data in CLASSIFICATION_BLOCKS.values()
    )


def blocks_of(name: str, encoder: str) -> list[str]:
    return [block for block in values(name, "vanilla", F1) if block.endswith(f"_{encoder}")]


def paper_values(technique: str, encoder: str) -> list[float]:
    """The printed JSD of Table 1, for the data sets that were run."""
    label = "Vanilla" if technique == "vanilla" else TECHNIQUES[technique].replace(" ", "-")
    chosen = (ENCODERS[encoder], label, "JSD")
    paper_scores = [
        value.paper
        for value in records("seat-table1")[0].values
        if (value.labels[1], value.labels[2], value.labels[4]) == chosen and value.paper is not None
    ]
    assert len(paper_scores) == len(blocks_of("seat-table1", encoder)), chosen
    return paper_scores


def paper_ratio(technique: str, encoder: str) -> float:
    """The geometric mean of the printed JSD over that of vanilla."""
    pairs = zip(paper_values(technique, encoder), paper_values("vanilla", encoder), strict=True)
    return geometric_mean([ours / plain for ours, plain in pairs])


@cache
def study() -> dict[str, float]:
    """Ratios of the shift in the stability study, of Word AT and `joint`; and of Word AT the macro-F1 on hate."""
    rows = with_first_seeds(rows_of(study_records()))
    names = {"noise": "noise", "synonyms": "3-synonyms", "held_out": "3-held-out"}
    settings = MAIN_SETTINGS
    ratios = {
        n: compare_with_vanilla(ratio, rows, "word-at", f"jensen-shannon/{key}", settings).value
        for n, key in names.items()
    }
    for name, key in {"joint": "noise", "joint_synonyms": "3-synonyms"}.items():
        ratios[name] = compare_with_start(paired, rows, "seat-joint-kl", f"jensen-shannon/{key}", settings).value
    return {**ratios, "hate": compare_with_vanilla(difference, rows, "word-at", "macro-f1", ["hate-bilstm"]).value}


def word_at_reductions() -> dict[str, str]:
    """By how much the shift of Word AT under noise is lower: all data sets and encoders but hate, and hate."""
    ratios = {
        block: against_vanilla(paired, "seat-table1", "word-at", [JSD], [block]).value
        for encoder in ENCODERS
        for block in blocks_of("seat-table1", encoder)
    }
    hate, others = (
        sorted((value for block, value in ratios.items() if ("hate" in block) is is_hate), reverse=True)
        for is_hate in (True, False)
    )
    return {
        "word_at": f"{less(others[0])[:-2]} to {less(others[-1])}",
        "word_at_hate": " and ".join(less(value)[:-2] for value in hate) + " %",
    }


def throughput() -> tuple[float, float, float]:
    """Seconds of a cell with one worker, and among 14; cells per hour of 14 workers."""
    (commit,) = COMMITS["seat-throughput"]
    with gzip.open(RECORDS / f"seat-throughput-{commit}.jsonl.gz", "rt", encoding="utf-8") as file:
        first, *events = [json.loads(line) for line in file]
    cells, seconds = 0, 0.0
    for before, event in pairwise([{"block": "", "seconds": 0.0}, *events]):
        if event["block"].endswith("bilstm"):
            cells, seconds = cells + 1, seconds + event["seconds"] - before["seconds"]
    same = [
        c.seconds
        for c in records("seat-table1")[1]
        if c.block == "sst2_bilstm" and c.technique in ONE_WORKER_TECHNIQUES
    ]
    return first["seconds"] / first["cells"], mean(same), 3600 * cells / seconds


def _column(value: ReproducedValue) -> str:
    measure = value.labels[4]
    return measure if measure in ("JSD", "TVD", "F1", "Corr") and value.measure != "accuracy" else "F1"


def _variant(value: ReproducedValue) -> str:
    return value.labels[3]


PAGES = {"seat": seat, "kitada": kitada}


def page(name: str) -> str:
    return minus_signs(PAGES[name]())


if __name__ == "__main__":
    print(page(sys.argv[1]), end="")
