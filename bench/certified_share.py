"""Certified share on SST-2: texts whose label no rewrite with the counter-fitted table changes.

    python bench/certified_share.py --data DATA --out DIR [--seeds 5] [--encoders average] [--only REGEX] [--limit N]
    python bench/job_cells.py DIR/records > bench/records/certified_share.jsonl
    python bench/certified_share.py --show bench/records/certified_share.jsonl

A record has one model: macro-F1 and certified shares on validation and test texts.  The bold row of the table has the
largest certified share on validation texts, among those whose validation macro-F1 is at most 0.01 below vanilla's
without groups.
"""

import argparse
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import job_cells
from tables import markdown, read_records

AUGMENTATION = "synonym-augmentation"
ROWS: dict[str, tuple[str, bool, dict[str, Any]]] = {
    "vanilla, no groups": ("vanilla", False, {}),
    "vanilla": ("vanilla", True, {}),
    "word-at": ("word-at", True, {}),
    AUGMENTATION: (AUGMENTATION, True, {}),
    f"{AUGMENTATION}, weight 3, share 1": (AUGMENTATION, True, {"weight": 3.0, "share": 1.0}),
}
"""Row -> technique, groups, settings."""
SAMPLES, K, MARGIN = 1000, 5, 0.01


@dataclass(frozen=True)
class Job:
    encoder: str
    row: str
    seed: int

    @property
    def id(self) -> str:
        return f"{self.encoder}.{self.row.replace(', ', '-').replace(' ', '-')}.s{self.seed}"


def plan(encoders: list[str], seeds: int) -> list[Job]:
    return [Job(encoder, row, seed) for seed in range(seeds) for encoder in encoders for row in ROWS]


def run_job(arguments: argparse.Namespace, job: Job) -> dict[str, Any]:
    import steadygaze as sg

    technique, has_groups, settings = ROWS[job.row]
    table = arguments.data / "synonyms" / "counter_fitted.parquet"
    splits = sg.load_corpus("sst2", data_dir=arguments.data).splits
    texts = {name: [e.text for e in splits[name]][: arguments.limit] for name in ("train", "validation", "test")}
    labels = {name: [e.label for e in splits[name]][: arguments.limit] for name in texts}
    augmentation = {"synonyms": str(table)} if technique == AUGMENTATION else {}
    clf = sg.TextClassifier(
        job.encoder, technique, seed=job.seed, vectors=arguments.data / "glove" / "glove.6B.100d.txt.gz", device="cpu",
        settings=settings | augmentation, synonym_groups=table if has_groups else None, verbose=False,
    )  # fmt: skip
    start = time.process_time()
    clf.fit(texts["train"], labels["train"], validation=(texts["validation"], labels["validation"]))
    record: dict[str, Any] = {"training CPU seconds": round(time.process_time() - start)}
    for name in ("validation", "test"):
        certificates = sg.certify(clf, texts[name], substitutions=str(table), samples=SAMPLES, k=K)
        predicted = clf.predict(texts[name])
        right = [guess == label for guess, label in zip(predicted, labels[name], strict=True)]
        summary = certificates.summary()
        certified = [c.certified and c.method == "exact" for c in certificates]
        record[name] = {
            "texts": len(right),
            "macro-f1": macro_f1(labels[name], predicted),
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


def macro_f1(labels: Any, predicted: Any) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(labels, predicted, average="macro"))


def selected_rows(rows: dict[tuple[str, str], list[dict[str, Any]]]) -> set[tuple[str, str]]:
    """For each encoder, the row that validation texts select."""

    def validation(key: tuple[str, str], name: str) -> float:
        return mean(record["validation"][name] for record in rows[key])

    selected = set()
    for encoder in {encoder for encoder, _ in rows}:
        floor = validation((encoder, "vanilla, no groups"), "macro-f1") - MARGIN
        keys = [key for key in rows if key[0] == encoder and validation(key, "macro-f1") >= floor]
        selected.add(max(keys, key=lambda key: validation(key, "certified")))
    return selected


def table(file: Path) -> str:
    """Means over seeds, on test texts if the column does not name another split."""
    rows = defaultdict[tuple[str, str], list[dict[str, Any]]](list)
    for record in read_records([file]):
        rows[record["encoder"], record["row"]].append(record)
    measures = ["certified", "certified, not vacuous", "certified and right", "can change", "top-5"]
    lines = [["row", "seeds", "macro-F1", "certified on validation", *measures]]
    for key, records in rows.items():
        percent = [f"{100 * mean(r['test'][name] for r in records):.1f} %" for name in measures]
        f1 = f"{mean(r['test']['macro-f1'] for r in records):.3f}"
        validation = f"{100 * mean(r['validation']['certified'] for r in records):.1f} %"
        row = f"**{key[1]}**" if key in selected_rows(rows) else key[1]
        lines.append([row, str(len(records)), f1, validation, *percent])
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the corpora, GloVe vectors and the table")
    parser.add_argument("--show", type=Path, help="print the table of these records")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--encoders", default="average", help="average or cnn, separated by a comma")
    parser.add_argument("--limit", type=int, help="texts per split, for a trial run")
    job_cells.options(parser)
    arguments = parser.parse_args()
    if arguments.show:
        print(table(arguments.show))
    else:
        encoders = arguments.encoders.split(",")
        job_cells.run(arguments, lambda: plan(encoders, arguments.seeds), partial(run_job, arguments))


if __name__ == "__main__":
    import certified_share  # workers import the jobs from this module, not from the script

    certified_share.main()
