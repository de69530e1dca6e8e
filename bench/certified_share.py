"""Certified share on SST-2: texts whose label no rewrite with the counter-fitted table changes.

    python bench/certified_share.py --data DATA --out FILE [--seeds 5] [--encoders average]
                                    [--only REGEX] [--limit N]
    python bench/certified_share.py --show bench/records/certified_share.jsonl

A record has one model: macro-F1 and certified shares on validation and test texts.  The bold row of the table has the
largest certified share on validation texts, among those whose validation macro-F1 is at most 0.01 below vanilla's
without groups.  Finished records are not computed again.
"""

import argparse
import json
import re
import time
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

AUGMENTED = "synonym-augmentation"
ROWS: dict[str, tuple[str, bool, dict[str, Any]]] = {
    "vanilla, no groups": ("vanilla", False, {}),
    "vanilla": ("vanilla", True, {}),
    "word-at": ("word-at", True, {}),
    AUGMENTED: (AUGMENTED, True, {}),
    f"{AUGMENTED}, weight 3, share 1": (AUGMENTED, True, {"weight": 3.0, "share": 1.0}),
}
"""Row -> technique, groups, settings."""
SAMPLES, K, MARGIN = 1000, 5, 0.01


def measure(arguments: argparse.Namespace, encoder: str, row: str, seed: int) -> dict[str, Any]:
    import steadygaze as sg

    technique, grouped, settings = ROWS[row]
    table = arguments.data / "synonyms" / "counter_fitted.parquet"
    splits = sg.load_corpus("sst2", data_dir=arguments.data).splits
    texts = {name: [e.text for e in splits[name]][: arguments.limit] for name in ("train", "validation", "test")}
    labels = {name: [e.label for e in splits[name]][: arguments.limit] for name in texts}
    augmentation = {"synonyms": str(table)} if technique == AUGMENTED else {}
    clf = sg.TextClassifier(
        encoder, technique, seed=seed, vectors=arguments.data / "glove" / "glove.6B.100d.txt.gz", device="cpu",
        settings=settings | augmentation, synonym_groups=table if grouped else None, verbose=False,
    )  # fmt: skip
    start = time.process_time()
    clf.fit(texts["train"], labels["train"], validation=(texts["validation"], labels["validation"]))
    record = {"encoder": encoder, "row": row, "seed": seed, "training CPU seconds": round(time.process_time() - start)}
    for name in ("validation", "test"):
        certificates = sg.certify(clf, texts[name], substitutions=str(table), samples=SAMPLES, k=K)
        right = [guess == label for guess, label in zip(clf.predict(texts[name]), labels[name], strict=True)]
        summary = certificates.summary()
        certified = [c.certified and c.method == "exact" for c in certificates]
        record[name] = {
            "texts": len(right),
            "macro-f1": macro_f1(labels[name], clf.predict(texts[name])),
            "certified": summary["share_certified"],
            "certified and right": mean(a and b for a, b in zip(certified, right, strict=True)),
            "certified, not vacuous": summary["share_certified_not_vacuous"],
            "smoothed": summary["share_certified_smoothed"],
            "can change": mean(c.counterexample is not None for c in certificates),
            "top-5": summary["share_top_k_certified"],
            "top-5, not vacuous": summary["share_top_k_certified_not_vacuous"],
            "covered": summary["share_covered_alternatives"],
        }
    return record


def macro_f1(labels: Any, guesses: Any) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(labels, guesses, average="macro"))


def chosen_rows(rows: dict[tuple[str, str], list[dict[str, Any]]]) -> set[tuple[str, str]]:
    """For each encoder, the row that validation texts choose."""

    def validation(key: tuple[str, str], name: str) -> float:
        return mean(record["validation"][name] for record in rows[key])

    chosen = set()
    for encoder in {encoder for encoder, _ in rows}:
        floor = validation((encoder, "vanilla, no groups"), "macro-f1") - MARGIN
        keys = [key for key in rows if key[0] == encoder and validation(key, "macro-f1") >= floor]
        chosen.add(max(keys, key=lambda key: validation(key, "certified")))
    return chosen


def table(file: Path) -> list[str]:
    """Lines of the table: means over seeds, on test texts where not named otherwise."""
    rows = defaultdict[tuple[str, str], list[dict[str, Any]]](list)
    for line in file.read_text("utf-8").splitlines():
        record = json.loads(line)
        rows[record["encoder"], record["row"]].append(record)
    heads = ["certified", "certified, not vacuous", "certified and right", "can change", "top-5"]
    lines = ["| row | seeds | macro-F1 | certified on validation | " + " | ".join(heads) + " |", "|---" * 9 + "|"]
    for key, records in rows.items():
        percent = [f"{100 * mean(r['test'][name] for r in records):.1f} %" for name in heads]
        f1 = f"{mean(r['test']['macro-f1'] for r in records):.3f}"
        validation = f"{100 * mean(r['validation']['certified'] for r in records):.1f} %"
        row = f"**{key[1]}**" if key in chosen_rows(rows) else key[1]
        lines.append("| " + " | ".join([row, str(len(records)), f1, validation, *percent]) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--show", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--encoders", default="average", help="average or cnn, separated by a comma")
    parser.add_argument("--only", default="", help="models whose 'encoder, row, seed N' matches")
    parser.add_argument("--limit", type=int, help="texts per split, for a trial run")
    arguments = parser.parse_args()
    if arguments.show:
        print(*table(arguments.show), sep="\n")
        return
    lines = arguments.out.read_text("utf-8").splitlines() if arguments.out.exists() else []
    done = {tuple(json.loads(line)[name] for name in ("encoder", "row", "seed")) for line in lines}
    for seed in range(arguments.seeds):
        for encoder in arguments.encoders.split(","):
            for row in ROWS:
                wanted = re.search(arguments.only, f"{encoder}, {row}, seed {seed}")
                if wanted and (encoder, row, seed) not in done:
                    record = measure(arguments, encoder, row, seed)
                    print(record, flush=True)
                    with arguments.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
