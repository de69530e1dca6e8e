"""The progress of a whole audit: the share of its forward passes that is done, and an estimate of its time.

The cost of a task is the number of forward passes of a text that it needs, summed over its texts.  A backward pass
costs BACKWARD forward passes.  The costs are estimates: they scale the progress bar and do not change any result.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import monotonic

from steadygaze.audit.audit_case import READING, AuditCase, other_explainers
from steadygaze.audit.prepare_case import TextDraw
from steadygaze.audit.probes.erasure import SHARES
from steadygaze.audit.protocols.attention_interventions import DRAWS, randomized_task
from steadygaze.audit.protocols.faithfulness import GRADIENTS, erasure_task
from steadygaze.audit.protocols.shortcut_leakage import shuffled_task
from steadygaze.explainers.attention import Attention
from steadygaze.results.audit_config import Runtime

BACKWARD = 1.2
SHORT, FEWER = 60.0, 4
"""Seconds below which no estimate is announced; the divisor of the texts in its advice."""
PROBE_PASSES = {"fgm-label": 1 + BACKWARD, "pgd-attention": 2 + 10 * (1 + BACKWARD)}
"""Passes that find the perturbation."""


def planned_passes(case: AuditCase, texts: int | None = None) -> dict[str, float]:
    """Task -> forward passes of a text; `texts`: for an audit of another number of texts."""
    total = len(case) if texts is None else texts
    passes: defaultdict[str, float] = defaultdict(float, {READING: float(total)})
    for task, number in _planned(case, total):
        passes[task] += number
    return dict(passes)


def _planned(case: AuditCase, total: int) -> Iterator[tuple[str, float]]:
    sampled = min(case.sample_size, total)
    rows = {name: sampled if case.is_expensive(name) else total for name in case.explainers}
    cost = {name: rows[name] * explainer.forward_passes for name, explainer in case.explainers.items()}
    for name, explainer in case.explainers.items():
        yield name, 0.0 if isinstance(explainer, Attention) else cost[name]
        yield shuffled_task(name), cost[name]
    for name, probe in case.probes.items():
        if not probe.requires - case.model.capabilities:
            texts = sampled if probe.expensive else total
            explained = sum(number for explainer, number in cost.items() if not probe.of or explainer in probe.of)
            yield name, texts * PROBE_PASSES.get(name, 0.0) + max(texts, explained * texts / total)
    for name in ("random", *other_explainers(case)):
        yield erasure_task(name), len(SHARES) * rows.get(name, total)
    if any(not requirements - case.model.capabilities for requirements in GRADIENTS.values()):
        yield "gradient", total * (1 + BACKWARD)
    for name in other_explainers(case) if next(case.model.parameters(), None) is not None else ():
        yield from ((randomized_task(name, draw), cost[name]) for draw in range(DRAWS))


@dataclass
class AuditProgress:
    """Convert the progress of single tasks to that of the audit; tasks that are not planned pass unchanged."""

    case: AuditCase
    runtime: Runtime
    """That of the caller."""
    shares: dict[str, float] = field(default_factory=dict)
    """Task -> the share of its texts that is done."""
    draw: TextDraw | None = None
    """How the texts were drawn."""
    start: float = field(default_factory=monotonic)

    def __post_init__(self) -> None:
        self.planned = planned_passes(self.case)

    def watch(self, task: str, done: int, total: int) -> None:
        if task not in self.planned:
            self.runtime.watch(task, done, total)
            return
        first = self.shares.get(task, 0.0) < 1
        self.shares[task] = done / max(total, 1)
        if task == READING and first and done == total:
            self._announce((monotonic() - self.start) / self.planned[READING])
        finished = sum(self.planned[name] * share for name, share in self.shares.items())
        activity = f"{task}: {done:,} of {total:,} texts"
        self.runtime.watch(activity, round(finished), round(sum(self.planned.values())))

    def _announce(self, seconds_per_pass: float) -> None:
        """Print how long the audit takes, if it takes long, and what makes it shorter."""
        seconds = seconds_per_pass * sum(self.planned.values())
        if self.draw is not None and self.draw.by_default:
            whole = seconds_per_pass * sum(planned_passes(self.case, self.draw.total).values())
            self.runtime.announce(
                f"this audit of {self.draw} takes {minutes(seconds)}; --limit 0 audits all and takes {minutes(whole)}"
            )
            return
        if seconds < SHORT:
            return
        texts, sampled = len(self.case), len(self.case.sample)
        advice = []
        if fewer := sampled // FEWER:
            smaller = replace(self.case, config=replace(self.case.config, sample=fewer))
            advice.append((f"--sample {fewer}", seconds_per_pass * sum(planned_passes(smaller).values())))
        if fewer := texts // FEWER:
            advice.append((f"--limit {fewer}", seconds_per_pass * sum(planned_passes(self.case, fewer).values())))
        faster = ", ".join(f"{option} {minutes(time)}" for option, time in advice)
        self.runtime.announce(f"this audit of {texts:,} texts takes {minutes(seconds)}{faster and f'; {faster}'}")


def minutes(seconds: float) -> str:
    """
    >>> minutes(20), minutes(80), minutes(400)
    ('less than a minute', 'about 1 minute', 'about 7 minutes')
    """
    number = round(seconds / 60)
    return "less than a minute" if seconds < 45 else f"about {number:,} minute{'s' * (number != 1)}"
