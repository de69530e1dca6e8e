"""Macro-F1 and epochs of `tune` for ε of word-at on SST-2, beside a grid of ten values.

Three searches of five trials each have the seeds 0, 100 and 200.  The grid divides the range of the search evenly in
the logarithm; each of its values is trained with `--seeds` seeds.  An ε that a search finds is trained anew with these
seeds, because the score that selects a trial is optimistic.
"""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studies import jobs

CORPUS, TECHNIQUE = "sst2", "word-at"
LOW, HIGH, POINTS = 0.01, 10.0, 10
GRID = [round(LOW * (HIGH / LOW) ** (i / (POINTS - 1)), 4) for i in range(POINTS)]
SEARCHES, TRIALS = (0, 100, 200), 5


@dataclass(frozen=True)
class Job(jobs.Job):
    kind: str
    """grid, search, or found: training with the ε that a search selected."""
    epsilon: float
    """0 for a search."""
    seed: int


def plan(out: Path, seeds: int) -> list[Job]:
    """The searches and the grid; in the next round, training with the ε that the searches selected."""
    searches = [Job("search", 0.0, seed) for seed in SEARCHES]
    grid = [Job("grid", epsilon, seed) for seed in range(seeds) for epsilon in GRID]
    done = [json.loads(file.read_text()) for file in (out / "records").glob("search.*.json")]
    epsilons = [record["best"]["epsilon"] for record in done if "best" in record]
    return [*searches, *grid, *(Job("found", epsilon, seed) for epsilon in set(epsilons) for seed in range(seeds))]


class Study:
    def __init__(self, options: "Options") -> None:
        self.options = options

    def run_job(self, job: Job) -> dict[str, Any]:
        return self._search(job.seed) if job.kind == "search" else self._train(job)

    def _search(self, seed: int) -> dict[str, Any]:
        from steadygaze.study.compare import StudyRuntime
        from steadygaze.study.tune import tune
        from steadygaze.study.tune_config import TuneConfig

        options = self.options
        vectors = str(options.glove) if options.glove else None
        common: dict[str, Any] = {"vectors": vectors, "epochs": options.epochs, "encoder": options.encoder}
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
        from steadygaze.estimator.resumable_training import columns
        from steadygaze.estimator.text_classifier import TextClassifier

        splits = load_corpus(CORPUS, data_dir=self.options.data_dir).splits
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
        clf.fit(*columns(splits["train"]), validation=columns(splits["validation"]))
        texts, labels = columns(splits["test"])
        test = f1_score(labels, clf.predict(texts), average="macro")
        epoch = clf.stored_.description.best_epoch
        return {"validation": float(epoch["macro-f1"]), "test": float(test), "epochs": len(clf.history_)}


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """Seeds are those of each value of the grid."""

    data_dir: Path | None = None
    glove: Path | None = None
    epochs: int | None = None
    seeds: int = 3
    encoder: str = "bilstm"


def run(options: Options) -> None:
    jobs.run(options, lambda: plan(options.out, options.seeds), Study(options).run_job, rounds=2)
