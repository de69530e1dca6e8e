"""The points of the plots of a report: shifts, differences between seeds, erasure curves, gradients."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import torch

from steadygaze.core.maths.distributions import normalize
from steadygaze.properties.audit_case import AuditCase, Finding, Rows, texts_without_selection
from steadygaze.properties.measures.stability_measures import saliency_divergence
from steadygaze.properties.protocols.stability import SEEDS, seed_saliencies
from steadygaze.results.row import MeasureKey

MAX_POINTS = 1000
"""Points of a plot; a probe has at most a fifth of them."""
CURVES = {"comprehensiveness": "erased", "sufficiency": "kept"}
Points = Sequence[Mapping[str, Any]]


def plot_points(case: AuditCase, explainer: str, findings: Sequence[Finding]) -> dict[str, Points]:
    """A sample of the values for each plot; plots without points are left out."""
    plots = {
        "moves": _shifts(case, explainer, findings),
        "seeds": _seeds(case, explainer, findings),
        "aopc": _aopc(findings),
        "gradient": _gradient(case, explainer),
    }
    return {name: points for name, points in plots.items() if points}


def _shifts(case: AuditCase, explainer: str, findings: Sequence[Finding]) -> Points:
    """The shift of each text under each probe."""
    points = []
    for finding in findings:
        measure, probe = finding.key.measure, finding.key.probe
        is_shift = measure == "jensen-shannon" and probe in case.probes and finding.explainer == explainer
        if is_shift and finding.values is not None:
            values = finding.values[finding.values.isfinite()][: MAX_POINTS // 5].tolist()
            points += [{"probe": probe, "distance": round(value, 5)} for value in values]
    return points


def _seeds(case: AuditCase, explainer: str, findings: Sequence[Finding]) -> Points:
    """For every two seeds and each text: their divergence, and the largest weight of the first."""
    key = MeasureKey("jensen-shannon", SEEDS)
    if not any(finding.key == key and finding.values is not None for finding in findings):
        return []
    points, explained = [], _explained(case, explainer, case.rows(explainer))
    for rows, batch in case.batches(explained[:: max(1, len(explained) // MAX_POINTS)]):
        for first, second in combinations(seed_saliencies(case, explainer, rows, batch), 2):
            largest, divergence = normalize(first, batch.mask).amax(-1), saliency_divergence(first, second, batch.mask)
            pairs = torch.stack([largest, divergence], -1).cpu().tolist()
            points += [{"max": round(high, 4), "distance": round(distance, 5)} for high, distance in pairs]
    return points[:: max(1, len(points) // MAX_POINTS)]


def _explained(case: AuditCase, explainer: str, rows: Rows) -> Rows:
    """The texts whose selection is not empty."""
    explained: Rows = rows[~texts_without_selection(case, explainer).numpy()[rows]]
    return explained


def _aopc(findings: Sequence[Finding]) -> Points:
    """The mean probability drop at each size, by explainer."""
    drops: dict[tuple[str, str], dict[str, float]] = {}
    for finding in findings:
        name, size = finding.key.measure, finding.key.probe
        if name in CURVES and size.endswith("%") and finding.values is not None and finding.explainer:
            values = finding.values[finding.values.isfinite()]
            drops.setdefault((finding.explainer, size), {})[CURVES[name]] = round(float(values.mean()), 5)
    return [{"explainer": name, "share": int(size[:-1]) / 100, **drop} for (name, size), drop in drops.items()]


def _gradient(case: AuditCase, explainer: str) -> Points:
    """The normalized saliency and gradient of each word in the sample."""
    if explainer == "gradient" or "embeddings" not in case.model.capabilities or "selection" in case.model.capabilities:
        return []  # the gradient of words outside a selection is 0 by construction
    points: list[Mapping[str, Any]] = []
    sample = _explained(case, explainer, case.sample)
    gradients = case.gradient("extension_points" in case.model.capabilities, sample)
    for rows, batch in case.batches(sample):
        weights = normalize(case.gather_rows(case.saliency(explainer), rows, batch), batch.mask)
        slope = normalize(case.gather_rows(gradients, rows, batch), batch.mask)
        pairs = torch.stack([weights, slope], -1)[batch.mask].cpu().tolist()
        points += [{"attention": round(a, 4), "gradient": round(g, 4)} for a, g in pairs]
    return points[:: max(1, len(points) // MAX_POINTS)]
