"""Certified share on SST-2: texts whose label no rewrite with the counter-fitted table changes.

A record has one model: macro-F1 and certified shares on validation and test texts.  The bold row of the table has the
largest certified share on validation texts, among those whose validation macro-F1 is at most 0.01 below vanilla's
without groups.
"""

import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from studies import jobs

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
class Job(jobs.Job):
    encoder: str
    row: str
    seed: int


def plan(encoders: list[str], seeds: int) -> list[Job]:
    return [Job(encoder, row, seed) for seed in range(seeds) for encoder in encoders for row in ROWS]


def run_job(arguments: "Options", job: Job) -> dict[str, Any]:
    import steadygaze as sg
    from steadygaze.results.substitution_certificates import SubstitutionCertificates

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
        assert isinstance(certificates, SubstitutionCertificates)
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


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """Texts are those of SST-2."""

    data: Path = field(metadata={"help": "folder of the corpora, GloVe vectors and the table"})
    seeds: int = 5
    encoders: str = field(default="average", metadata={"help": "average or cnn, separated by a comma"})
    limit: int | None = field(default=None, metadata={"help": "texts per split, for a trial run"})


def run(options: Options) -> None:
    jobs.run(options, lambda: plan(options.encoders.split(","), options.seeds), partial(run_job, options))
