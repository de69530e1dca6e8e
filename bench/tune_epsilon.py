"""Macro-F1 and epochs of `tune` for ε of word-at on SST-2, beside a grid of ten values.

    python bench/tune_epsilon.py --data-dir DATA --glove FILE --out DIR [--device cuda] [--workers 14] [--seeds 3]
                                 [--encoder bilstm] [--epochs 8]
    python bench/job_cells.py DIR/records > bench/records/tune_epsilon-COMMIT.jsonl
    python bench/tune_epsilon.py --table bench/records/tune_epsilon-COMMIT.jsonl

Three searches of five trials each have the seeds 0, 100 and 200.  The grid divides the range of the search evenly in
the logarithm; each of its values is trained with `--seeds` seeds.  An ε that a search finds is trained anew with these
seeds, because the score that selects a trial is optimistic.
"""

import argparse
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import job_cells
from tables import markdown, read_records

CORPUS, TECHNIQUE = "sst2", "word-at"
LOW, HIGH, POINTS = 0.01, 10.0, 10
GRID = [round(LOW * (HIGH / LOW) ** (i / (POINTS - 1)), 4) for i in range(POINTS)]
SEARCHES, TRIALS = (0, 100, 200), 5


@dataclass(frozen=True)
class Job:
    kind: str
    """grid, search, or found: training with the ε that a search selected."""
    epsilon: float
    """0 for a search."""
    seed: int

    @property
    def id(self) -> str:
        return f"{self.kind}.{self.epsilon}.s{self.seed}"


def plan(out: Path, seeds: int) -> list[Job]:
    """The searches and the grid; in the next round, training with the ε that the searches selected."""
    searches = [Job("search", 0.0, seed) for seed in SEARCHES]
    grid = [Job("grid", epsilon, seed) for seed in range(seeds) for epsilon in GRID]
    done = [json.loads(file.read_text()) for file in (out / "records").glob("search.*.json")]
    epsilons = [record["best"]["epsilon"] for record in done if "best" in record]
    return [*searches, *grid, *(Job("found", epsilon, seed) for epsilon in set(epsilons) for seed in range(seeds))]


class Study:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    def run_job(self, job: Job) -> dict[str, Any]:
        return self._search(job.seed) if job.kind == "search" else self._train(job)

    def _search(self, seed: int) -> dict[str, Any]:
        from steadygaze.study.compare import StudyRuntime
        from steadygaze.study.tune import tune
        from steadygaze.study.tune_config import TuneConfig

        options = self.options
        vectors = str(options.glove) if options.glove else None
        common = {"vectors": vectors, "epochs": options.epochs, "encoder": options.encoder}
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
        texts, labels = (
            {name: [getattr(e, part) for e in examples] for name, examples in splits.items()} for part in FIELDS
        )
        clf = TextClassifier(
            self.options.encoder,
            TECHNIQUE,
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


FIELDS = ("text", "label")


@dataclass(frozen=True)
class SearchResult:
    name: str
    epsilon: float
    epochs: float
    validation: float
    test: float


def results(file: Path) -> list[SearchResult]:
    """The grid and each search: ε, trained epochs, and the mean scores of its ε over the seeds of the grid."""
    records = read_records([file])
    seeds = {r["seed"] for r in records if r["kind"] == "grid"}

    def score(epsilon: float, part: str) -> float:
        runs = {r["seed"]: r[part] for r in records if r["kind"] != "search" and r["epsilon"] == epsilon}
        assert runs.keys() == seeds, (epsilon, runs)
        return mean(runs.values())

    def search_result(name: str, epsilon: float, epochs: float) -> SearchResult:
        return SearchResult(name, epsilon, epochs, score(epsilon, "validation"), score(epsilon, "test"))

    best = max(GRID, key=lambda epsilon: score(epsilon, "validation"))
    grid_epochs = sum(r["epochs"] for r in records if r["kind"] == "grid") / len(seeds)
    searches = sorted((r for r in records if r["kind"] == "search"), key=lambda r: r["seed"])
    return [
        search_result("grid of ten", best, grid_epochs),
        *(
            search_result(f"`tune`, seed {r['seed']}", r["best"]["epsilon"], sum(t["epochs"] for t in r["trials"]))
            for r in searches
        ),
    ]


def table(file: Path) -> str:
    lines = [["search", "ε", "epochs", "validation macro-F1", "test macro-F1"]]
    for r in results(file):
        lines.append([r.name, f"{r.epsilon:g}", f"{r.epochs:.0f}", f"{r.validation:.4f}", f"{r.test:.4f}"])
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--glove", type=Path)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--encoder", default="bilstm")
    parser.add_argument("--table", type=Path, help="print the table of these records")
    job_cells.options(parser)
    options = parser.parse_args()
    if options.table:
        print(table(options.table))
        return
    study = Study(options)
    job_cells.run(options, lambda: plan(options.out, options.seeds), study.run_job, rounds=2)


if __name__ == "__main__":
    import tune_epsilon  # workers import the jobs from this module, not from the script

    tune_epsilon.main()
