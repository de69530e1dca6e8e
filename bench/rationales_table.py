"""Tables of bench/rationales.py: means over seeds and how far seeds differ, the paper's Table 2 beside ours.

python bench/rationales_table.py RECORDS...        folders of records, or files of one record a line
"""

import sys
from collections import defaultdict
from collections.abc import Iterable
from statistics import mean, stdev
from typing import Any

from job_queue import read_records
from rationales import ASPECTS, CHOSEN, HARD, LAMBDAS, RATES, SETTINGS, TUNED, best, rnp

Records = dict[tuple[str, str, str], list[dict[str, Any]]]
"""By aspect, setting and row."""
MEASURES = ("accuracy", "p", "r", "f1", "x1")
PAPER = {  # Yu et al. 2021, Table 2: F1 and X1 % of RNP, of A2R; on BeerAdvocate, whose reviews are people's
    ("aroma", "skewed10"): (61.5, 14.5, 69.2, 10.4),
    ("aroma", "skewed15"): (49.3, 31.2, 51.7, 35.7),
    ("aroma", "skewed20"): (11.0, 80.5, 46.3, 41.5),
    ("palate", "skewed10"): (5.5, 63.9, 45.5, 27.5),
    ("palate", "skewed15"): (1.3, 83.1, 27.7, 58.0),
    ("palate", "skewed20"): (0.6, 100.0, 0.6, 97.0),
    ("aroma", "biased70"): (63.4, 12.6, 69.0, 12.2),
    ("aroma", "biased75"): (52.3, 25.3, 60.5, 20.9),
    ("aroma", "biased80"): (3.4, 99.9, 53.2, 29.8),
    ("palate", "biased70"): (47.3, 24.3, 50.1, 18.8),
    ("palate", "biased75"): (0.6, 100.0, 47.9, 22.0),
    ("palate", "biased80"): (0.6, 100.0, 43.5, 29.6),
    ("appearance", "standard"): (72.8, None, 72.9, None),  # of Table 3, as the next two
    ("aroma", "standard"): (65.9, None, 70.0, None),
    ("palate", "standard"): (51.0, None, 58.0, None),
}


def load(places: Iterable[str]) -> dict[str, Records]:
    """By regime."""
    found: dict[str, Records] = defaultdict(lambda: defaultdict(list))
    for record in read_records(places):
        found[record["regime"]][record["aspect"], record["setting"], record["row"]].append(record)
    return found


def tuned(found: Records, aspect: str, setting: str) -> str | None:
    """The rate that was chosen on validation texts, by the first seeds."""
    tried = {row: found[aspect, setting, row] for row in map(rnp, RATES) if (aspect, setting, row) in found}
    accuracy = {
        row: [one["chosen"]["validation"]["accuracy"] for one in those if one["seed"] < TUNED]
        for row, those in tried.items()
    }
    accuracy = {row: values for row, values in accuracy.items() if values}
    return best(accuracy) if accuracy else None


def values(those: list[dict[str, Any]], measure: str, when: str = "chosen", split: str = "test") -> list[float]:
    return [100 * one[when][split][measure] for one in those]


def shown(numbers: list[float]) -> str:
    around = f" ± {stdev(numbers):.1f}" if len(numbers) > 1 else ""
    return f"{mean(numbers):.1f}{around}"


def line(cells: Iterable[str]) -> None:
    print("| " + " | ".join(cells) + " |")


def head(*names: str) -> None:
    line(names)
    line("---" for _ in names)


def main_table(found: Records) -> None:
    print("\nTest texts, %; the epoch chosen on validation texts, and the last; in the paper, on people's reviews\n")
    last = ("F1, last epoch", "X1, last epoch")
    head("aspect", "setting", "row", "n", "accuracy", "P", "R", "F1", "X1", *last, "paper F1", "paper X1")
    for aspect in ASPECTS:
        for setting in SETTINGS:
            paper = PAPER.get((aspect, setting), (None,) * 4)
            for row, beside in ((tuned(found, aspect, setting), paper[:2]), ("a2r", paper[2:])):
                those = found.get((aspect, setting, row or ""), [])
                if those:
                    ours = [shown(values(those, measure)) for measure in MEASURES]
                    ours += [shown(values(those, measure, "last")) for measure in ("f1", "x1")]
                    line(
                        [
                            aspect,
                            setting,
                            row or "",
                            str(len(those)),
                            *ours,
                            *("" if x is None else str(x) for x in beside),
                        ]
                    )


def rates_table(found: Records) -> None:
    print("\nRNP by its generator's step size: accuracy on validation texts, and F1 and X1 on test texts, %\n")
    head("aspect", "setting", *(f"{rate:g}" for rate in RATES))
    for aspect in ASPECTS:
        for setting in SETTINGS:
            cells = [found.get((aspect, setting, rnp(rate)), []) for rate in RATES]
            if any(cells):
                line([aspect, setting, *(_three(those) for those in cells)])


def _three(those: list[dict[str, Any]]) -> str:
    if not those:
        return ""
    told = values(those, "accuracy", split="validation"), values(those, "f1"), values(those, "x1")
    return " / ".join(f"{mean(numbers):.1f}" for numbers in told) + f"  (n {len(those)})"


def beside_table(found: Records) -> None:
    told = "accuracy / F1 / X1 / F1 at the last epoch"
    print(f"\nPalate: λ of A2R, and vectors that are drawn at random and move; {told}, %\n")
    head("row", *HARD)
    curve = sorted([*LAMBDAS, 1.0])
    rows = {f"λ = {one:g}": "a2r" if one == 1 else f"a2r-lambda-{one:g}" for one in curve}
    rows |= {"A2R, random vectors": "a2r-random", "RNP, random vectors": f"{rnp(RATES[0])}-random"}
    for name, row in rows.items():
        line([name, *(_four(found.get(("palate", setting, row), [])) for setting in HARD)])


def _four(those: list[dict[str, Any]]) -> str:
    if not those:
        return ""
    told = [mean(values(those, measure)) for measure in ("accuracy", "f1", "x1")] + [mean(values(those, "f1", "last"))]
    return " / ".join(f"{number:.1f}" for number in told) + f"  (n {len(those)})"


def bars(found: Records) -> None:
    """What must be seen, and whether it is."""
    print("\nWhat must be seen\n")
    for aspect in ASPECTS:
        for setting in SETTINGS:
            theirs = found.get((aspect, setting, tuned(found, aspect, setting) or ""), [])
            ours = found.get((aspect, setting, "a2r"), [])
            if theirs and ours:
                print(f"{aspect} {setting}: {_bar(aspect, setting, theirs, ours)}")


def _bar(aspect: str, setting: str, theirs: list[dict[str, Any]], ours: list[dict[str, Any]]) -> str:
    f1, other, locked = mean(values(ours, "f1")), mean(values(theirs, "f1")), mean(values(theirs, "x1"))
    said = f"A2R {f1:.1f}, RNP {other:.1f}, its X1 {locked:.1f}"
    if setting == "standard":
        return f"{'yes' if min(f1, other) >= 95 else 'NO'}, both above 95: {said}"
    if aspect == "palate" and setting in HARD:
        kept = locked >= 80 and f1 >= 85 and f1 >= other + 50
        return f"{'yes' if kept else 'NO'}, RNP locks and A2R escapes: {said}"
    return f"{'yes' if f1 >= other - 10 else 'NO'}, A2R no more than 10 below: {said}"


def regimes_table(found: dict[str, Records]) -> None:
    print("\nPalate, other ways to draw the reviews; accuracy / F1 / X1 / F1 at the last epoch, %\n")
    head("regime", "row", *HARD)
    for regime, records in found.items():
        for row in sorted({row for _, _, row in records}):
            cells = [_four(records.get(("palate", setting, row), [])) for setting in HARD]
            line([regime, row, *cells])


def main() -> None:
    found = load(sys.argv[1:])
    for table in (main_table, rates_table, beside_table, bars):
        table(found[CHOSEN])
    regimes_table(found)


if __name__ == "__main__":
    main()
