"""The pages docs/results/seat.md and docs/results/kitada.md, from the records of `steadygaze reproduce`.

python bench/published_page.py seat > docs/results/seat.md
python bench/published_page.py kitada > docs/results/kitada.md
"""

import gzip
import json
import sys
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import geometric_mean, mean

from stability_statistics import Estimate, Values, paired, paired_difference
from steadygaze.results.reproduction import CellScores, ReproducedValue, Reproduction

RECORDS = Path(__file__).parent / "records"
COMMIT = "f740e00"
"""Added the engine of these runs; the records have the digest of the code that trained and measured."""
TECHNIQUES = {
    "word-at": "Word AT",
    "word-iat": "Word iAT",
    "attention-rp": "Attention RP",
    "attention-at": "Attention AT",
    "attention-iat": "Attention iAT",
    "seat": "SEAT",
}
JSD, TVD, F1, ACCURACY, CORRELATION = (
    "jensen-shannon/noise",
    "prediction-change/noise",
    "macro-f1",
    "accuracy",
    "pearson/gradient",
)
ONE_BY_ONE = ("word-at", "word-iat", "attention-rp", "attention-at")
"""Techniques that one worker ran."""
LEARNED = {
    "sst2_bilstm": "SST",
    "imdb_bilstm": "IMDB",
    "newsgroups_sport_bilstm": "20News",
    "ag_news_bilstm": "AGNews",
    "snli_bilstm": "SNLI",
}
"""Blocks of Kitada's Table 2 whose models learn the task -> name in the paper."""


def template(name: str) -> str:
    """The text of a page, with the names of its numbers in braces."""
    return (Path(__file__).parent / f"published_{name}.md").read_text(encoding="utf-8")


@cache
def records(table: str) -> tuple[Reproduction, tuple[CellScores, ...]]:
    reproduction, cells = Reproduction.from_records(RECORDS / f"{table}-{COMMIT}.jsonl.gz")
    return reproduction, tuple(cells)


def values(table: str, technique: str, measure: str, blocks: Sequence[str] = ()) -> Values:
    """Block -> one number per seed."""
    found: dict[str, list[float]] = {}
    for cell in records(table)[1]:
        if cell.technique == technique and measure in cell.scores and (not blocks or cell.block in blocks):
            found.setdefault(cell.block, []).append(cell.scores[measure])
    return found


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


def _first(table: str, technique: str, measures: Sequence[str], blocks: Sequence[str]) -> Values:
    merged: dict[str, Sequence[float]] = {}
    for measure in reversed(measures):
        merged |= values(table, technique, measure, blocks)
    return merged


def shown(estimate: Estimate, form: str) -> str:
    return "{} [{}, {}]".format(*(signed(number, form) for number in estimate))


def signed(number: float, form: str = "+.3f") -> str:
    """The number; zero has no sign."""
    text = format(number, form)
    return text if float(text) else text.lstrip("+-")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def beside(reproduction: Reproduction, rows: Sequence[int], column_of: Callable[[ReproducedValue], str]) -> str:
    """Ours [95 % interval] (paper), with these labels as rows."""
    grid: dict[tuple[str, ...], dict[str, str]] = {}
    for value in reproduction.values:
        if value.value is not None:
            paper = f" ({value.paper_text})" if value.paper is not None else ""
            column = column_of(value)
            grid.setdefault(tuple(value.labels[i] for i in rows), {})[column] = value.our_text + paper
    heads = list(dict.fromkeys(name for line in grid.values() for name in line))
    names = ("data", "encoder", "technique", "variant", "measure")
    lines = [[*labels, *(line.get(name, "") for name in heads)] for labels, line in grid.items()]
    return table([*(names[i] for i in rows), *heads], lines)


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
        for encoder in ("rnn", "bilstm"):
            blocks = blocks_of("seat-table1", encoder)
            ratios = [against_vanilla(paired, "seat-table1", technique, [measure], blocks) for measure in (JSD, TVD)]
            f1 = against_vanilla(paired_difference, "seat-table1", technique, [F1], blocks)
            paper = paper_ratio(technique, encoder)
            jsd[technique, encoder] = ratios[0].value
            rows.append([label, encoder, *(shown(ratio, ".2f") for ratio in ratios), f"{paper:.2g}", shown(f1, "+.3f")])
    reproduction, cells = records("seat-table1")
    one, among, many = throughput()
    return template("seat").format(
        models=len(cells),
        seat=f"{jsd['seat', 'bilstm']:.2f}",
        paper_rnn=power(paper_ratio("seat", "rnn")),
        paper_bilstm=power(paper_ratio("seat", "bilstm")),
        word_at_rnn=less(jsd["word-at", "rnn"]),
        word_at_bilstm=less(jsd["word-at", "bilstm"]),
        differences=table(
            ["technique", "encoder", "JSD, ratio", "TVD, ratio", "JSD, ratio in the paper", "macro-F1"], rows
        ),
        beside=beside(reproduction, (0, 1, 2), _column),
        departures=bullets(reproduction.departures),
        code=reproduction.versions["code"],
        torch=reproduction.versions["torch"],
        one=f"{one:.1f}",
        one_hour=f"{3600 / one:.0f}",
        among=f"{among:.1f}",
        many=f"{many:,.0f}",
        times=f"{14 * one / among:.1f}",
        commit=COMMIT,
    )


def kitada() -> str:
    rows = []
    techniques = [name for name in TECHNIQUES if name != "seat"]
    for technique in techniques:
        for block in (*LEARNED, ""):
            blocks = [block] if block else list(LEARNED)
            score = against_vanilla(paired_difference, "kitada-table2", technique, [F1, ACCURACY], blocks)
            corr = against_vanilla(paired_difference, "kitada-table2", technique, [CORRELATION], blocks)
            data = block.removesuffix("_bilstm") or "**mean of the five**"
            rows.append([TECHNIQUES[technique], data, shown(score, "+.3f"), shown(corr, "+.3f")])
    reproduction, cells = records("kitada-table2")
    curves, more = records("kitada-figure4")
    return template("kitada").format(
        models=len(cells) + len(more),
        searched=sum(fact.count("epsilon = ") - 1 for name, fact in reproduction.facts.items() if ", " in name),
        **{f"{name.replace('-', '_')}_score": signed(over_five(name, [F1, ACCURACY]).value) for name in techniques},
        **{f"{name.replace('-', '_')}_corr": signed(over_five(name, [CORRELATION]).value) for name in techniques},
        **{f"{name.replace('-', '_')}_paper": signed(paper_difference(name)) for name in techniques},
        differences=table(["technique", "data", "score", "correlation"], rows),
        beside=beside(reproduction, (0, 2), _column),
        curves=beside(curves, (2,), _variant),
        settings=bullets([f"{name}: {value}" for name, value in reproduction.facts.items() if ", " in name]),
        departures=bullets([*reproduction.departures, *(d for d in curves.departures if "validation scores" in d)]),
        code=reproduction.versions["code"],
        torch=reproduction.versions["torch"],
        commit=COMMIT,
    )


def over_five(technique: str, measures: Sequence[str]) -> Estimate:
    """Difference from vanilla in Table 2 of Kitada & Iyatomi, mean over the data sets that the models learn."""
    return against_vanilla(paired_difference, "kitada-table2", technique, measures, list(LEARNED))


def paper_difference(technique: str, correlation: bool = False) -> float:
    """The same of the printed numbers."""
    found = {
        value.labels[::2][:2]: value.paper / (1 if correlation else 100)
        for value in records("kitada-table2")[0].values
        if (value.labels[4] == "Corr") is correlation and value.paper is not None
    }
    return mean(found[data, TECHNIQUES[technique]] - found[data, "Vanilla"] for data in LEARNED.values())


def blocks_of(name: str, encoder: str) -> list[str]:
    return [block for block in values(name, "vanilla", F1) if block.endswith(f"_{encoder}")]


def paper_values(technique: str, encoder: str) -> list[float]:
    """The printed JSD of Table 1, by data set."""
    label = "Vanilla" if technique == "vanilla" else TECHNIQUES[technique].replace(" ", "-")
    chosen = (encoder, label, "JSD")
    found = [
        value.paper
        for value in records("seat-table1")[0].values
        if (value.labels[1].lower(), value.labels[2], value.labels[4]) == chosen and value.paper is not None
    ]
    assert len(found) == 4, chosen
    return found


def paper_ratio(technique: str, encoder: str) -> float:
    """The geometric mean of the printed JSD over that of vanilla."""
    pairs = zip(paper_values(technique, encoder), paper_values("vanilla", encoder), strict=True)
    return geometric_mean([ours / plain for ours, plain in pairs])


def throughput() -> tuple[float, float, float]:
    """Seconds of a cell with one worker, and among 14; cells per hour of 14 workers."""
    with gzip.open(RECORDS / f"seat-throughput-{COMMIT}.jsonl.gz", "rt", encoding="utf-8") as file:
        first, *events = [json.loads(line) for line in file]
    cells, seconds = 0, 0.0
    for before, event in pairwise([{"block": "", "seconds": 0.0}, *events]):
        if event["block"].endswith("bilstm"):
            cells, seconds = cells + 1, seconds + event["seconds"] - before["seconds"]
    same = [c.seconds for c in records("seat-table1")[1] if c.block == "sst2_bilstm" and c.technique in ONE_BY_ONE]
    return first["seconds"] / first["cells"], mean(same), 3600 * cells / seconds


def _column(value: ReproducedValue) -> str:
    measure = value.labels[4]
    return measure if measure in ("JSD", "TVD", "F1", "Corr") and value.measure != "accuracy" else "F1"


def _variant(value: ReproducedValue) -> str:
    return value.labels[3]


PAGES = {"seat": seat, "kitada": kitada}


if __name__ == "__main__":
    print(PAGES[sys.argv[1]](), end="")
