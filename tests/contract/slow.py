"""Every measure once more, slowly: one text at a time, its real tokens only, with SciPy, scikit-learn and loops."""

import math
from collections.abc import Callable

import numpy as np
import scipy.spatial.distance
import scipy.stats
import sklearn.metrics

SIZE = 3  # the k of the top-k


def runs(tokens: np.ndarray) -> list[set[int]]:
    found: list[set[int]] = []
    for token in np.flatnonzero(tokens):
        if found and token - 1 in found[-1]:
            found[-1].add(int(token))
        else:
            found.append({int(token)})
    return found


def heaviest(row: np.ndarray) -> set[int]:
    return set(np.argsort(-row, kind="stable")[:SIZE].tolist())


def slow_correlation(statistic: Callable[..., object]) -> Callable[..., float]:
    return lambda x, y: statistic(x, y).statistic if len(x) > 2 else math.nan


def slow_drop(full: np.ndarray, changed: np.ndarray) -> float:
    return float(np.mean([full.max() - row[full.argmax()] for row in changed]))


def slow_f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def slow_tokens(which: str) -> Callable[..., float]:
    def score(chosen: np.ndarray, evidence: np.ndarray) -> float:
        if not evidence.any():
            return math.nan
        precision, recall, f1, _ = sklearn.metrics.precision_recall_fscore_support(
            evidence, chosen, average="binary", zero_division=0.0
        )
        return {"precision": precision, "recall": recall, "f1": f1}[which]

    return score


def slow_iou(chosen: np.ndarray, evidence: np.ndarray) -> float:
    if not evidence.any():
        return math.nan
    pairs = [(a, b) for a in runs(chosen) for b in runs(evidence) if len(a & b) / len(a | b) >= 0.5]
    hits = [len({min(pair[side]) for pair in pairs}) for side in (0, 1)]
    return slow_f1(hits[0] / max(1, len(runs(chosen))), hits[1] / len(runs(evidence)))


def slow_share(weights: np.ndarray, where: np.ndarray) -> float:
    return weights[where].sum() / weights.sum() if len(weights) else 0.0


def slow_calibration(probs: np.ndarray, label: np.ndarray) -> float:
    total = 0.0
    for low in range(15):
        inside = [i for i in range(len(probs)) if low / 15 < probs[i].max() <= (low + 1) / 15]
        if inside:
            right = np.mean([probs[i].argmax() == label[i] for i in inside])
            total += len(inside) / len(probs) * abs(right - np.mean([probs[i].max() for i in inside]))
    return total


def slow_divergence(p: np.ndarray, q: np.ndarray) -> float:
    return scipy.spatial.distance.jensenshannon(p, q) ** 2 if len(p) > 1 else 0.0


SLOW = {  # one text, its real tokens only
    "jensen-shannon": slow_divergence,
    "total-variation": lambda p, q: np.abs(p - q).sum() / 2,
    "top-k-overlap": lambda p, q: len(heaviest(p) & heaviest(q)) / min(SIZE, len(p)) if len(p) else 1.0,
    "prediction-change": lambda p, q: np.abs(p - q).sum() / 2,
    "flipped": lambda p, q: float(p.argmax() != q.argmax()),
    "comprehensiveness": slow_drop,
    "sufficiency": slow_drop,
    "pearson": slow_correlation(scipy.stats.pearsonr),
    "kendall": slow_correlation(scipy.stats.kendalltau),
    "token-precision": slow_tokens("precision"),
    "token-recall": slow_tokens("recall"),
    "token-f1": slow_tokens("f1"),
    "iou-f1": slow_iou,
    "evidence-mass": lambda w, where: slow_share(w, where) if where.any() else math.nan,
    "auprc": lambda w, where: sklearn.metrics.average_precision_score(where, w) if where.any() else math.nan,
    "first-sentence-share": slow_share,
    "evenness": lambda w: scipy.stats.entropy(w) / math.log(len(w)) if len(w) > 1 else 1.0,
    "from-uniform": lambda w: slow_divergence(w, np.full(len(w), 1 / max(1, len(w)))),
    "expected-calibration-error": slow_calibration,
}
