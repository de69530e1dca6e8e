"""The points of the report's pictures: a sample of what was found, text by text or word by word.

What was asked, what was found text by text, and the Report that is made of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import torch

from steadygaze.audit.audit_case import AuditCase, Rows, saliency_divergence, silent
from steadygaze.audit.audit_config import ProbeConfig
from steadygaze.audit.finding import Finding, texts_without_selection
from steadygaze.audit.largest_shifts import largest_shifts
from steadygaze.audit.measures.measure import PROBES
from steadygaze.audit.measures.registry import MEASURES
from steadygaze.audit.prepare_case import PreparedCase
from steadygaze.audit.probes.observation import gradient
from steadygaze.audit.protocols.seed_consistency import SEEDS, seed_saliencies
from steadygaze.audit.verdict_rules import verdicts
from steadygaze.core import __version__
from steadygaze.core.maths.masked import normalize
from steadygaze.data.token_alignment import coverage
from steadygaze.results.formatting import count_text
from steadygaze.results.leakage_warnings import PREDICTOR, READER, UNREAD, by_measure, has_leakage, leakage_sentence
from steadygaze.results.report import Report
from steadygaze.results.row import MeasureKey, Row, mean_row
from steadygaze.results.verdict import Fact

MOST = 1000
"""Points of a picture; of a probe 200."""
CURVES = {"comprehensiveness": "erased", "sufficiency": "kept"}
Points = Sequence[Mapping[str, Any]]


def plot_points(case: AuditCase, explainer: str, found: Sequence[Finding]) -> dict[str, Points]:
    """Those that there is something to see in."""
    drawn = {
        "moves": _moves(case, explainer, found),
        "seeds": _seeds(case, explainer, found),
        "aopc": _aopc(found),
        "gradient": _gradient(case, explainer),
    }
    return {name: points for name, points in drawn.items() if points}


def _moves(case: AuditCase, explainer: str, found: Sequence[Finding]) -> Points:
    """How far each text's saliency moved under each probe."""
    points, known = [], case.probes
    for finding in found:
        key = finding.key
        mine = key.measure == "jensen-shannon" and key.probe in known and finding.explainer == explainer
        if mine and finding.values is not None:
            values = finding.values[finding.values.isfinite()][: MOST // 5].tolist()
            points += [{"probe": key.probe, "distance": round(value, 5)} for value in values]
    return points


def _seeds(case: AuditCase, explainer: str, found: Sequence[Finding]) -> Points:
    """How far two models trained alike differ on a text, and how heavy its heaviest word is in the first of them."""
    if not any(one.key == MeasureKey("jensen-shannon", SEEDS) and one.values is not None for one in found):
        return []
    points, asked = [], _told(case, explainer, case.rows(explainer))
    for rows, batch in case.batches(asked[:: max(1, len(asked) // MOST)]):
        said = seed_saliencies(case, explainer, rows, batch)
        for one, other in combinations(said, 2):
            pairs = (
                torch.stack([normalize(one, batch.mask).amax(-1), saliency_divergence(one, other, batch.mask)], -1)
                .cpu()
                .tolist()
            )
            points += [{"max": round(high, 4), "distance": round(far, 5)} for high, far in pairs]
    return points[:: max(1, len(points) // MOST)]


def _told(case: AuditCase, explainer: str, rows: Rows) -> Rows:
    """Those of which it says something."""
    told: Rows = rows[~texts_without_selection(case, explainer).numpy()[rows]]
    return told


def _aopc(found: Sequence[Finding]) -> Points:
    """What is lost at each size, by each explanation."""
    lost: dict[tuple[str, str], dict[str, float]] = {}
    for finding in found:
        name, size = finding.key.measure, finding.key.probe
        if name in CURVES and size.endswith("%") and finding.values is not None and finding.explainer:
            values = finding.values[finding.values.isfinite()]
            lost.setdefault((finding.explainer, size), {})[CURVES[name]] = round(float(values.mean()), 5)
    return [{"explainer": of, "share": int(size[:-1]) / 100, **both} for (of, size), both in lost.items()]


def _gradient(case: AuditCase, explainer: str) -> Points:
    """Every word of some texts: its share of the saliency, and of the gradient."""
    if explainer == "gradient" or "embeddings" not in case.model.capabilities or "selection" in case.model.capabilities:
        return []  # of a model that selects the gradient is 0 elsewhere by construction
    points: list[Mapping[str, Any]] = []
    for rows, batch in case.batches(_told(case, explainer, case.sample)):
        own = normalize(case.gather_rows(case.saliency(explainer), rows, batch), batch.mask)
        slope = normalize(
            gradient(case.model, batch, detach_attention="extension_points" in case.model.capabilities), batch.mask
        )
        pairs = torch.stack([own, slope], -1)[batch.mask].cpu().tolist()
        points += [{"attention": round(a, 4), "gradient": round(g, 4)} for a, g in pairs]
    return points[:: max(1, len(points) // MOST)]


TITLE = "How far may this explanation be believed?"
MAPPED = 5
"""Labels listed with their classes in a note."""
Settings = Mapping[str, str | int | float]


@dataclass(frozen=True)
class AuditRequest:
    """What an audit is to do beyond reading the texts."""

    explainers: Sequence[Any] = ()
    """By name, or your own; the verdicts are about the first.  None: the first of `choose.ORDER` the model has."""
    plan: ProbeConfig = field(default_factory=ProbeConfig)
    settings: Settings = field(default_factory=dict)
    """What every number depends on: corpus, split …"""
    synonyms: Any = None
    """A table of synonyms: a file or a mapping.  None: no word is substituted."""
    watch: Callable[[str, int, int], None] = silent


@dataclass(frozen=True)
class AuditFindings:
    """What was found, text by text."""

    prepared: PreparedCase
    findings_by_heading: Mapping[str, Sequence[Finding]]
    """Heading -> what was found under it."""
    request: AuditRequest
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> list[Finding]:
        return [finding for several in self.findings_by_heading.values() for finding in several]

    @property
    def explainer(self) -> str:
        """The explanation that the verdicts are about."""
        return next(iter(self.prepared.case.explainers))

    def report(self) -> Report:
        return build_report(self)


def build_report(examined: "AuditFindings") -> Report:
    here, found = examined.prepared, examined.findings
    subject, main = here.adapter, examined.explainer
    read = coverage(subject.tokens, here.placed.ragged)
    known = {
        **examined.request.settings,
        "model": subject.fingerprint[:12] or subject.name,
        "seed": here.case.plan.seed,
    }
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
        **{name: str(value) for name, value in examined.request.settings.items()},
        "steadygaze": __version__,
    }
    return Report(
        TITLE,
        rows,
        verdicts(rows, main),
        largest_shifts(here, main, found),
        plot_points(here.case, main, found),
        facts=facts,
        notes=(
            *_constant(here),
            *_below_baseline(here),
            *_leakage(rows, here.case.explainers),
            *(f"{sentence}." for sentence in read.warnings()),
            *examined.notes,
        ),
        measures={name: Fact(m.sentence, *m.bounds, m.direction, m.citation) for name, m in MEASURES.items()},
        probes=PROBES,
        questions={
            one.measure: heading for heading, several in examined.findings_by_heading.items() for one in several
        },
    )


def _constant(here: PreparedCase) -> tuple[str, ...]:
    """What must be known before anything else."""
    given = set(here.case.probs.argmax(-1).tolist())
    if len(given) > 1 or len(here.case) == 1:
        return ()
    label = here.adapter.classes[given.pop()]
    return (f"The model gives every text the same label, {label!r:.80}: there is little that its words could explain.",)


def _below_baseline(here: PreparedCase) -> tuple[str, ...]:
    """A model worse than the constant prediction of the commonest label: often its labels are mapped wrongly."""
    codes = here.case.data.label
    if codes is None:
        return ()
    accuracy = float((here.case.probs.argmax(-1).numpy() == codes).mean())
    baseline = np.bincount(codes).max() / len(codes)
    if accuracy >= baseline - 1.96 * (baseline * (1 - baseline) / len(codes)) ** 0.5:
        return ()
    pairs = sorted({(str(one.label), code) for one, code in zip(here.examples, codes.tolist(), strict=True)})
    names = [str(name)[:40] for name in here.adapter.classes]
    if all(label == str(here.adapter.classes[code]) for label, code in pairs):
        return (f"Accuracy {accuracy:.3f} is below {baseline:.3f}, the share of the commonest label.",)
    mapping = ", ".join(f"label {label:.40} is class {names[code]!r}" for label, code in pairs[:MAPPED])
    return (
        f"Accuracy {accuracy:.3f} is below {baseline:.3f}, the share of the commonest label: labels may be mapped "
        f"wrongly; check --classes ({mapping}{' …' if len(pairs) > MAPPED else ''}).",
    )


def _leakage(rows: Sequence[Row], explainers: Iterable[str]) -> Iterator[str]:
    """A warning for each explanation whose selection leaks the label, or was not tested for it."""
    for name in explainers:
        found = by_measure([row for row in rows if row.n and row.settings.get("explainer") == name])
        if has_leakage(found):
            own = name == "rationale"
            partner, target = (PREDICTOR, "the label") if own else (f"{name}'s own approximator", "the predicted class")
            yield leakage_sentence(found, partner, target=target)
        if name == "rationale" and READER not in found:
            yield UNREAD


def _row(finding: Finding, known: Settings) -> Row:
    settings = {**known, **finding.settings, **({"explainer": finding.explainer} if finding.explainer else {})}
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
        f"of {count_text(len(values), 'text')}: the other {left:,} were not asked, or it makes no sense of them"
        if left
        else ""
    )
    return mean_row(finding.measure, values.tolist(), settings, note=note)
