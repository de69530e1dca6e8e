"""Numbers of docs/results/rationales.md about movie reviews, and what was expected before the runs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean

from studies.movies.plan import BASELINES, MINILM, RATES, ROWS, SHARE, SPANS, TUNED_ROWS, TUNING_SEEDS, selected_rates
from studies.numbers import Number, Origin
from studies.stability.statistics import difference
from studies.study import Data
from studies.tables import RECORDS, Records, deviation_cells, markdown, read_records, spread, values, with_deviation

PAPER = {  # P, R, F1, %
    "rnp": (35.6, 21.1, 24.1),
    "three-player": (38.2, 26.0, 28.0),
    "hardkuma": (31.1, 28.3, 27.0),
    "hardkuma-tuned": (31.1, 28.3, 27.0),
    "hardkuma-multipliers": (31.1, 28.3, 27.0),
    "a2r": (48.7, 31.9, 34.9),
}
PAPER_NOTE = """\
Paper: Table 4 of Yu et al. 2021, which has a penalty for more than 20 % of the words or 10 spans, but no limit.  F1
24.1 of RNP is the authors' own run.  The paper quotes two more F1, and has no MiniLM:
    13.9    "RNP impl by [26]"; [26] is Lehman et al. 2019, a pipeline that is trained with human rationales
    32.2    "BERT-RNP [16]", from the ERASER paper (DeYoung et al. 2020)"""
ORDER = (*BASELINES, "attention", *(row for row in ROWS if row != "attention"), *MINILM, "supervised")
SCORES = {
    "P": ("p", "chosen", "test"),
    "R": ("r", "chosen", "test"),
    "F1": ("f1", "chosen", "test"),
    "F1, validation": ("f1", "chosen", "validation"),
    "accuracy": ("accuracy", "chosen", "test"),
    "F1, last epoch": ("f1", "last", "test"),
    "F1, validation, last epoch": ("f1", "last", "validation"),
}
"""Column -> measure, epoch and split."""
PAPER_COLUMNS = ("paper P", "paper R", "paper F1")
HEADING = ("row", "rate", "n", *with_deviation(SCORES), "share", "spans", "within", *PAPER_COLUMNS)
MEASURES = (("f1", "f1", "test"), ("f1-validation", "f1", "validation"), ("accuracy", "accuracy", "test"))
"""Name of the number, measure and split."""
ORIGIN = Origin("57d35b9a", "python -m studies run movies --cut REVIEWS --out DIR --device cuda --workers 12")
CHECKED_ROWS = ("a2r", "a2r-released", "a2r-minilm", "a2r-released-minilm")


def load(paths: Iterable[str | Path]) -> tuple[dict[str, Records], dict[str, Records]]:
    """Row -> its runs at the selected rate, and row -> its runs of all rates with TUNING_SEEDS."""
    results: dict[str, Records] = defaultdict(list)
    tuning: dict[str, Records] = defaultdict(list)
    records = read_records(paths)
    rates = selected_rates(records)
    for record in records:
        row = record["row"]
        if row in TUNED_ROWS and record["seed"] < TUNING_SEEDS:
            tuning[row].append(record)
        if record["rate"] == rates.get(row):  # both are None for a row without tuning
            results[row].append(record)
    return results, tuning


def is_within_limits(runs: Records) -> bool:
    """Whether the selection of every review is within SHARE and SPANS."""
    scores = [run["chosen"][split] for run in runs for split in ("validation", "test")]
    return all(score["most share"] <= SHARE + 1e-9 and score["most spans"] <= SPANS for score in scores)


def rows(results: dict[str, Records]) -> list[list[str]]:
    """Means and standard deviations over seeds, in %."""
    table = [list(HEADING)]
    for row in ORDER:
        if runs := results.get(row, []):
            scores = [cell for of in SCORES.values() for cell in deviation_cells(values(runs, *of))]
            extent = f"{mean(values(runs, 'share')):.1f}", f"{mean(values(runs, 'spans')) / 100:.1f}"
            rate = "" if runs[0]["rate"] is None else f"{runs[0]['rate']:g}"
            paper = map(str, PAPER.get(row, ("", "", "")))
            table.append([row, rate, str(len(runs)), *scores, *extent, _answer(is_within_limits(runs)), *paper])
    return table


def numbers() -> list[Number]:
    """F1, accuracy and F1 on validation reviews of every row, as shares; p values of A2R and HardKuma."""
    results, _ = load([RECORDS / "movies.jsonl"])
    entries: list[Number] = []
    for row, runs in results.items():
        for name, measure, split in MEASURES:
            if scores := values(runs, measure, split=split):
                entries.append(ORIGIN.mean(f"{name}.{row}", [score / 100 for score in scores]))
    for _, measure, split in MEASURES[:2]:
        ours, theirs = ({"": values(results[row], measure, split=split)} for row in ("a2r", "hardkuma-multipliers"))
        entries.append(ORIGIN.number(f"p.a2r.hardkuma-multipliers.{split}", difference(ours, theirs).p))
    return entries


def data() -> Data:
    return {"movie-rationales.csv": rows(load([RECORDS / "movies.jsonl"])[0])}


def main_table(results: dict[str, Records]) -> Iterator[str]:
    yield (f"Test texts, means over texts in %; at most {SHARE:.0%} of the words in at most {SPANS} spans\n")
    yield f"{markdown(rows(results))}\n\n{PAPER_NOTE}"


def rates_table(tuning: dict[str, Records]) -> Iterator[str]:
    yield (
        f"\nLearning rate of the generator, first {TUNING_SEEDS} seeds: accuracy / F1 on validation texts, "
        "F1 on test texts\n"
    )
    table = [["row", *(f"{rate:g}" for rate in RATES)]]
    for row in TUNED_ROWS:
        if row in tuning:
            table.append([row, *(_rate_cell([run for run in tuning[row] if run["rate"] == rate]) for rate in RATES)])
    yield markdown(table)


def _rate_cell(runs: Records) -> str:
    if not runs:
        return ""
    columns = values(runs, "accuracy", split="validation"), values(runs, "f1", split="validation"), values(runs, "f1")
    return " / ".join(f"{mean(numbers):.1f}" for numbers in columns) + f"  (n {len(runs)})"


def expectations(results: dict[str, Records]) -> Iterator[str]:
    yield "\nExpected results\n"
    for row in CHECKED_ROWS:
        if runs := results.get(row, []):
            for sentence in _expectations(runs, results):
                yield f"{row}: {sentence}"
    if runs := results.get("supervised", []):
        validation = spread(runs, "f1", split="validation")
        yield f"upper bound: trained with human rationales, {spread(runs, 'f1')} on test, {validation} on validation"


def _expectations(runs: Records, results: dict[str, Records]) -> Iterable[str]:
    f1, is_minilm = mean(values(runs, "f1")), runs[0]["row"] in MINILM
    yield f"{_answer(is_within_limits(runs))}, at most {SHARE:.0%} in {SPANS} spans in every review"
    yield f"{_answer(f1 >= 35)}, 35 on test: {f1:.1f}"
    if attention := results.get("attention-minilm" if is_minilm else "attention", []):
        bar = mean(values(attention, "f1"))
        yield f"{_answer(f1 >= bar)}, at least as high as vanilla attention on test: {f1:.1f}, {bar:.1f}"
    validation = mean(values(runs, "f1", split="validation"))
    for other in ("rnp", "rnp-straight-through"):
        if not is_minilm and (others := results.get(other, [])):
            bar = mean(values(others, "f1", split="validation"))
            numbers = f"{validation:.1f}, {bar:.1f}{_epochs(runs, others)}"
            yield f"{_answer(validation > bar)}, above {other} on validation: {numbers}"
    if last := results.get("last", []):
        bar, test = (mean(values(last, "f1", split=split)) for split in ("validation", "test"))
        yield f"{_answer(validation > bar)}, above the last {SHARE:.0%} on validation: {validation:.1f}, {bar:.1f}"
        yield f"difference from the last {SHARE:.0%} on test: {f1 - test:+.1f} ({f1:.1f}, {test:.1f})"


def _epochs(runs: Records, others: Records) -> str:
    counts = {len(run["history"]) for run in runs + others}
    return f" ({counts.pop()} epochs each)" if len(counts) == 1 else f" (NOT after equal epochs: {sorted(counts)})"


def _answer(condition: bool) -> str:
    return "yes" if condition else "NO"


def table(records: list[Path] = [RECORDS / "movies.jsonl"]) -> str:  # noqa: B006
    """Folders or files; default: the records of the repository."""
    results, tuning = load(records)
    return "\n".join([*main_table(results), *rates_table(tuning), *expectations(results)])
