"""The progress of a whole audit: the share of its forward passes that is done, and an estimate of its time.

The cost of a task is the number of forward passes of a text that it needs, summed over its texts.  A backward pass
costs BACKWARD forward passes.  The costs are estimates: they scale the progress bar and do not change any result.

Tasks that are not planned, which are short or come last, leave the bar where it is.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from time import monotonic

from steadygaze.auditing.prepare_case import TextDraw
from steadygaze.explainers.attention import Attention
from steadygaze.properties import PROPERTIES
from steadygaze.properties.audit_case import ORDERING, RANDOM, READING, AuditCase, TrainingTask, other_explainers
from steadygaze.properties.measures.faithfulness_measures import RADII
from steadygaze.properties.measures.faithfulness_measures import SHARES as FLIP_SHARES
from steadygaze.properties.probes import beam_search
from steadygaze.properties.probes.best_orders import GOOD_ORDERS, MOST_UNITS
from steadygaze.properties.probes.erasure import SHARES
from steadygaze.properties.property import Protocol
from steadygaze.properties.protocols import content_leakage as leakage
from steadygaze.properties.protocols import faithfulness, fidelity, flip_radius, soft_stability
from steadygaze.properties.protocols.content_leakage import content_leakage
from steadygaze.properties.protocols.faithfulness import (
    GRADIENTS,
    RANDOM_COPIES,
    attention_interventions,
    erasure,
    erasure_task,
    gradient_agreement,
    randomized_task,
)
from steadygaze.properties.protocols.relative_erasure import ORDERS, relative_erasure
from steadygaze.properties.protocols.relative_erasure import TASK as ORDERED
from steadygaze.properties.protocols.rewording import REWORDED_TEXTS, rewording, rewording_task
from steadygaze.properties.protocols.shortcut_leakage import shortcut_leakage, shuffled_task
from steadygaze.properties.protocols.stability import seed_consistency, seeds_task
from steadygaze.results.audit_config import Runtime

BACKWARD = 1.2
SHORT, FEWER = 60.0, 4
"""Seconds below which no estimate is announced; the divisor of the texts in its advice."""
ANNOUNCED = 0.05
"""Share of the passes after which the estimate is announced; the first batch is slower than the others."""
FILLED = 2
"""Passes of a text with replaced words, in those of a text with removed words and the removed words alone."""
PROBE_PASSES = {"fgm-label": 1 + BACKWARD, "pgd-attention": 3 + 11 * (1 + BACKWARD)}
"""Passes that find the perturbation."""


def all_protocols() -> list[Protocol]:
    return [check.run for item in PROPERTIES.values() for check in item.checks]


def planned_passes(
    case: AuditCase, texts: int | None = None, protocols: Collection[Protocol] | None = None
) -> dict[str, float]:
    """Task -> forward passes of a text; `texts`: for an audit of another number of texts.  None: all protocols."""
    total = len(case) if texts is None else texts
    passes: defaultdict[str, float] = defaultdict(float, {READING: float(total)})
    for task, number in _planned(case, total, all_protocols() if protocols is None else protocols):
        passes[task] += number
    return dict(passes)


def _planned(case: AuditCase, total: int, protocols: Collection[Protocol]) -> Iterator[tuple[str, float]]:
    sampled = min(case.sample_size, total)
    rows = {name: sampled if case.is_expensive(name) else total for name in case.explainers}
    words = _mean_words(case)
    cost = {name: rows[name] * explainer.passes(words) for name, explainer in case.explainers.items()}
    for name, explainer in case.explainers.items():
        yield name, 0.0 if isinstance(explainer, Attention) else cost[name]
        if shortcut_leakage in protocols:
            yield shuffled_task(name), cost[name]
        if case.others and seed_consistency in protocols:
            yield seeds_task(name), cost[name] * len(case.others)
    for name, probe in case.probes.items():
        if not probe.requires - case.model.capabilities:
            texts = sampled if probe.expensive else total
            explained = sum(number for explainer, number in cost.items() if not probe.of or explainer in probe.of)
            yield name, texts * PROBE_PASSES.get(name, 0.0) + max(texts, explained * texts / total)
    if rewording in protocols and case.substitutions:
        yield REWORDED_TEXTS, float(total)
        yield from ((rewording_task(name), 2 * cost[name]) for name in case.explainers)
    if {relative_erasure, content_leakage} & {*protocols} and other_explainers(case):
        yield ORDERING, sampled * min(MOST_UNITS, words)
    if relative_erasure in protocols and other_explainers(case):
        own = len(other_explainers(case))
        removed, replaced = (1 + good for good in ORDERS)
        removed += 0 if erasure in protocols else own  # else those of `erasure`
        yield ORDERED, sampled * (len(SHARES) * (removed + FILLED * (own + replaced)) + _searched(case))
    if content_leakage in protocols:
        shown = (1 + GOOD_ORDERS) * (1 + len(other_explainers(case)))  # the best orders, and no words, or the own
        yield leakage.ANSWERING, sampled * leakage.DRAWS * shown
    for name in (RANDOM, *other_explainers(case)) if erasure in protocols else ():
        yield erasure_task(name), len(SHARES) * rows.get(name, total)
    kinds = GRADIENTS.values() if gradient_agreement in protocols else ()
    if any(not requirements - case.model.capabilities for requirements in kinds):
        yield "gradient", total * (1 + BACKWARD)
    randomized = attention_interventions in protocols and next(case.model.parameters(), None) is not None
    for name in other_explainers(case) if randomized else ():
        yield from ((randomized_task(name, draw), cost[name]) for draw in range(RANDOM_COPIES))
    if case.config.thorough:
        yield from _thorough(case, sampled, protocols)


def _thorough(case: AuditCase, sampled: int, protocols: Collection[Protocol]) -> Iterator[tuple[str, float]]:
    """Passes of the checks of a thorough audit."""
    names, words, ascent = (RANDOM, *other_explainers(case)), max(_mean_words(case), 1.0), 1 + BACKWARD
    if faithfulness.infidelity in protocols:
        yield faithfulness.SETS_TASK, sampled * faithfulness.SAMPLES / 2  # half of the words are left
    if fidelity.fidelity in protocols:
        masked = 2 * len(fidelity.SHARES) * fidelity.DRAWS * (1 - fidelity.MOST)
        yield from ((fidelity.masked_task(name), sampled * masked) for name in names)
    if soft_stability.soft_stability in protocols:
        top = soft_stability.TOP
        share = top + min(soft_stability.ADDED / words, 1 - top)  # almost all sets have the most words
        yield from ((soft_stability.added_task(name), sampled * soft_stability.SAMPLES * share) for name in names)
    if "embeddings" not in case.model.capabilities:
        return
    if flip_radius.flip_radius in protocols:
        rounds = len(FLIP_SHARES) * flip_radius.ROUNDS * (flip_radius.STEPS * ascent + 1)
        yield from ((flip_radius.radius_task(name), sampled * (1 + rounds)) for name in names)
        if case.data.label is not None:
            yield flip_radius.SEAT_TASK, sampled * len(RADII) * (flip_radius.SEAT_STEPS * ascent + 1)
    for name, explainer in case.explainers.items() if faithfulness.max_sensitivity in protocols else ():
        if explainer.requires:
            yield faithfulness.noise_task(name), sampled * faithfulness.DRAWS * explainer.forward_passes


def _searched(case: AuditCase) -> float:
    """Passes of the search for the best order in a text; see probes/beam_search.py."""
    if not case.config.thorough:
        return 0.0
    words = case.words.double()
    return float((0.4 * beam_search.WIDTH * words**2).where(words <= beam_search.MOST_WORDS, 0.0).mean())


def _mean_words(case: AuditCase) -> float:
    return float(case.words.double().mean())


@dataclass
class AuditProgress:
    """Convert the progress of single tasks to that of the audit, which never falls."""

    case: AuditCase
    runtime: Runtime
    """That of the caller."""
    shares: dict[str, float] = field(default_factory=dict)
    """Task -> the share of its texts that is done."""
    draw: TextDraw | None = None
    """How the texts were drawn."""
    protocols: Collection[Protocol] | None = None
    """Those that run; None: all."""

    def __post_init__(self) -> None:
        self.planned = planned_passes(self.case, protocols=self.protocols)
        self.first: tuple[float, float] | None = None  # the passes and the time of the first report
        self.announced = False

    def on_progress(self, task: str, done: int, total: int) -> None:
        all_passes = sum(self.planned.values())
        if task in self.planned:
            self.shares[task] = max(self.shares.get(task, 0.0), done / max(total, 1))
        finished = sum(self.planned[name] * share for name, share in self.shares.items())
        is_training = task in {*TrainingTask}  # retraining comes last
        if task not in self.planned and (is_training or finished >= all_passes):
            self.runtime.on_progress(task, done, total)
            return
        self._estimate(finished, all_passes)
        self.runtime.on_progress(f"{task}: {done:,} of {total:,} texts", round(finished), round(all_passes))

    def _estimate(self, finished: float, all_passes: float) -> None:
        """Announce the time once, from the speed since the first report."""
        if self.announced:
            return
        now = monotonic()
        if self.first is None:
            self.first = finished, now
        passes, start = self.first
        if finished > passes and finished >= ANNOUNCED * all_passes:
            self.announced = True
            self._announce((now - start) / (finished - passes))

    def _announce(self, seconds_per_pass: float) -> None:
        """Print how long the audit takes, if it takes long, and what makes it shorter."""

        def time(case: AuditCase, texts: int | None = None) -> float:
            return seconds_per_pass * sum(planned_passes(case, texts, self.protocols).values())

        seconds = time(self.case)
        if self.draw is not None and self.draw.by_default:
            whole = time(self.case, self.draw.total)
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
            advice.append((f"--sample {fewer}", time(smaller)))
        if fewer := texts // FEWER:
            advice.append((f"--limit {fewer}", time(self.case, fewer)))
        faster = ", ".join(f"{option} {minutes(shorter)}" for option, shorter in advice)
        self.runtime.announce(f"this audit of {texts:,} texts takes {minutes(seconds)}{faster and f'; {faster}'}")


def minutes(seconds: float) -> str:
    """
    >>> minutes(20), minutes(80), minutes(400)
    ('less than a minute', 'about 1 minute', 'about 7 minutes')
    """
    number = round(seconds / 60)
    return "less than a minute" if seconds < 45 else f"about {number:,} minute{'s' * (number != 1)}"
