"""Numbers of other studies that decide claims, from their records."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from statistics import stdev
from typing import Any

from studies.black_boxes import table as black_boxes
from studies.default_tokens import table as default_tokens
from studies.movies import table as movies
from studies.numbers import Number, Origin
from studies.papers.data import STABILITY
from studies.rationales import runs as planted
from studies.rationales.plan import ASPECTS, CORE_SETTINGS, FEW_SEEDS, LAMBDAS, SETTINGS
from studies.stability.comparison import Rows, compare_with_start, compare_with_vanilla, rows_of
from studies.stability.plan import MAIN_SETTINGS
from studies.stability.records import study_records
from studies.stability.statistics import Estimate, Values, difference, paired, paired_difference, ratio
from studies.tables import RECORDS, Records, read_records, values

TOKENS = Origin("195779ce, 4dc7bfe7, 76dcec38", "python -m studies run default_tokens --cut FILE.npz --out TOKENS")
BLACK_BOXES = Origin("195779ce, 4dc7bfe7, 76dcec38, 9aa1e9da, a01a88bc", "python -m studies run black_boxes --out DIR")
READER = Origin("8bc7eea9", "python -m studies run independent_reader --out DIR")
PLANTED = Origin(
    "0c1099d, 36d1aa4c, 4dc7bfe7, 76dcec38, af4afca, db9835f", "python -m studies run rationales --out BEER"
)
MOVIES = Origin("57d35b9a", "python -m studies run movies --out MOVIES")
FRESH = Origin("8587f04d", "python -m studies run fresh --out DIR")
Statistic = Callable[[Values, Values], Estimate]
AGAINST_ALL: dict[str, Statistic] = {"ratio": ratio, "difference": difference}
"""Compared with all vanilla models of a setting."""
AGAINST_START: dict[str, Statistic] = {"paired": paired, "paired_difference": paired_difference}
"""Compared with the vanilla models that a model starts from."""


def numbers(named: Iterable[str]) -> Iterator[Number]:
    """The numbers that these names or patterns match; an error if one has none."""
    names = set(named)
    matched = set[str]()
    for number in (*_stability(names), *_tokens(), *_black_boxes(names), *_words(), *_planted(), *_movies()):
        if matching := {name for name in names if fnmatchcase(number.name, name)}:
            matched |= matching
            yield number
    if missing := names - matched:
        raise SystemExit(f"there are no records of {', '.join(sorted(missing))}")


def _stability(names: set[str]) -> Iterator[Number]:
    """STATISTIC.ROW.MEASURE over three data sets, and vanilla.MEASURE of SST-2."""
    rows = rows_of(study_records())
    for name in sorted(names):
        statistic, _, rest = name.partition(".")
        if statistic in AGAINST_ALL or statistic in AGAINST_START:
            row, _, measure = rest.partition(".")
            estimate = _estimate(rows, statistic, row, measure)
            seeds = min(len(rows[row][setting]) for setting in MAIN_SETTINGS if setting in rows[row])
            yield STABILITY.number(name, estimate.value, (estimate.low, estimate.high), seeds)
        elif statistic == "vanilla":
            models = rows["vanilla"]["sst2-bilstm"].values()
            yield STABILITY.mean(name, [record[rest] for record in models])


def _estimate(rows: Rows, statistic: str, row: str, measure: str) -> Estimate:
    if statistic in AGAINST_START:
        estimate = compare_with_start(AGAINST_START[statistic], rows, row, measure, MAIN_SETTINGS)
    else:
        estimate = compare_with_vanilla(AGAINST_ALL[statistic], rows, row, measure, MAIN_SETTINGS)
    if estimate is None:
        raise SystemExit(f"the records have no {measure} of {row}")
    return estimate


def _tokens() -> Iterator[Number]:
    """tokens.DECODER.TECHNIQUE.MEASURE: attention on four tokens without meaning in %, gap, test accuracy."""
    groups: dict[str, Records] = defaultdict(list)
    for record in read_records(default_tokens.FILES):
        groups[f"{record['encoder']}.{record['technique']}"].append(record)
    for name, runs in groups.items():
        yield TOKENS.mean(f"tokens.{name}.mass", [100 * run["mass"] for run in runs])
        for measure in ("gap", "test"):
            yield TOKENS.mean(f"tokens.{name}.{measure}", [run[measure] for run in runs])


def _black_boxes(names: set[str]) -> Iterator[Number]:
    """post-hoc.CORPUS.ROW[.FILL], and gain.CORPUS.ROW.BASE: Welch's interval of a difference."""
    scores: dict[str, list[float]] = {}
    for (corpus, fill), rows in black_boxes.load().items():
        ending = "" if fill in ("", "mean") else f".{fill}"
        for row, runs in rows.items():
            scores[f"{corpus}.{row}{ending}"] = black_boxes.values(runs, black_boxes.POST_HOC)
    for name, of_seeds in scores.items():
        yield BLACK_BOXES.mean(f"post-hoc.{name}", of_seeds)
    for name in sorted(names):
        if match := re.fullmatch(r"gain\.(\w+)\.([\w-]+)\.([\w-]+)", name):
            corpus, row, base = match.groups()
            gain = difference({"": scores[f"{corpus}.{row}"]}, {"": scores[f"{corpus}.{base}"]})
            yield BLACK_BOXES.number(name, gain.value, (gain.low, gain.high), len(scores[f"{corpus}.{row}"]))


def _words() -> Iterator[Number]:
    """words.CORPUS.ROW: share of the selected words that are opinions; of planted texts, that decide the label."""
    groups: dict[str, list[float]] = defaultdict(list)
    for record in read_records([RECORDS / "independent_reader.jsonl"]):
        if (share := record.get("opinion-share")) is not None:
            groups[f"{record['corpus']}.{record['row']}"].append(share)
    for name, shares in groups.items():
        yield READER.mean(f"words.{name}", shares)


def _planted() -> Iterator[Number]:
    """planted.ASPECT.SETTING.ROW.MEASURE, in %; lambda.SETTING.ROW: F1 on palate of three seeds, λ from 0.1 to 2."""
    records = planted.load()
    for aspect in ASPECTS:
        for setting in SETTINGS:
            rows = {"rnp": records.rnp(aspect, setting), "a2r": records.of(aspect, setting, "a2r")}
            rows["a2r-lambda-0"] = records.of(aspect, setting, "a2r-lambda-0", seeds=FEW_SEEDS)
            for row, runs in rows.items():
                for measure in ("f1", "x1"):
                    yield from _percentages(PLANTED, f"planted.{aspect}.{setting}.{row}.{measure}", runs, measure)
    for setting in CORE_SETTINGS:
        for row in ("a2r", *(f"a2r-lambda-{strength:g}" for strength in LAMBDAS if 0.1 <= strength <= 2)):
            runs = records.of("palate", setting, row, seeds=FEW_SEEDS)
            yield PLANTED.mean(f"lambda.{setting}.{row}", values(runs, "f1"))


def _movies() -> Iterator[Number]:
    """movies.ROW and fresh.ROW: F1 with human rationales, in %."""
    for row, runs in movies.load([RECORDS / "movies.jsonl"])[0].items():
        yield from _percentages(MOVIES, f"movies.{row}", runs, "f1")
    repeated: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in read_records([RECORDS / "fresh.jsonl"]):
        repeated[f"{record['corpus']}.{record['row']}"].append(record)
    for name, runs in repeated.items():
        yield from _percentages(FRESH, f"fresh.{name}", runs, "f1")


def _percentages(origin: Origin, name: str, runs: Sequence[dict[str, Any]], measure: str) -> Iterator[Number]:
    """The mean over seeds, and their standard deviation."""
    if numbers := values(list(runs), measure):
        yield origin.mean(name, numbers)
        if len(numbers) > 1:
            yield origin.number(f"{name}.deviation", stdev(numbers), n=len(numbers))
