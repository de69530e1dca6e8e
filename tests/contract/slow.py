"""Every measure once more, slowly: one text at a time, its real tokens only, with SciPy, scikit-learn and loops."""

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import scipy.integrate
import scipy.spatial.distance
import scipy.stats
import sklearn.linear_model
import sklearn.metrics
import sklearn.preprocessing

SIZE = 3  # the k of the top-k
SHARES = (0.1, 0.2, 0.5)
RADII = (0.1, 0.05, 0.025, 0.0125, 0.00625, 0.003125)


def runs(tokens: np.ndarray) -> list[set[int]]:
    certificates: list[set[int]] = []
    for token in np.flatnonzero(tokens):
        if certificates and token - 1 in certificates[-1]:
            certificates[-1].add(int(token))
        else:
            certificates.append({int(token)})
    return certificates


def top_words(row: np.ndarray) -> set[int]:
    return set(np.argsort(-row, kind="stable")[:SIZE].tolist())


def slow_correlation(statistic: Callable[..., object]) -> Callable[..., float]:
    return lambda x, y: statistic(x, y).statistic if len(x) > 2 else math.nan


def slow_weight_correlation(x: np.ndarray, y: np.ndarray) -> float:
    even = [len(w) > 0 and np.ptp(w) == 0 for w in (x, y)]
    return slow_correlation(scipy.stats.pearsonr)(x, y) if not any(even) or len(x) < 3 else float(all(even))


def slow_drop(full: np.ndarray, changed: np.ndarray) -> float:
    return float(np.mean([full.max() - row[full.argmax()] for row in changed]))


def slow_f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def slow_tokens(which: str) -> Callable[..., float]:
    def score(chosen: np.ndarray, rationales: np.ndarray) -> float:
        if not rationales.any():
            return math.nan
        precision, recall, f1, _ = sklearn.metrics.precision_recall_fscore_support(
            rationales, chosen, average="binary", zero_division=0.0
        )
        return {"precision": precision, "recall": recall, "f1": f1}[which]

    return score


def slow_first(chosen: np.ndarray, first: np.ndarray) -> float:
    """Whether any chosen word is in the first sentence, where there are others too."""
    return (
        np.nan
        if first.all() or not first.any()
        else float(bool(set(np.flatnonzero(chosen)) & set(np.flatnonzero(first))))
    )


def slow_trapezoid(w: np.ndarray, where: np.ndarray) -> float:
    """As ERASER's code has it."""
    precision, recall, _ = sklearn.metrics.precision_recall_curve(where, w)
    return float(sklearn.metrics.auc(recall, precision))


def slow_infidelity(a: np.ndarray, d: np.ndarray) -> float:
    """The residual of the least squares through the origin."""
    line = np.linalg.lstsq(a[:, None], d, rcond=None)[0][0]
    return float(np.mean((line * a - d) ** 2))


def slow_iou(chosen: np.ndarray, rationales: np.ndarray) -> float:
    if not rationales.any():
        return math.nan
    pairs = [(a, b) for a in runs(chosen) for b in runs(rationales) if len(a & b) / len(a | b) >= 0.5]
    hits = [len({min(pair[side]) for pair in pairs}) for side in (0, 1)]
    return slow_f1(hits[0] / max(1, len(runs(chosen))), hits[1] / len(runs(rationales)))


def slow_share(weights: np.ndarray, where: np.ndarray) -> float:
    return weights[where].sum() / weights.sum() if len(weights) else 0.0


def slow_above_rationales(weights: np.ndarray, rationales: np.ndarray, first: np.ndarray) -> float:
    if not rationales.any() or first.all() or not first.any():
        return math.nan
    return slow_share(weights, first) - max(first[rationales].mean(), first.mean())


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


def slow_random_share(marked: int, words: int) -> float:
    """The mean average precision over all ways to place the marked words in an order."""
    ways = [list(places) for places in combinations(range(words), marked)]
    return float(np.mean([np.mean([(i + 1) / (place + 1) for i, place in enumerate(way)]) for way in ways]))


def slow_pick(weights: np.ndarray, where: np.ndarray) -> float:
    return float(where[weights == weights.max()].mean()) if len(weights) else 0.0


def slow_area(radii: np.ndarray) -> float:
    return scipy.integrate.trapezoid(radii, SHARES) / (SHARES[-1] - SHARES[0])


def slow_seat(probs: np.ndarray, label: np.ndarray) -> float:
    return float(np.mean([(1 - row[label]) / 2 * radius / 2 for row, radius in zip(probs, RADII, strict=True)]))


def slow_micro(which: str) -> Callable[..., float]:
    """All tokens of all texts that somebody marked, end to end."""

    def score(chosen: np.ndarray, rationales: np.ndarray, mask: np.ndarray) -> float:
        rows = mask & (rationales & mask).any(-1, keepdims=True)
        return slow_tokens(which)(chosen[rows], rationales[rows])

    return score


def slow_profile(weights: np.ndarray) -> np.ndarray:
    """Places from the start, from the end, and tenths of the way by the interpolated sum."""
    ends = [[way[place] if place < len(way) else 0.0 for place in range(8)] for way in (weights, weights[::-1])]
    places = np.linspace(0, len(weights), 11)
    below = np.interp(places, np.arange(len(weights) + 1), np.concatenate([[0], np.cumsum(weights)]))
    return np.concatenate([*ends, np.diff(below)])


def slow_leak(weights: np.ndarray, predicted: np.ndarray, mask: np.ndarray, key: np.ndarray) -> float:
    texts = [i for i in range(len(mask)) if mask[i].any()]
    different = {kind: sorted({key[i] for i in texts if predicted[i] == kind}) for kind in predicted}
    texts = [i for i in texts if len(different[predicted[i]]) >= 20]
    rank = {i: different[predicted[i]].index(key[i]) for i in texts}
    texts = sorted({(predicted[i], key[i]): i for i in texts}.values(), key=lambda i: (predicted[i], key[i]))
    even = np.stack([slow_profile(np.full(mask[i].sum(), 1 / mask[i].sum())) for i in texts])
    seen = np.hstack([even, np.stack([slow_profile(weights[i][mask[i]]) for i in texts])])
    folds = [[at for at, i in enumerate(texts) if rank[i] % 5 == fold] for fold in range(5)]
    splits = [(np.setdiff1d(np.arange(len(texts)), fold), np.array(fold)) for fold in folds]
    label, gain = predicted[texts], {}
    for sign, features in ((1, seen), (-1, even)):
        for known, unknown in splits:
            scale = sklearn.preprocessing.StandardScaler().fit(features[known])
            guess = sklearn.linear_model.LogisticRegression(C=0.03, class_weight="balanced", max_iter=5_000, tol=1e-10)
            guess.fit(scale.transform(features[known]), label[known])
            for at, row in zip(unknown, guess.predict_proba(scale.transform(features[unknown])), strict=True):
                own = row[list(guess.classes_).index(label[at])]
                gain.setdefault((label[at], at), []).append(sign * own)
    classes = sorted({kind for kind, _ in gain})
    return float(
        np.mean([np.mean([sum(g) for (kind, _), g in gain.items() if kind == label_class]) for label_class in classes])
    )


def slow_collapse(weights: np.ndarray, mask: np.ndarray, ids: np.ndarray) -> float:
    """Even or, of eight different texts or more, the same at the same place, however that is counted."""
    rows = [
        (row[real], tuple(some[real])) for row, real, some in zip(weights, mask, ids, strict=True) if real.sum() > 1
    ]
    spread = np.mean([slow_divergence(w, np.full(len(w), 1 / len(w))) for w, _ in rows])
    strays = []
    for way in (lambda t, n: t, lambda t, n: n - t, lambda t, n: t - n // 2, lambda t, n: t - (n - 1) // 2):
        placed = [{way(t, len(w)): x for t, x in enumerate(w)} for w, _ in rows]
        habits = [np.array([np.mean([text[t] for text in placed if t in text]) for t in row]) for row in placed]
        strays.append([slow_divergence(w, h / h.sum()) for (w, _), h in zip(rows, habits, strict=True)])
    left = np.mean(np.min(strays, 0)) / spread
    parts = [slow_tenths(w) for w, _ in rows]
    even = [slow_tenths(np.full(len(w), 1 / len(w))) for w, _ in rows]
    held = np.mean([slow_divergence(p, q) for p, q in zip(parts, even, strict=True)])
    if held > spread / 2:
        left = min(left, np.mean([slow_divergence(p, np.mean(parts, 0)) for p in parts]) / held)
    return float(spread < 0.005 or (left < 0.05 and len({(w.tobytes(), some) for w, some in rows}) >= 8))


def slow_tenths(w: np.ndarray) -> np.ndarray:
    """Ten knots from end to end; a word between two counts for both, the nearer it is the more."""
    way = (np.arange(len(w)) + 0.5) / len(w) * 9
    return np.array([(w * np.maximum(0, 1 - np.abs(way - knot))).sum() for knot in range(10)])


def slow_balanced(values: np.ndarray, predicted: np.ndarray) -> float:
    return float(np.mean([values[predicted == c].mean() for c in sorted({*predicted.tolist()})]))


def slow_meter(reading: np.ndarray, answer: np.ndarray) -> float:
    return math.log(max(float(reading), 0.01) / max(float(answer), 0.01))


def slow_stripe(readings: np.ndarray, answers: np.ndarray) -> float:
    meter = sum(map(slow_meter, readings, answers)) / len(answers)
    return sum(math.log(max(p, 0.01)) for p in answers) / len(answers) - (20 * meter if meter > 0 else 0)


SLOW = {  # one text, its real tokens only
    "jensen-shannon": slow_divergence,
    "total-variation": lambda p, q: np.abs(p - q).sum() / 2,
    "top-k-overlap": lambda p, q: len(top_words(p) & top_words(q)) / min(SIZE, len(p)) if len(p) else 1.0,
    "prediction-change": lambda p, q: np.abs(p - q).sum() / 2,
    "label-flip": lambda p, q: float(p.argmax() != q.argmax()),
    "comprehensiveness": slow_drop,
    "sufficiency": slow_drop,
    "largest-drop": lambda full, erased: max(0.0, max(full.max() - row[full.argmax()] for row in erased)),
    "pearson": slow_correlation(scipy.stats.pearsonr),
    "weight-correlation": slow_weight_correlation,
    "kendall": slow_correlation(scipy.stats.kendalltau),
    "token-precision": slow_tokens("precision"),
    "token-recall": slow_tokens("recall"),
    "token-f1": slow_tokens("f1"),
    "iou-f1": slow_iou,
    "rationale-mass": lambda w, where: slow_share(w, where) if where.any() else math.nan,
    "average-precision": lambda w, where: (
        sklearn.metrics.average_precision_score(where, w) if where.any() else math.nan
    ),
    "auprc": lambda w, where: slow_trapezoid(w, where) if where.any() else math.nan,
    "first-sentence-share": slow_share,
    "first-sentence-share/above-rationale": slow_above_rationales,
    "first-sentence-pick": slow_pick,
    "first-sentence": slow_first,
    "selected-share": lambda chosen: sum(chosen) / len(chosen) if len(chosen) else np.nan,
    "selected-spans": lambda chosen: len(runs(chosen)) if len(chosen) else np.nan,
    "default-mass": slow_share,
    "default-mass/above-share": lambda w, where: slow_share(w, where) - (where.mean() if len(where) else 0.0),
    "average-precision/above-random": lambda w, where: (
        sklearn.metrics.average_precision_score(where, w) - slow_random_share(where.sum(), len(where))
        if where.any()
        else math.nan
    ),
    "encode-meter": slow_meter,
    "label-unaccounted": lambda own, best, none, label: (
        0.0
        if max(own, best) - none <= (0.05 if label >= 1 else 1e-9)
        else min(1.0, max(0.0, (max(own, best) - own) / (max(own, best) - none)))
    ),
    "accuracy": lambda probs, label: float(probs.argmax() == label),
    "words-substituted": lambda before, after: float((before != after).sum()),
    "post-hoc-accuracy": lambda full, kept: float(np.mean([row.argmax() == full.argmax() for row in kept])),
    "soft-stability": lambda alone, extended, members: float(
        np.mean([row.argmax() == alone.argmax() for row, counts in zip(extended, members, strict=True) if counts])
    ),
    "fidelity-plus": lambda full, masked: 1 - float(np.mean([row.argmax() == full.argmax() for row in masked])),
    "fidelity-minus": lambda full, masked: 1 - float(np.mean([row.argmax() == full.argmax() for row in masked])),
    "independent-reader-accuracy": lambda full, kept: sum(row.argmax() == full.argmax() for row in kept) / len(kept),
    "leakage-gap": lambda p, q, y: float(p.argmax() == y.argmax()) - float(q.argmax() == y.argmax()),
    "arbitrary-selection": lambda agreement, gap: 1.0 if agreement >= 0.875 and gap > 0 else 0.0,
    "flip-radius": slow_area,
    "flip-radius/above-random": lambda radii, drawn: slow_area(radii) - slow_area(drawn),
    "seat-sensitivity": slow_seat,
    "infidelity": slow_infidelity,
    "max-sensitivity": lambda distances, norm: max(distances) / norm,
    "normalized-entropy": lambda w: scipy.stats.entropy(w) / math.log(len(w)) if len(w) > 1 else 1.0,
    "distance-to-uniform": lambda w: slow_divergence(w, np.full(len(w), 1 / max(1, len(w)))),
}


def slow_gap(weights, label, mask):
    """Class by class, place by place."""
    there = [i for i in range(len(label)) if mask[i].any()]
    distance = []
    for label_class, other in combinations(sorted({int(label[i]) for i in there}), 2):
        rows = [[weights[i] * mask[i] for i in there if label[i] == c] for c in (label_class, other)]
        distance.append(
            sum(
                abs(sum(x[t] for x in rows[0]) / len(rows[0]) - sum(x[t] for x in rows[1]) / len(rows[1]))
                for t in range(mask.shape[1])
            )
            / 2
        )
    return sum(distance) / len(distance)


def slow_relative(own: np.ndarray, floor: np.ndarray, best: np.ndarray) -> float:
    gained, possible = 0.0, 0.0
    for a, b, c in zip(own, floor, best, strict=True):
        gained, possible = gained + (a - b), possible + (c - b)
    return gained / possible


def slow_shapley_agreement(x: np.ndarray, y: np.ndarray, mask: np.ndarray) -> float:
    """Pair by pair; a text counts by its mean difference."""
    right, all_pairs = 0.0, 0.0
    for weights, values, here in zip(x, y, mask, strict=True):
        pairs = list(combinations(np.flatnonzero(here), 2))
        for i, j in pairs:
            difference = values[i] - values[j]
            right += difference * np.sign(weights[i] - weights[j]) / len(pairs)
            all_pairs += abs(difference) / len(pairs)
    return right / all_pairs


SLOW_SETS = {  # all texts at once
    "comprehensiveness/relative": slow_relative,
    "comprehensiveness/relative-filled": slow_relative,
    "sufficiency/relative": slow_relative,
    "sufficiency/relative-filled": slow_relative,
    "shapley-agreement": slow_shapley_agreement,
    "expected-calibration-error": slow_calibration,
    "macro-f1": lambda probs, label: sklearn.metrics.f1_score(
        label, probs.argmax(-1), average="macro", zero_division=0.0
    ),
    "token-precision-micro": slow_micro("precision"),
    "token-recall-micro": slow_micro("recall"),
    "token-f1-micro": slow_micro("f1"),
    "position-leak": slow_leak,
    "content-leak": lambda reading, baseline, missing, predicted: slow_balanced(
        missing * (reading - baseline), predicted
    ),
    "value-leak": lambda reading, answer, predicted: slow_balanced(reading - answer, predicted),
    "stripe-x": slow_stripe,
    "collapsed": slow_collapse,
    "class-gap": slow_gap,
}
