"""What was asked, what was found text by text, and the Report that is made of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steadygaze import __version__
from steadygaze.audit.case import Plan, silent
from steadygaze.audit.catalogue import MEASURES
from steadygaze.audit.finding import Finding
from steadygaze.audit.names import PROBES
from steadygaze.audit.pictures import pictures
from steadygaze.audit.prepare import Prepared
from steadygaze.audit.shifts import shifts
from steadygaze.audit.verdict import verdicts
from steadygaze.record import Row
from steadygaze.report.interval import mean_row
from steadygaze.report.report import Fact, Report
from steadygaze.report.warned import PREDICTOR, READER, UNREAD, by_measure, leakage, leaks
from steadygaze.report.words import counted
from steadygaze.tokens.coverage import coverage

TITLE = "How far may this explanation be believed?"
MAPPED = 5
"""Labels listed with their classes in a note."""
Settings = Mapping[str, str | int | float]


@dataclass(frozen=True)
class Asked:
    """What an audit is to do beyond reading the texts."""

    explainers: Sequence[Any] = ()
    """By name, or your own; the verdicts are about the first.  None: the first of `choose.ORDER` the model has."""
    plan: Plan = field(default_factory=Plan)
    settings: Settings = field(default_factory=dict)
    """What every number depends on: corpus, split …"""
    synonyms: Any = None
    """A table of synonyms: a file or a mapping.  None: no word is substituted."""
    watch: Callable[[str, int, int], None] = silent


@dataclass(frozen=True)
class Examined:
    """What was found, text by text."""

    here: Prepared
    found: Mapping[str, Sequence[Finding]]
    """Heading -> what was found under it."""
    asked: Asked
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> list[Finding]:
        return [finding for several in self.found.values() for finding in several]

    @property
    def explainer(self) -> str:
        """The explanation that the verdicts are about."""
        return next(iter(self.here.case.explainers))

    def report(self) -> Report:
        return reported(self)


def reported(examined: "Examined") -> Report:
    here, found = examined.here, examined.findings
    subject, main = here.subject, examined.explainer
    read = coverage(subject.tokens, here.placed.ragged)
    known = {**examined.asked.settings, "model": subject.fingerprint[:12] or subject.name, "seed": here.case.plan.seed}
    looks = {"attention": subject.facts["attention"]} if "attention" in subject.facts else {}
    rows = tuple(
        _row(finding, {**known, **(looks if finding.explainer == "attention" else {}), "v": __version__})
        for finding in found
    )
    facts = {
        "model": f"{subject.name}, {subject.kind}",
        **subject.facts,
        **(read.facts if subject.fingerprint else {}),
        "explanation": main,
        "texts": f"{len(here.examples):,}",
        **{name: str(value) for name, value in examined.asked.settings.items()},
        "steadygaze": __version__,
    }
    return Report(
        TITLE,
        rows,
        verdicts(rows, main),
        shifts(here, main, found),
        pictures(here.case, main, found),
        facts=facts,
        notes=(
            *_constant(here),
            *_below_baseline(here),
            *_leakage(rows, here.case.explainers),
            *(f"{sentence}." for sentence in read.warnings()),
            *examined.notes,
        ),
        meanings={name: Fact(m.about, *m.bounds, m.better, m.cite) for name, m in MEASURES.items()},
        probes=PROBES,
        questions={one.measure: heading for heading, several in examined.found.items() for one in several},
    )


def _constant(here: Prepared) -> tuple[str, ...]:
    """What must be known before anything else."""
    given = set(here.case.probs.argmax(-1).tolist())
    if len(given) > 1 or len(here.case) == 1:
        return ()
    label = here.subject.classes[given.pop()]
    return (f"The model gives every text the same label, {label!r:.80}: there is little that its words could explain.",)


def _below_baseline(here: Prepared) -> tuple[str, ...]:
    """A model worse than the constant prediction of the commonest label: often its labels are mapped wrongly."""
    codes = here.case.data.label
    if codes is None:
        return ()
    accuracy = float((here.case.probs.argmax(-1).numpy() == codes).mean())
    baseline = np.bincount(codes).max() / len(codes)
    if accuracy >= baseline - 1.96 * (baseline * (1 - baseline) / len(codes)) ** 0.5:
        return ()
    pairs = sorted({(str(one.label), code) for one, code in zip(here.examples, codes.tolist(), strict=True)})
    names = [str(name)[:40] for name in here.subject.classes]
    if all(label == str(here.subject.classes[code]) for label, code in pairs):
        return (f"Accuracy {accuracy:.3f} is below {baseline:.3f}, the share of the commonest label.",)
    mapping = ", ".join(f"label {label:.40} is class {names[code]!r}" for label, code in pairs[:MAPPED])
    return (
        f"Accuracy {accuracy:.3f} is below {baseline:.3f}, the share of the commonest label: labels may be mapped "
        f"wrongly; check --classes ({mapping}{' …' if len(pairs) > MAPPED else ''}).",
    )


def _leakage(rows: Sequence[Row], explainers: Iterable[str]) -> Iterator[str]:
    """A warning for each explanation whose selection leaks the label, or was not tested for it."""
    for name in explainers:
        found = by_measure([row for row in rows if row.n and row.settings.get("explain") == name])
        if leaks(found):
            own = name == "rationale"
            partner, target = (PREDICTOR, "the label") if own else (f"{name}'s own approximator", "the predicted class")
            yield leakage(found, partner, target=target)
        if name == "rationale" and READER not in found:
            yield UNREAD


def _row(finding: Finding, known: Settings) -> Row:
    settings = {**known, **finding.settings, **({"explain": finding.explainer} if finding.explainer else {})}
    if finding.absent:
        return Row(finding.measure, float("nan"), 0, None, settings, f"not applicable, because {finding.absent}")
    if finding.value is not None:
        n = int(settings.pop("n", finding.n))
        return Row(finding.measure, finding.value, n, finding.interval, settings, finding.note)
    assert finding.values is not None
    values = finding.values[finding.values.isfinite()]
    if not len(values):
        why = f"not applicable, because it makes sense of no text{finding.note and f' ({finding.note})'}"
        return Row(finding.measure, float("nan"), 0, None, settings, why)
    left = len(finding.values) - len(values)
    note = finding.note or (
        f"of {counted(len(values), 'text')}: the other {left:,} were not asked, or it makes no sense of them"
        if left
        else ""
    )
    return mean_row(finding.measure, values.tolist(), settings, note=note)
