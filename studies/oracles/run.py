"""Audits of models and explainers of known truth: the verdicts, and the numbers behind them.

training    worlds on which thresholds are chosen
test        other seeds, lengths, numbers of classes and balances; run once the thresholds are committed
sweep       other seeds; the number of texts, their length, the classes or the balance varies, one at a time
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from steadygaze.auditing.audit import run_audit
from steadygaze.auditing.audit_report import build_report
from steadygaze.auditing.prepare_case import AuditRequest
from steadygaze.properties.verdict_rules import verdicts
from steadygaze.results.audit_config import ProbeConfig
from studies import jobs
from studies.data_folder import VARIABLE
from studies.oracles.explainers import EXPLAINERS, explainers
from studies.oracles.models import MODELS, adapter
from studies.oracles.worlds import KINDS, Shape, world

TEXTS = 100
TRAINING, TEST, SWEEP = "training", "test", "sweep"
SEEDS = {TRAINING: (0, 1), TEST: (100, 101)}
SHAPES = {
    TRAINING: {0: Shape(), 1: Shape(5, 12, density=0.25)},
    TEST: {100: Shape(10, 40), 101: Shape(20, 60, density=0.08, balance=0.35)},
}
"""The shape of short texts by seed."""
LONG_SHAPES = {
    TRAINING: {0: KINDS["long"], 1: Shape(60, 120, classes=3, density=0.04)},
    TEST: {100: Shape(80, 160, classes=4, density=0.04), 101: Shape(100, 250, classes=10, density=0.02)},
}


SWEEPS = {
    **{f"{n} texts": (n, Shape()) for n in (20, 50, 100, 300)},
    **{
        f"{longest} words": (TEXTS, Shape(shortest, longest, density=min(0.4, 3 / longest)))
        for shortest, longest in ((5, 6), (12, 20), (60, 80), (250, 300))
    },
    **{f"{c} classes": (TEXTS, Shape(classes=c)) for c in (2, 4, 10, 20)},
    **{f"{share:.0%} in one class": (TEXTS, Shape(balance=share)) for share in (0.05, 0.1, 0.25, 0.5)},
}
"""Name -> number and shape of texts: one thing varies, with models of SWEPT."""
SPLIT = "6976add4b06c2e9a"
"""Digest of all worlds, models and explainers.  The thresholds of this commit were chosen on the training worlds alone;
the others were run afterwards."""
SWEPT = ("linear", "majority", "flipped synonyms")
SWEEP_SEED = 200


@dataclass(frozen=True)
class Case(jobs.Job):
    """A model in a world."""

    part: str
    kind: str
    model: str
    seed: int
    texts: int = TEXTS
    sweep: str = ""

    @property
    def shape(self) -> Shape:
        if self.sweep:
            return SWEEPS[self.sweep][1]
        chosen = {"short": SHAPES, "long": LONG_SHAPES}.get(self.kind)
        return KINDS[self.kind] if chosen is None else chosen[self.part][self.seed]


def plan(part: str, texts: int = TEXTS) -> list[Case]:
    if part == SWEEP:
        cases = product(SWEPT, SWEEPS.items())
        return [Case(part, "short", model, SWEEP_SEED, n, name) for model, (name, (n, _)) in cases]
    return [Case(part, *case, texts) for case in product(KINDS, MODELS, SEEDS[part])]


def split_hash() -> str:
    """The digest of all worlds, models and explainers."""
    parts = (repr(case) for part in (TRAINING, TEST, SWEEP) for case in plan(part))
    names = [*parts, repr(SHAPES), repr(LONG_SHAPES), repr(SWEEPS), *EXPLAINERS]
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def audit_case(case: Case) -> dict[str, Any]:
    """The answers and numbers of all explainers."""
    data = os.environ.get(VARIABLE)
    here = world(case.kind, case.seed, case.texts, case.shape, None if data is None else Path(data))
    others = [adapter(here, case.model, 1)]
    config = ProbeConfig(seed=case.seed)
    request = AuditRequest(
        adapter(here, case.model), here.examples, config, list(explainers().values()), others, here.synonyms
    )
    rows = build_report(run_audit(request)).rows
    answers: dict[str, Mapping[str, str]] = {}
    numbers: dict[str, Any] = {}
    for name in EXPLAINERS:
        given = verdicts(rows, name)
        answers[name] = {verdict.key: verdict.answer for verdict in given}
        deciding = {measure for verdict in given for measure in verdict.thresholds}
        numbers[name] = {
            row.measure: [row.value, *(row.interval or (None, None)), row.n]
            for row in rows
            if row.measure in deciding and row.settings.get("explainer") == name and row.n
        }
    return {"answers": answers, "numbers": jobs.compact(numbers)}


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    part: str = TRAINING
    texts: int = TEXTS


def run(options: Options) -> None:
    jobs.run(options, lambda: plan(options.part, options.texts), audit_case)
