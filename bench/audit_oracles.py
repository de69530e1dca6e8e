"""Verdicts of the audit for models whose faithfulness is known: how often each is right, over 20 seeds.

    python bench/audit_oracles.py --out bench/records/audit_oracles.jsonl
    python bench/audit_oracles.py --show bench/records/audit_oracles.jsonl

Models, texts and expected verdicts are those of tests/audit/test_oracles.py.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tables import markdown, read_records

sys.path[0] = str(Path(__file__).parents[1] / "tests")  # instead of bench/, whose audit.py would hide tests/audit

MODELS = {
    "honest": "linear bag of words that attends to the words that decide",
    "strict": "model that can only use the words it attends to",
    "aside": "attention unrelated to the decision",
    "even": "uniform attention",
    "first": "attention on the first word",
    "coded": "attention that encodes the label by position",
}
VERDICTS = ("Stability", "Faithfulness", "No shortcut leakage", "Plausibility")


def measure(seeds: int) -> list[dict[str, Any]]:
    from properties.test_oracles import GUILTY, report

    records = []
    for name in MODELS:
        for seed in range(seeds):
            result = report(name, seed)
            record: dict[str, Any] = {"model": name, "seed": seed}
            record["verdicts"] = {verdict.title: verdict.answer for verdict in result.verdicts}
            if name in GUILTY:
                row = result.find(GUILTY[name])
                record |= {"measure": GUILTY[name], "value": round(float(row.value), 4)}
            records.append(record)
        print(name, file=sys.stderr)
    return records


def table(records: list[dict[str, Any]]) -> list[list[str]]:
    """Seeds with the expected answer, by model and verdict; a dash where no answer is expected."""
    from properties.test_oracles import EXPECTED, GUILTY

    lines = [["model", *VERDICTS, "all", "measure made for the flaw"]]
    for name, label in MODELS.items():
        runs = [record for record in records if record["model"] == name]
        cells = []
        for title in VERDICTS:
            wanted = EXPECTED[name].get(title)
            right = sum(run["verdicts"][title] == wanted for run in runs)
            cells.append(f"{wanted}: {right} of {len(runs)}" if wanted else "–")
        every = sum(all(run["verdicts"][t] == answer for t, answer in EXPECTED[name].items()) for run in runs)
        lines.append([label, *cells, f"{every} of {len(runs)}", f"`{GUILTY[name]}`" if name in GUILTY else "–"])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file of the records")
    parser.add_argument("--show", type=Path, help="print the table of these records")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    if options.show:
        records = read_records([options.show])
    else:
        records = measure(options.seeds)
        options.out.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    print(markdown(table(records)))


if __name__ == "__main__":
    main()
