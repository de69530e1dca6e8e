"""The points of the report's pictures: a sample of what was found, text by text or word by word."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import torch

from steadygaze.audit.case import Case, Rows, apart
from steadygaze.audit.finding import Finding
from steadygaze.audit.probe.gradient import gradient
from steadygaze.audit.protocol.retrained import SEEDS, explained
from steadygaze.audit.protocol.selecting import nothing
from steadygaze.maths.masked import shares

MOST = 1000
"""Points of a picture; of a probe 200."""
CURVES = {"comprehensiveness": "erased", "sufficiency": "kept"}
Points = Sequence[Mapping[str, Any]]


def pictures(case: Case, explainer: str, found: Sequence[Finding]) -> dict[str, Points]:
    """Those that there is something to see in."""
    drawn = {
        "moves": _moves(case, explainer, found),
        "seeds": _seeds(case, explainer, found),
        "aopc": _aopc(found),
        "gradient": _gradient(case, explainer),
    }
    return {name: points for name, points in drawn.items() if points}


def _moves(case: Case, explainer: str, found: Sequence[Finding]) -> Points:
    """How far each text's saliency moved under each probe."""
    points, known = [], case.probes
    for finding in found:
        name, _, probe = finding.measure.partition("/")
        mine = name == "jensen-shannon" and probe in known and finding.explainer == explainer
        if mine and finding.values is not None:
            values = finding.values[finding.values.isfinite()][: MOST // 5].tolist()
            points += [{"probe": probe, "distance": round(value, 5)} for value in values]
    return points


def _seeds(case: Case, explainer: str, found: Sequence[Finding]) -> Points:
    """How far two models trained alike differ on a text, and how heavy its heaviest word is in the first of them."""
    if not any(one.measure == f"jensen-shannon{SEEDS}" and one.values is not None for one in found):
        return []
    points, asked = [], _told(case, explainer, case.rows(explainer))
    for rows, batch in case.batches(asked[:: max(1, len(asked) // MOST)]):
        said = explained(case, explainer, rows, batch)
        for one, other in combinations(said, 2):
            pairs = torch.stack([shares(one, batch.mask).amax(-1), apart(one, other, batch.mask)], -1).cpu().tolist()
            points += [{"max": round(high, 4), "distance": round(far, 5)} for high, far in pairs]
    return points[:: max(1, len(points) // MOST)]


def _told(case: Case, explainer: str, rows: Rows) -> Rows:
    """Those of which it says something."""
    told: Rows = rows[~nothing(case, explainer).numpy()[rows]]
    return told


def _aopc(found: Sequence[Finding]) -> Points:
    """What is lost at each size, by each explanation."""
    lost: dict[tuple[str, str], dict[str, float]] = {}
    for finding in found:
        name, _, size = finding.measure.partition("/")
        if name in CURVES and size.endswith("%") and finding.values is not None and finding.explainer:
            values = finding.values[finding.values.isfinite()]
            lost.setdefault((finding.explainer, size), {})[CURVES[name]] = round(float(values.mean()), 5)
    return [{"explainer": of, "share": int(size[:-1]) / 100, **both} for (of, size), both in lost.items()]


def _gradient(case: Case, explainer: str) -> Points:
    """Every word of some texts: its share of the saliency, and of the gradient."""
    if explainer == "gradient" or "vectors" not in case.model.abilities or "selection" in case.model.abilities:
        return []  # of a model that selects the gradient is 0 elsewhere by construction
    points: list[Mapping[str, Any]] = []
    for rows, batch in case.batches(_told(case, explainer, case.sample)):
        own = shares(case.of(case.saliency(explainer), rows, batch), batch.mask)
        slope = shares(gradient(case.model, batch, detach_attention="seams" in case.model.abilities), batch.mask)
        pairs = torch.stack([own, slope], -1)[batch.mask].cpu().tolist()
        points += [{"attention": round(a, 4), "gradient": round(g, 4)} for a, g in pairs]
    return points[:: max(1, len(points) // MOST)]
