"""Precision of substitutions before and after verification, agreement of the ratings, and coverage.

Records of one line each: `pair` (a rated substitution of half 1), `choice` (one of half 0, with the cosines that the
threshold was chosen from) and `coverage` (texts of a corpus by their number of substitutable words).
"""

from collections.abc import Sequence
from typing import Any

from steadygaze.results.intervals import wilson_interval
from studies.numbers import Number, Origin
from studies.tables import RECORDS, read_records
from studies.verified_substitutions.plan import CORPORA, SOURCES

FILE = RECORDS / "verified_substitutions.jsonl"
RUN = "python -m studies run verified_substitutions --tables TABLES --wordnet WORDNET --out OUT"
COMMIT = "fe0a7ca"
DRAWN = Origin(COMMIT, RUN)
THRESHOLD = 0.85
Records = list[dict[str, Any]]


def keeps_meaning(record: dict[str, Any]) -> bool:
    """Whether both ratings are 1."""
    return bool(record["a"] and record["b"])


def kappa(first: Sequence[int], second: Sequence[int]) -> float:
    """Cohen's kappa of two raters with the ratings 0 and 1.

    >>> kappa([1, 1, 0, 0], [1, 0, 0, 0])  # 3 of 4 agree; by chance 1/2 · 1/4 + 1/2 · 3/4
    0.5
    """
    n = len(first)
    agreement = sum(a == b for a, b in zip(first, second, strict=True)) / n
    p, q = sum(first) / n, sum(second) / n
    chance = p * q + (1 - p) * (1 - q)
    return (agreement - chance) / (1 - chance)


def area(records: Records, score: str) -> float:
    """Probability that a substitution that keeps the meaning has the higher score; ties count half."""
    good = [record[score] for record in records if keeps_meaning(record)]
    bad = [record[score] for record in records if not keeps_meaning(record)]
    wins = float(sum((a > b) + (a == b) / 2 for a in good for b in bad))
    return wins / (len(good) * len(bad))


def numbers() -> list[Number]:
    records = read_records([FILE])
    by_kind = {kind: [r for r in records if r["kind"] == kind] for kind in ("pair", "choice", "coverage")}
    return [*_precision(by_kind["pair"]), *_choice(by_kind["choice"]), *_coverage(by_kind["coverage"])]


def _precision(pairs: Records) -> list[Number]:
    result = [DRAWN.number("pairs", len(pairs))]
    first, second = [r["a"] for r in pairs], [r["b"] for r in pairs]
    result.append(DRAWN.number("kappa", kappa(first, second), n=len(pairs)))
    for source in SOURCES:
        of_source = [r for r in pairs if r["source"] == source]
        for corpus in ("all", *CORPORA):
            rated = [r for r in of_source if corpus in ("all", r["corpus"])]
            result.append(_share(f"precision.{source}.{corpus}", [keeps_meaning(r) for r in rated]))
        for rating in ("a", "b"):
            result.append(_share(f"rating.{source}.{rating}", [bool(r[rating]) for r in of_source]))
        distinct = {(r["word"], r["substitute"]): keeps_meaning(r) for r in of_source}
        result.append(_share(f"distinct.{source}", list(distinct.values())))
    return result


def _choice(choice: Records) -> list[Number]:
    loose = [r for r in choice if r["draw"] == "first"]
    scores = ("sentence_cosine", "window_cosine", "state_cosine")
    result = [DRAWN.number(f"area.{score}", area(loose, score), n=len(loose)) for score in scores]
    second = [r for r in choice if r["draw"] == "second"]
    result.append(DRAWN.number("choice.pairs", len(choice)))
    for threshold in (0.6, 0.7, 0.75, 0.8, 0.82, THRESHOLD, 0.88):
        rated = [keeps_meaning(r) for r in second if r["similarity"] >= threshold and r["share"] >= 0.3]
        result.append(_share(f"choice.precision.{threshold}", rated))
    return result


def _coverage(coverage: Records) -> list[Number]:
    result = []
    for record in coverage:
        texts = {int(words): number for words, number in record["texts"].items()}
        n, name = sum(texts.values()), f"{record['source']}.{record['corpus']}"
        result.append(DRAWN.number(f"table.{name}", record["pairs"]))
        result.append(DRAWN.number(f"covered.3.{name}", texts[3] / n, n=n))
        result.append(DRAWN.number(f"covered.1.{name}", 1 - texts[0] / n, n=n))
    return result


def _share(name: str, outcomes: Sequence[bool]) -> Number:
    return DRAWN.number(
        name, sum(outcomes) / len(outcomes), wilson_interval(sum(outcomes), len(outcomes)), len(outcomes)
    )
