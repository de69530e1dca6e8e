"""Quality and cost of explainers, and the default by the rule: docs/methods/default-explainer.md."""

import csv
import io
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from steadygaze.results.intervals import bootstrap_mean
from studies.default_explainer.models import CLASSIFIER, SUBJECTS
from studies.default_explainer.run import CANDIDATES, MEASURES, NEEDED, RESAMPLES, UNSIGNED
from studies.tables import RECORDS, read_records


def subject_of(record: Mapping[str, Any]) -> tuple[str, str, str]:
    return record["loader"], record["network"], record["corpus"]


def by_subject(records: list[dict[str, Any]], split: str) -> dict[tuple[str, str, str], dict[str, dict[str, Any]]]:
    """Subject -> candidate -> record."""
    groups: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    for record in records:
        if record["split"] == split:
            groups.setdefault(subject_of(record), {})[record["candidate"]] = record
    return groups


def qualities(group: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Quality of each candidate on one subject."""
    means = {name: {m: float(np.mean(r[m])) for m in MEASURES if r.get(m)} for name, r in group.items()}
    floor, best = means["random"], dict[str, float]()
    for name, values in means.items():
        if name not in UNSIGNED:
            best = {m: max(best.get(m, -np.inf), value) for m, value in values.items()}
    return {
        name: float(np.mean([(value - floor[m]) / (best[m] - floor[m]) for m, value in values.items()]))
        for name, values in means.items()
    }


def above_random(group: Mapping[str, Mapping[str, Any]], name: str, measure: str) -> tuple[float, float, float]:
    """Mean difference from random words, with a 95 % bootstrap interval over texts."""
    difference = np.array(group[name][measure]) - np.array(group["random"][measure])
    return float(difference.mean()), *bootstrap_mean(difference.tolist(), resamples=RESAMPLES)


def loader_table(records: list[dict[str, Any]], split: str, loader: str) -> list[list[str]]:
    """Quality, measures above random and cost of each candidate, the mean over the models of a loader."""
    groups = {key: group for key, group in by_subject(records, split).items() if key[0] == loader}
    costs = {key: group for key, group in by_subject(records, "cost").items() if key[0] == loader}
    quality = {key: qualities(group) for key, group in groups.items()}
    lines = [["explainer", "quality", *MEASURES, "forward passes", "seconds"]]
    for name in CANDIDATES:
        present = [key for key in groups if name in groups[key]]
        if not present:
            continue
        rows = [
            [above_random(groups[key], name, m)[0] if groups[key][name].get(m) else np.nan for m in MEASURES]
            for key in present
        ]
        price = [(costs[key][name]["passes"], costs[key][name]["seconds"]) for key in present if key in costs]
        passes, seconds = np.mean(price, 0) if price else (np.nan, np.nan)
        mean_quality = np.mean([quality[key][name] for key in present])
        cells = [f"{value:+.3f}" for value in np.nanmean(rows, 0)]
        lines.append([name, f"{mean_quality:.2f}", *cells, f"{passes:.1f}", f"{seconds:.3f}"])
    return lines


def decision(records: list[dict[str, Any]], loader: str) -> str:
    """The default of a loader by the rule, on validation texts."""
    groups = {key: group for key, group in by_subject(records, "validation").items() if key[0] == loader}
    costs = by_subject(records, "cost")
    mean = {}
    for name in CANDIDATES:
        if name not in UNSIGNED and all(name in group for group in groups.values()):
            value = np.mean([qualities(group)[name] for group in groups.values()])
            mean[name] = value, np.mean([costs[key][name]["passes"] for key in groups])
    good = {name: price for name, (value, price) in mean.items() if value >= NEEDED}
    return min(good, key=lambda name: good[name]) if good else "none"


def attention_stays(records: list[dict[str, Any]]) -> bool:
    groups = {k: g for k, g in by_subject(records, "validation").items() if k[0] == CLASSIFIER and k[2] != "snli"}
    return all(
        above_random(g, "attention", m)[1] > 0 for g in groups.values() for m in ("comprehensiveness", "sufficiency")
    )


LOADERS = tuple(dict.fromkeys(subject.loader for subject in SUBJECTS))


def all_tables(records: list[dict[str, Any]]) -> str:
    """The table of each split and loader, as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for number, (split, loader) in enumerate(product(("validation", "test"), LOADERS)):
        heading, *rows = loader_table(records, split, loader)
        writer.writerows([["split", "model", *heading]] if number == 0 else [])
        writer.writerows([split, loader, *row] for row in rows)
    return out.getvalue()


def table(
    records: list[Path] = [RECORDS / "default_explainer.jsonl.gz"],  # noqa: B006
    *,
    as_csv: bool = False,
) -> str:
    """The decision of each loader, or all measures as CSV."""
    runs = [row for record in read_records(records) for row in record.get("rows", [record])]
    if as_csv:
        return all_tables(runs).rstrip("\n")
    lines = [f"default for {loader}, by the rule: {decision(runs, loader)}" for loader in LOADERS]
    return "\n".join([*lines, f"attention stays the default of a TextClassifier: {attention_stays(runs)}"])
