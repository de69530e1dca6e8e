"""Verdicts of the audit for models whose faithfulness is known: how often each is right, over 20 seeds.

Models, texts and expected verdicts are those of tests/properties/test_oracles.py.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

TESTS = Path(__file__).parents[2] / "tests"

MODELS = {
    "honest": "linear bag of words that attends to the words that decide",
    "strict": "model that can only use the words it attends to",
    "aside": "attention unrelated to the decision",
    "even": "uniform attention",
    "first": "attention on the first word",
    "coded": "attention that encodes the label by position",
}
VERDICTS = ("Stability", "Faithfulness", "No shortcut leakage", "Plausibility")


def oracle_tests() -> Any:
    """The module of the tests, which is outside of this package."""
    sys.path.insert(0, str(TESTS))
    return importlib.import_module("properties.test_oracles")


def measure(seeds: int) -> list[dict[str, Any]]:
    oracles = oracle_tests()

    records = []
    for name in MODELS:
        for seed in range(seeds):
            result = oracles.report(name, seed)
            record: dict[str, Any] = {"model": name, "seed": seed}
            record["verdicts"] = {verdict.title: verdict.answer for verdict in result.verdicts}
            if name in oracles.GUILTY:
                row = result.find(oracles.GUILTY[name])
                record |= {"measure": oracles.GUILTY[name], "value": round(float(row.value), 4)}
            records.append(record)
        print(name, file=sys.stderr)
    return records


def run(*, out: Annotated[Path, typer.Option(help="file of the records")], seeds: int = 20) -> None:
    records = measure(seeds)
    out.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
