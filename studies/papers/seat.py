"""The numbers and data of docs/results/seat.md."""

import gzip
import json
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from statistics import mean
from typing import Any

from studies.numbers import Number, Origin
from studies.papers.comparisons import Table, comparison_numbers, estimate_number, printed_rows
from studies.papers.data import (
    COMMITS,
    F1,
    JSD,
    STABILITY,
    TECHNIQUES,
    TVD,
    against_vanilla,
    between_ratio,
    blocks_of,
    files,
    largest_difference,
    paper_ratio,
    printed_values,
    records,
    shift_ratio,
)
from studies.seat_sweep.table import SWEEP, models_of
from studies.stability.comparison import compare_with_start, rows_of
from studies.stability.plan import MAIN_SETTINGS
from studies.stability.records import study_records
from studies.stability.statistics import Estimate, paired, paired_difference
from studies.tables import RECORDS

ENCODERS = {"rnn": "RNN", "bilstm": "BiLSTM", "transformer-minilm": "BERT"}
"""Ours, and the label of the paper."""
ABLATION = {"stability": ("sst2_rnn_1", "sst2_bilstm_1"), "both": ("sst2_rnn_3", "sst2_bilstm_3")}
"""Blocks of SEAT's Table 4: the stability term alone, both terms."""
ONE_WORKER_TECHNIQUES = ("word-at", "word-iat", "attention-rp", "attention-at")
"""Techniques that one worker ran."""
RUN = "python -m studies run papers {} --out DIR --data DATA --glove FILE"
TABLE1 = Origin(", ".join(COMMITS["seat-table1"]), RUN.format("seat seat-minilm"))
TABLE4 = Origin(", ".join(COMMITS["seat-table4"]), RUN.format("seat-table4"))
FIGURE2 = Origin(", ".join(COMMITS["seat-figure2"]), RUN.format("seat-figure2"))
THROUGHPUT = Origin(", ".join(COMMITS["seat-throughput"]), RUN.format("--one-by-one 4"))


def numbers() -> Iterator[Number]:
    yield from _differences()
    yield from _word_at()
    yield from _table4_and_figure2()
    yield from _throughput()
    yield from _sweep()
    yield from _outside()
    yield from _study()
    for origin, table in ((TABLE1, "seat-table1"), (TABLE4, "seat-table4"), (FIGURE2, "seat-figure2")):
        reproduction, cells = records(table)
        yield origin.number(f"{table}.models", len(cells))
        for name in ("code", "torch"):
            yield origin.number(f"{table}.{name}", reproduction.versions[name])


def data() -> dict[str, Table]:
    table1, labels = records("seat-table1")[0], ("data", "encoder", "technique")
    return {
        "seat-table1.csv": printed_rows(printed_values(table1), (0, 1, 2), labels),
        "seat-departures.csv": [["departure"], *([text] for text in table1.departures)],
        "seat-table4.csv": printed_rows(printed_values(records("seat-table4")[0]), (1, 2), labels[1:]),
        "seat-figure2.csv": printed_rows(printed_values(records("seat-figure2")[0]), (0, 2), labels[::2]),
    }


@cache
def differences() -> dict[str, Estimate]:
    """seat.MEASURE.TECHNIQUE.ENCODER -> comparison with the vanilla models of the same seeds."""
    estimates = {}
    for technique in TECHNIQUES:
        for encoder in ENCODERS:
            blocks, name = blocks_of("seat-table1", encoder), f"{technique}.{encoder.removeprefix('transformer-')}"
            estimates[f"seat.jsd.{name}"] = shift_ratio(technique, blocks)
            estimates[f"seat.tvd.{name}"] = against_vanilla(paired, "seat-table1", technique, [TVD], blocks)
            estimates[f"seat.f1.{name}"] = against_vanilla(paired_difference, "seat-table1", technique, [F1], blocks)
    return estimates


def _differences() -> Iterator[Number]:
    estimates = differences()
    yield from comparison_numbers(TABLE1, estimates, dict.fromkeys(estimates, 5))
    for technique in TECHNIQUES:
        for encoder, label in ENCODERS.items():
            ratio = paper_ratio(technique, label, len(blocks_of("seat-table1", encoder)))
            yield TABLE1.number(f"seat.paper-jsd.{technique}.{encoder.removeprefix('transformer-')}", ratio)


def _word_at() -> Iterator[Number]:
    """By how much the shift of Word AT under noise is lower, by data set and encoder; its macro-F1 on hate."""
    for encoder in ENCODERS:
        for block in blocks_of("seat-table1", encoder):
            kind = "hate" if "hate" in block else "others"
            yield TABLE1.number(f"seat.reduction.{kind}.{block}", 1 - shift_ratio("word-at", [block]).value, n=5)
    for block in (block for encoder in ENCODERS for block in blocks_of("seat-table1", encoder) if "hate" in block):
        loss = against_vanilla(paired_difference, "seat-table1", "word-at", [F1], [block])
        yield estimate_number(TABLE1, f"seat.hate-f1.{block}", loss, 5)


def _table4_and_figure2() -> Iterator[Number]:
    for name, blocks in ABLATION.items():
        estimate = against_vanilla(paired, "seat-table4", "seat", [TVD], blocks)
        yield estimate_number(TABLE4, f"seat.terms.{name}", estimate, 5)
    yield estimate_number(FIGURE2, "seat.between", between_ratio("seat"), 5)
    yield FIGURE2.number("seat.between.largest", largest_difference("seat"))


def _throughput() -> Iterator[Number]:
    """Seconds of a cell with one worker, and among 14; cells per hour of 14 workers."""
    (file,) = files("seat-throughput")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        first, *events = [json.loads(line) for line in lines]
    cells, seconds = 0, 0.0
    for before, event in pairwise([{"block": "", "seconds": 0.0}, *events]):
        if event["block"].endswith("bilstm"):
            cells, seconds = cells + 1, seconds + event["seconds"] - before["seconds"]
    same = [
        cell.seconds
        for cell in records("seat-table1")[1]
        if cell.block == "sst2_bilstm" and cell.technique in ONE_WORKER_TECHNIQUES
    ]
    one, among = first["seconds"] / first["cells"], mean(same)
    yield THROUGHPUT.number("seat.throughput.one", one, n=first["cells"])
    yield THROUGHPUT.number("seat.throughput.among", among, n=len(same))
    yield THROUGHPUT.number("seat.throughput.times", 14 * one / among)
    yield THROUGHPUT.number("seat.throughput.cells-per-hour", 3600 * cells / seconds, n=cells)


def _sweep() -> Iterator[Number]:
    """The finished part of the sweep: shift of `paper` under noise, entropy of `released` with λ2 = 1000."""
    origin = Origin("f8f96777", "python -m studies run seat_sweep --out DIR --glove FILE --synonyms DIR")
    models = models_of([SWEEP])
    shifts: dict[str, list[float]] = {}
    for model in models:
        if model["data"] == "emotion-2":
            shifts.setdefault(f"{model['row']} {model['settings']}", []).append(model[JSD])
    plain = mean(shifts["vanilla {}"])
    ratios = [mean(runs) / plain for name, runs in shifts.items() if name.startswith("seat-paper ")]
    released = [model for model in models if model["row"] == "seat-released" and model["settings"]["overlap"] == 1000]
    entropies = [model["normalized-entropy"] for model in released]
    yield origin.number("seat.sweep.settings", len(ratios))
    for name, numbers in (("ratio", ratios), ("entropy", entropies)):
        yield origin.number(f"seat.sweep.{name}.lowest", min(numbers), n=len(numbers))
        yield origin.number(f"seat.sweep.{name}.highest", max(numbers), n=len(numbers))


def _outside() -> Iterator[Number]:
    """What an outside reviewer measured; we did not repeat it."""
    review: dict[str, Any] = json.loads((RECORDS / "outside_review.json").read_text(encoding="utf-8"))
    origin = Origin("26563070", review["source"])
    run, code = review["SEAT, variant released"], review["SEAT, independent code of Eq. 6"]
    names = {
        "jsd": "JSD under noise",
        "paper-jsd": "JSD of the paper",
        "f1": "macro-F1",
        "vanilla-f1": "macro-F1 of vanilla",
    }
    for i, corpus in enumerate(("sst2", "rotten_tomatoes")):
        for name, key in names.items():
            yield origin.number(f"seat.outside.{name}.{corpus}", run[key][i])
    yield origin.number("seat.outside.entropy", run["normalized entropy"])
    yield origin.number("seat.outside.comprehensiveness", run["comprehensiveness, ratio to vanilla"])
    yield origin.number("seat.outside.settings", code["settings"])
    for name, ratio in zip(("lowest", "highest"), code["JSD ratio"], strict=True):
        yield origin.number(f"seat.outside.ratio.{name}", ratio)


def _study() -> Iterator[Number]:
    """The variant `joint` in the stability study, against the vanilla models that it starts from."""
    rows = rows_of(study_records())
    for name in ("noise", "3-synonyms"):
        estimate = compare_with_start(paired, rows, "seat-joint-kl", f"jensen-shannon/{name}", MAIN_SETTINGS)
        assert estimate is not None
        yield estimate_number(STABILITY, f"seat.joint.{name}", estimate, 5)
