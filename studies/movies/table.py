"""Tables of docs/results/rationales.md about movie reviews, and what was expected before the runs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean

from studies.movies.plan import BASELINES, MINILM, RATES, ROWS, SHARE, SPANS, TUNED_ROWS, TUNING_SEEDS, selected_rates
from studies.tables import RECORDS, Records, markdown, read_records, spread, values

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
HEADING = (
    "row", "rate", "n", "P", "R", "F1", "F1, validation", "accuracy",
    "F1, last epoch", "F1, validation, last epoch", "share", "spans", "within", "paper P / R / F1",
)  # fmt: skip
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


def main_table(results: dict[str, Records]) -> Iterator[str]:
    yield (f"Test texts, means over texts in %; at most {SHARE:.0%} of the words in at most {SPANS} spans\n")
    table: list[Sequence[str]] = [HEADING]
    for row in ORDER:
        if runs := results.get(row, []):
            last = [spread(runs, "f1", "last", split) for split in ("test", "validation")]
            scores = [*(spread(runs, name) for name in ("p", "r", "f1")), spread(runs, "f1", split="validation")]
            extent = f"{mean(values(runs, 'share')):.1f}", f"{mean(values(runs, 'spans')) / 100:.1f}"
            rate = "" if runs[0]["rate"] is None else f"{runs[0]['rate']:g}"
            paper = " / ".join(map(str, PAPER.get(row, ())))
            limits = _answer(is_within_limits(runs))
            table.append([row, rate, str(len(runs)), *scores, spread(runs, "accuracy"), *last, *extent, limits, paper])
    yield f"{markdown(table)}\n\n{PAPER_NOTE}"


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
