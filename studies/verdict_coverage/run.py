"""Coverage of the 95 % intervals that decide the verdicts of an audit, by simulation.

The pool is an audit of up to POOL texts: leave-one-out weights of a black box, with a second model in place of another
seed.  A trial draws n texts of the pool with replacement; the truth is the value of the whole pool.  An interval covers
if it contains the truth.  Values that depend on the other texts, such as those of a reader, are those of the pool.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.auditing.audit import run_audit
from steadygaze.auditing.prepare_case import AuditRequest
from steadygaze.core.types import Example
from steadygaze.properties.audit_case import Finding
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.results.intervals import Interval, studentized_interval, wilson_interval
from studies import jobs
from studies.data_folder import data_folder

POOL, TRIALS = 1_000, 2_000
SIZES = 50, 100
EXPLAINER = "leave-one-out"
PROPORTION = "label-unaccounted"
MEASURES = (
    *(f"weight-correlation/{condition}" for condition in ("reworded", "reworded-top", "seeds")),
    *(f"{name}/{kind}" for name in ("comprehensiveness", "sufficiency") for kind in ("relative", "relative-filled")),
    *("content-leak", "position-leak/unaccounted", PROPORTION),
)
CASES = (("rotten_tomatoes", "regression"), ("tweet_hate", "bayes"))
CLASSIFIERS: dict[str, Callable[[], Any]] = {"regression": lambda: LogisticRegression(C=3), "bayes": MultinomialNB}
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Simulation(jobs.Job):
    corpus: str
    model: str
    trials: int = TRIALS


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    trials: int = TRIALS


def run(options: Options) -> None:
    jobs.run(options, lambda: [Simulation(*case, options.trials) for case in CASES], simulate)


def simulate(case: Simulation) -> dict[str, Any]:
    """Measure -> the value of the pool, its number of texts, and the coverage by number of texts."""
    return {name: coverage_of(name, *values, case.trials) for name, values in pools(case).items()}


def pools(case: Simulation) -> dict[str, tuple[Values, Values]]:
    """Measure -> one number per text, and the numbers that the sum of these is divided by."""
    folder = data_folder(case.corpus)
    train, test = (pd.read_parquet(folder / case.corpus / f"{split}.parquet") for split in ("train", "test"))
    test = test.sample(min(POOL, len(test)), random_state=0)
    adapter, other = (as_adapter(_fitted(case.model, part)) for part in (train, train[::2]))
    texts = zip(test.text, test.label, strict=True)
    examples = [Example(text, adapter.classes[int(label)]) for text, label in texts]
    table = folder / "synonyms" / "counter_fitted.parquet"
    request = AuditRequest(adapter, examples, ProbeConfig(sample=len(examples)), [EXPLAINER], [other], table)
    audited = run_audit(request)
    known = {
        item.measure: _finite(item)
        for item in audited.findings
        if item.measure in MEASURES and item.explainer == EXPLAINER and item.values is not None
    }
    share = audited.prepared.case.unaccounted[EXPLAINER].numpy()
    share = share[np.isfinite(share)]
    return known | {PROPORTION: (share, np.ones(len(share)))}


def _fitted(model: str, part: pd.DataFrame) -> Any:
    return make_pipeline(TfidfVectorizer(min_df=2), CLASSIFIERS[model]()).fit(part.text, part.label)


def _finite(item: Finding) -> tuple[Values, Values]:
    """The values, from the floor if there is one, and the reach from there to the best; 1 without ends."""
    assert item.values is not None
    values = item.values.double().numpy()
    reach = np.ones(len(values))
    if item.floor is not None and item.best is not None:
        values, reach = values - item.floor.numpy(), (item.best - item.floor).numpy()
    known = np.isfinite(values) & np.isfinite(reach)
    return values[known], reach[known]


def coverage_of(name: str, values: Values, reach: Values, trials: int) -> dict[str, Any]:
    random, truth = np.random.default_rng(0), values.sum() / reach.sum()

    def misses(n: int) -> float:
        """The distance of the truth from the interval; 0 inside."""
        rows = random.integers(len(values), size=n)
        low, high = interval_of(name, values[rows], reach[rows])
        return max(float(low - truth), float(truth - high), 0.0)

    missed = {str(n): np.array([misses(n) for _ in range(trials)]) for n in SIZES}
    return {
        "value": float(truth),
        "texts": len(values),
        "zero": float((values == 0).mean()),
        "coverage": {n: float((distances == 0).mean()) for n, distances in missed.items()},
        "largest miss": {n: float(distances.max()) for n, distances in missed.items()},
    }


def interval_of(name: str, values: Values, reach: Values) -> Interval:
    """As the audit computes it: Wilson's for the share that is unaccounted, else the studentized bootstrap."""
    if name == PROPORTION:
        return wilson_interval(float(values.sum()), len(values))
    return studentized_interval(values, reach)
