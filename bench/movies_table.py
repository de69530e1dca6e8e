"""Tables of bench/movies.py: means over seeds and how far seeds differ, the paper's Table 4 beside ours.

python bench/movies_table.py RECORDS...        folders of records, or files of one record a line
"""

import sys
from collections import defaultdict
from statistics import mean, stdev
from typing import Any

from job_queue import read_records
from movies import MINILM, ROWS, SHARE, SPANS, YARDSTICKS

PAPER = {  # P, R, F1, %
    "rnp": (35.6, 21.1, 24.1),
    "three-player": (38.2, 26.0, 28.0),
    "hardkuma": (31.1, 28.3, 27.0),
    "a2r": (48.7, 31.9, 34.9),
}
ELSEWHERE = "RNP as published 13.9, BERT-RNP 32.2 (F1, %; in the paper)"
ORDER = (*YARDSTICKS, "attention", *(row for row in ROWS if row != "attention"), *MINILM, "supervised")
HEAD = ("row", "n", "P", "R", "F1", "F1, validation", "accuracy", "F1, last epoch", "share", "spans", "within", "paper")


def shown(records: list[dict[str, Any]], measure: str, when: str = "chosen", split: str = "test") -> str:
    numbers = [100 * one[when][split][measure] for one in records if measure in one.get(when, {}).get(split, {})]
    if not numbers:
        return ""
    return f"{mean(numbers):.1f}" + (f" ± {stdev(numbers):.1f}" if len(numbers) > 1 else "")


def within(records: list[dict[str, Any]]) -> bool:
    """Whether no review has more selected than may count."""
    tests = [one["chosen"]["test"] for one in records]
    return all(test["most share"] <= SHARE + 1e-9 and test["most spans"] <= SPANS for test in tests)


def line(row: str, those: list[dict[str, Any]]) -> str:
    f1s = shown(those, "f1"), shown(those, "f1", split="validation")
    extent = f"{mean(100 * one['chosen']['test']['share'] for one in those):.1f}"
    spans = f"{mean(one['chosen']['test']['spans'] for one in those):.1f}"
    more = [shown(those, "accuracy"), shown(those, "f1", "last"), extent, spans, "yes" if within(those) else "NO"]
    paper = " / ".join(map(str, PAPER.get(row, ())))
    cells = [row, str(len(those)), shown(those, "p"), shown(those, "r"), *f1s, *more, paper]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in read_records(sys.argv[1:]):
        found[record["row"]].append(record)
    print(f"Test texts, %, each text's own, averaged; at most {SHARE:.0%} of the tokens in at most {SPANS} pieces\n")
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    for row in ORDER:
        if found[row]:
            print(line(row, found[row]))
    print(f"\n{ELSEWHERE}")


if __name__ == "__main__":
    main()
