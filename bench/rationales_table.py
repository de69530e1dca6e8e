"""Tables of bench/rationales.py: means over seeds and how far seeds differ, the paper's Table 2 beside ours.

python bench/rationales_table.py RECORDS...        folders of records, or files of one record a line
"""

import sys
from collections import defaultdict
from statistics import mean
from typing import Any

from job_cells import read_records
from rationales import ASPECTS, CHOSEN, FEWER, HARD, LAMBDAS, RATES, REGIMES, ROOM, SETTINGS, SLOWER, TUNED, rnp, tuned
from tables import Records, head, line, shown, values

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
CURVE = {
    f"λ = {strength:g}": "a2r" if strength == 1 else f"a2r-lambda-{strength:g}" for strength in sorted([*LAMBDAS, 1.0])
}
TOLD = "accuracy / F1 / X1, F1 / X1 at the last epoch"


class Found:
    """Records by aspect, setting and row."""

    def __init__(self, records: list[dict[str, Any]], regime: str) -> None:
        seeds = min(TUNED, 1 + max((record["seed"] for record in records), default=0))
        self._tuned = {
            (aspect, setting): row for (at, aspect, setting), row in tuned(records, seeds).items() if at == regime
        }
        self._cells: dict[tuple[str, str, str], Records] = defaultdict(list)
        for record in records:
            if record["regime"] == regime:
                self._cells[record["aspect"], record["setting"], record["row"]].append(record)

    def of(self, aspect: str, setting: str, row: str) -> Records:
        return self._cells.get((aspect, setting, row), [])

    def rnp(self, aspect: str, setting: str) -> Records:
        """At the rate that was chosen on validation texts."""
        return self.of(aspect, setting, self._tuned.get((aspect, setting), ""))

    def __bool__(self) -> bool:
        return bool(self._cells)


def main_table(results: Found) -> None:
    print("\nTest texts, %; the epoch chosen on validation texts, and the last; in the paper, on people's reviews\n")
    last = ("F1, last epoch", "X1, last epoch")
    head("aspect", "setting", "row", "n", "accuracy", "P", "R", "F1", "X1", *last, "paper F1", "paper X1")
    for aspect in ASPECTS:
        for setting in SETTINGS:
            paper = PAPER.get((aspect, setting), (None,) * 4)
            rows = (results.rnp(aspect, setting), paper[:2]), (results.of(aspect, setting, "a2r"), paper[2:])
            for those, beside in rows:
                if those:
                    ours = [shown(those, measure) for measure in MEASURES]
                    ours += [shown(those, measure, "last") for measure in ("f1", "x1")]
                    theirs = ("" if number is None else str(number) for number in beside)
                    line([aspect, setting, those[0]["row"], str(len(those)), *ours, *theirs])


def rates_table(results: Found) -> None:
    print("\nRNP by its generator's step size: accuracy on validation texts, and F1 and X1 on test texts, %\n")
    head("aspect", "setting", *(f"{rate:g}" for rate in RATES))
    for aspect in ASPECTS:
        for setting in SETTINGS:
            cells = [results.of(aspect, setting, rnp(rate)) for rate in RATES]
            if any(cells):
                line([aspect, setting, *(_three(those) for those in cells)])


def _three(those: Records) -> str:
    if not those:
        return ""
    told = values(those, "accuracy", split="validation"), values(those, "f1"), values(those, "x1")
    return " / ".join(f"{mean(numbers):.1f}" for numbers in told) + f"  (n {len(those)})"


def beside_table(results: Found) -> None:
    print(f"\nPalate: λ of A2R, and its generator's step size; the first {FEWER} seeds; {TOLD}, %\n")
    head("row", *HARD)
    rows = CURVE | {f"step size {rate:g}": f"a2r-{rate:g}" for rate in RATES[1:]}
    rows |= {f"RNP, step size {rate:g}": rnp(rate) for rate in SLOWER}
    for name, row in rows.items():
        line([name, *(_four(_first(results.of("palate", setting, row))) for setting in HARD)])


def room_table(results: Found) -> None:
    print(f"\nPalate, {ROOM}: λ of A2R; the first {FEWER} seeds; {TOLD}, %\n")
    head("row", "biased80")
    for name, row in CURVE.items():
        line([name, _four(_first(results.of("palate", "biased80", row)))])


def _first(those: Records) -> Records:
    return [record for record in those if record["seed"] < FEWER]


def _four(those: Records) -> str:
    if not those:
        return ""
    told = [mean(values(those, measure, when)) for when in ("chosen", "last") for measure in ("accuracy", "f1", "x1")]
    return " / ".join(f"{number:.1f}" for number in (*told[:3], *told[4:])) + f"  (n {len(those)})"


def bars(results: Found) -> None:
    """What must be seen, and whether it is."""
    print("\nWhat must be seen\n")
    for aspect in ASPECTS:
        for setting in SETTINGS:
            theirs, ours = results.rnp(aspect, setting), results.of(aspect, setting, "a2r")
            if theirs and ours:
                print(f"{aspect} {setting}: {_bar(aspect, setting, theirs, ours)}")


def _bar(aspect: str, setting: str, theirs: Records, ours: Records) -> str:
    f1, other, locked = mean(values(ours, "f1")), mean(values(theirs, "f1")), mean(values(theirs, "x1"))
    comparison = f"A2R {f1:.1f}, RNP {other:.1f}, its X1 {locked:.1f}"
    if setting == "standard":
        return f"{'yes' if min(f1, other) >= 95 else 'NO'}, both above 95: {comparison}"
    if aspect == "palate" and setting in HARD:
        kept = locked >= 80 and f1 >= 85 and f1 >= other + 50
        return f"{'yes' if kept else 'NO'}, RNP locks and A2R escapes: {comparison}"
    return f"{'yes' if f1 >= other - 10 else 'NO'}, A2R no more than 10 below: {comparison}"


def regimes_table(records: list[dict[str, Any]]) -> None:
    print(f"\nPalate, other ways to draw the reviews and to train; {TOLD}, %\n")
    head("regime", "row", *HARD)
    for regime in REGIMES:
        if those := Found(records, regime):
            line([regime, "RNP, tuned", *(_four(those.rnp("palate", setting)) for setting in HARD)])
            line([regime, "A2R", *(_four(those.of("palate", setting, "a2r")) for setting in HARD)])


def main() -> None:
    records = read_records(sys.argv[1:])
    for table in (main_table, rates_table, beside_table, bars):
        table(Found(records, CHOSEN))
    room_table(Found(records, ROOM))
    regimes_table(records)


if __name__ == "__main__":
    main()
