"""Whether `tune` finds an ε for word-at on SST-2 that is as good as the best of a grid of ten, in half of its epochs.

    python bench/tune_epsilon.py --data-dir DATA --glove FILE --out DIR [--device cuda] [--workers 14]
    python bench/job_queue.py DIR/records > bench/records/tune_epsilon.jsonl
    python bench/tune_epsilon.py --table bench/records/tune_epsilon.jsonl

Three searches of five trials each have the seeds 0, 100 and 200.  The grid divides the range of the search evenly in
the logarithm; each of its values is trained with three seeds.  An ε that a search finds is trained anew with the seeds
of the grid, because the score that selects a trial is optimistic.
"""

import argparse
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import job_queue

CORPUS, TECHNIQUE = "sst2", "word-at"
LOW, HIGH, POINTS = 0.01, 10.0, 10
GRID = [round(LOW * (HIGH / LOW) ** (i / (POINTS - 1)), 4) for i in range(POINTS)]
SEEDS, SEARCHES, TRIALS = 3, (0, 100, 200), 5


@dataclass(frozen=True)
class Job:
    kind: str
    """grid, search, or found: an ε that a search found."""
    epsilon: float
    """0 for a search."""
    seed: int

    @property
    def id(self) -> str:
        return f"{self.kind}.{self.epsilon}.s{self.seed}"


def first_jobs() -> list[Job]:
    searches = [Job("search", 0.0, seed) for seed in SEARCHES]
    return [*searches, *(Job("grid", epsilon, seed) for epsilon in GRID for seed in range(SEEDS))]


def plan(out: Path) -> list[Job]:
    """The searches and the grid; then, in the next round, what the searches found."""
    done = [json.loads(file.read_text()) for file in (out / "records").glob("search.*.json")]
    found = [record["best"]["epsilon"] for record in done if "best" in record]
    return [*first_jobs(), *(Job("found", epsilon, seed) for epsilon in found for seed in range(SEEDS))]


class Study:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    def do(self, job: Job) -> dict[str, Any]:
        return self._search(job.seed) if job.kind == "search" else self._train(job)

    def _search(self, seed: int) -> dict[str, Any]:
        from steadygaze.study.compare import StudyRuntime
        from steadygaze.study.tune import tune
        from steadygaze.study.tune_config import TuneConfig

        options = self.options
        common = {"vectors": str(options.glove), "epochs": options.epochs}
        config = TuneConfig(data=CORPUS, technique=TECHNIQUE, trials=TRIALS, seed=seed, parallel=1, **common)
        with tempfile.TemporaryDirectory() as folder:
            result = tune(config, StudyRuntime(Path(folder) / "out", options.data_dir, options.device))
        assert result.best is not None
        trials = [{"epsilon": t.settings["epsilon"], "score": t.values[:1], "epochs": t.epochs} for t in result.trials]
        best = {"epsilon": round(result.best.settings["epsilon"], 4), "score": result.best.values[0]}
        return {"trials": trials, "best": best, "space": result.spaces["epsilon"]}

    def _train(self, job: Job) -> dict[str, Any]:
        from sklearn.metrics import f1_score

        from steadygaze.data.corpora import load_corpus
        from steadygaze.estimator.text_classifier import TextClassifier

        splits = load_corpus(CORPUS, data_dir=self.options.data_dir).splits
        texts, labels = ({name: [getattr(e, part) for e in some] for name, some in splits.items()} for part in PARTS)
        clf = TextClassifier(
            technique=TECHNIQUE,
            seed=job.seed,
            epochs=self.options.epochs,
            vectors=self.options.glove,
            settings={"epsilon": job.epsilon},
            device=self.options.device,
            verbose=False,
        )
        clf.fit(texts["train"], labels["train"], validation=(texts["validation"], labels["validation"]))
        test = f1_score(labels["test"], clf.predict(texts["test"]), average="macro")
        epoch = clf.stored_.description.best_epoch
        return {"validation": float(epoch["macro-f1"]), "test": float(test), "epochs": len(clf.history_)}


PARTS = ("text", "label")


def table(file: Path) -> str:
    """A line per search: its ε beside that of the grid with one seed and with the mean of three."""
    records = [json.loads(line) for line in file.read_text().splitlines()]
    trained = [r for r in records if r["kind"] != "search"]

    def score(epsilon: float, part: str, seeds: range = range(SEEDS)) -> float:
        return mean({r["seed"]: r[part] for r in trained if r["epsilon"] == epsilon and r["seed"] in seeds}.values())

    grid_best = max(GRID, key=lambda epsilon: score(epsilon, "validation"))
    lines = ["| search | ε | epochs | validation | test |", "|---|---|---|---|---|"]
    epochs = mean(sum(r["epochs"] for r in records if r["kind"] == "grid" and r["seed"] == s) for s in range(SEEDS))
    scores = " | ".join(f"{score(grid_best, part):.4f}" for part in ("validation", "test"))
    lines.append(f"| grid of ten | {grid_best:g} | {epochs:.0f} | {scores} |")
    for r in sorted((r for r in records if r["kind"] == "search"), key=lambda r: r["seed"]):
        epsilon, epochs = r["best"]["epsilon"], sum(trial["epochs"] for trial in r["trials"])
        scores = " | ".join(f"{score(epsilon, part):.4f}" for part in ("validation", "test"))
        lines.append(f"| `tune`, seed {r['seed']} | {epsilon:g} | {epochs} | {scores} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--glove", type=Path)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--table", type=Path, help="print the table of these records")
    job_queue.options(parser)
    options = parser.parse_args()
    if options.table:
        print(table(options.table))
        return
    study = Study(options)
    job_queue.run(options, lambda: plan(options.out), study.do, rounds=2)


if __name__ == "__main__":
    main()
