"""Forward passes of an audit by property: 100 texts of 40 words, default explainers, a synonym table.

A pass reads all words of one text; a text without half of its words is half a pass.  A backward pass is not counted.
Texts of a function are counted before its cache.  The BiLSTM is trained for one epoch: the passes hardly depend on what
it has learned.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.auditing.prepare_case import AuditRequest, choose_explainers, prepare_all
from steadygaze.core.types import Batch, Example
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.properties import PROPERTIES
from steadygaze.results.audit_config import ProbeConfig
from studies import jobs

TEXTS, LENGTH = 100, 40
NOUNS = tuple(f"{first}{last}" for first in "bcdfgklmnprst" for last in ("ad", "ell", "ing", "old", "ump", "ark"))
TABLE = {word: list(NOUNS[row + 1 : row + 3]) for row, word in enumerate(NOUNS[:-2:2])}
CLASSES = "no", "yes"


@dataclass(frozen=True)
class Audit(jobs.Job):
    model: str
    thorough: bool = False


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    pass


def run(options: Options) -> None:
    jobs.run(options, lambda: [Audit(model) for model in MODELS], count_passes)


def texts(count: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(NOUNS, LENGTH)) for _ in range(count)]


def first_letters(rows: list[str]) -> list[list[float]]:
    """A black box: the share of words with a first letter of the first half of the alphabet."""
    shares = [float(np.mean([float(word[0] < "l") for word in row.split()] or [0.5])) for row in rows]
    return [[share, 1 - share] for share in shares]


def _bilstm() -> ModelAdapter:
    rows = texts(200, 1)
    labels = [CLASSES[share < 0.5] for share, _ in first_letters(rows)]
    return as_adapter(TextClassifier(encoder="bilstm", epochs=1, seed=0, device="cpu").fit(rows, labels))


MODELS: dict[str, Callable[[], ModelAdapter]] = {
    "function": lambda: as_adapter(first_letters, classes=CLASSES),
    "bilstm": _bilstm,
}


def count_passes(job: Audit) -> dict[str, Any]:
    """Property -> calls of the model, texts and passes for each audited text, and seconds of CPU time."""
    adapter = MODELS[job.model]()
    request = AuditRequest(
        adapter,
        [Example(text, CLASSES[row % 2]) for row, text in enumerate(texts(TEXTS, 2))],
        ProbeConfig(sample=TEXTS, thorough=job.thorough),
        synonyms=TABLE,
    )
    case = prepare_all(request, choose_explainers(adapter, ())[0]).case
    network, counts = type(case.model), Counter[str]()
    predict = network.forward

    def forward(self: Any, batch: Batch, *arguments: Any, **options: Any) -> Any:
        counts.update(calls=1, texts=len(batch), tokens=int(batch.present.sum()))
        return predict(self, batch, *arguments, **options)

    network.forward = forward  # type: ignore[method-assign]
    try:
        tokens, results = float(case.data.text.lengths.mean()), {}
        for name, item in PROPERTIES.items():
            counts.clear()
            start = time.process_time()
            for check in item.checks:
                if job.thorough or not check.thorough:
                    list(check.run(case))
            seconds = time.process_time() - start
            results[name] = {
                "calls": counts["calls"],
                "texts": counts["texts"] / TEXTS,
                "passes": counts["tokens"] / tokens / TEXTS,
                "cpu": seconds,
            }
    finally:
        network.forward = predict  # type: ignore[method-assign]
    return {"explainers": sorted(case.explainers), "properties": jobs.compact(results)}
