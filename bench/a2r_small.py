"""A2R on 2,000 generated reviews with two learning rates of the generator: docs/how-to/extract-rationales.md.

    python bench/a2r_small.py --records bench/records/a2r_small.jsonl [--seeds 3]

The command of that page, once for each rate and seed; about 3 CPU minutes per run.  Prints the table of the page.  A
run whose record is in the file is not repeated.
"""

import argparse
import json
from pathlib import Path
from statistics import mean

import steadygaze as sg
from steadygaze.core.rounding import percent
from steadygaze.core.types import inputs_of

CORPUS = "planted-reviews:aspect=palate,sizes=[2000,200,200]"
RATES = (1e-3, 1e-4)


def measure(rate: float, seed: int) -> dict[str, float]:
    """Train one model, and measure it on the test reviews."""
    splits = sg.load_corpus(CORPUS).splits
    train, validation, test = (splits[name] for name in ("train", "validation", "test"))
    settings = {"hidden": 32, "generator_learning_rate": rate}
    clf = sg.TextClassifier("bigru", technique="a2r", settings=settings, seed=seed, device="cpu")
    clf.fit(
        inputs_of(train),
        [example.label for example in train],
        validation=(inputs_of(validation), [example.label for example in validation]),
    )
    explanations = clf.explain(inputs_of(test))
    hits = [
        any(begin < stop and start < end for begin, end, _ in e.rationale or () for start, stop in example.rationales)
        for e, example in zip(explanations, test, strict=True)
    ]
    right = [e.label == example.label for e, example in zip(explanations, test, strict=True)]
    return {"rate": rate, "seed": seed, "n": len(test), "right_sentence": mean(hits), "accuracy": mean(right)}


def table(records: list[dict[str, float]]) -> str:
    """Mean over the seeds, and the values of single seeds."""
    lines = ["| `generator_learning_rate` | right sentence | accuracy |", "|---|---|---|"]
    for rate, name in zip(RATES, ("1e-3", "1e-4 (default)"), strict=True):
        cells = []
        for field in ("right_sentence", "accuracy"):
            values = [record[field] for record in records if record["rate"] == rate]
            singles = ", ".join(percent(value, 1).removesuffix(" %") for value in values)
            cells.append(f"{percent(mean(values), 1)} ({singles})")
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def read(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=Path, required=True, help="JSONL file")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for seed in range(options.seeds):
        for rate in RATES:
            if not any((record["rate"], record["seed"]) == (rate, seed) for record in read(options.records)):
                record = measure(rate, seed)
                with options.records.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
    print(table(read(options.records)))


if __name__ == "__main__":
    main()
