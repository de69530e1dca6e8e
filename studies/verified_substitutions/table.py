"""Precision of substitutions before and after verification, agreement of the ratings, and coverage.

Records of one line each:

    pair       a rated substitution of a test text
    choice     a rated substitution that the lists or the threshold of the filter were chosen with
    coverage   texts of a corpus by their number of words with a substitute; `listed`: share of substitutions by a list
    frontier   training texts by their number of words with a substitute, of the lists and of pairs above a threshold
"""

from collections.abc import Sequence
from statistics import mean
from typing import Any

from steadygaze.results.intervals import wilson_interval
from studies.numbers import Number, Origin
from studies.tables import RECORDS, read_records
from studies.verified_substitutions.plan import CORPORA, NEW_CORPORA, SOURCES

FILE = RECORDS / "verified_substitutions.jsonl"
RUN = "python -m studies run verified_substitutions --tables TABLES --out OUT"
COMMIT = "e261e5a9"
DRAWN = Origin(COMMIT, RUN)
RATED = [source for source, number in SOURCES.items() if number]
THRESHOLD = 0.85
FINAL = "fifth"
"""The last draw from training texts by the rule of the test texts."""
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


def mixture(parts: Sequence[tuple[float, float]]) -> float:
    """The precision of several tables together, from the precision and the weight of each."""
    return sum(value * weight for value, weight in parts) / sum(weight for _, weight in parts)


def numbers() -> list[Number]:
    records = read_records([FILE])
    kinds = ("pair", "choice", "coverage", "frontier")
    by_kind = {kind: [r for r in records if r["kind"] == kind] for kind in kinds}
    return [
        *_precision(by_kind["pair"], by_kind["coverage"]),
        *_coverage(by_kind["coverage"]),
        *_choice(by_kind["choice"]),
        *_frontier(by_kind["choice"], by_kind["frontier"]),
    ]


def _precision(pairs: Records, coverage: Records) -> list[Number]:
    first, second = [r["a"] for r in pairs], [r["b"] for r in pairs]
    result = [DRAWN.number("pairs", len(pairs)), DRAWN.number("kappa", kappa(first, second), n=len(pairs))]
    precision: dict[str, float] = {}
    for source in RATED:
        of_source = [r for r in pairs if r["source"] == source and r["corpus"] in CORPORA]
        for corpus in ("all", *CORPORA):
            rated = [r for r in of_source if corpus in ("all", r["corpus"])]
            result.append(_share(f"precision.{source}.{corpus}", [keeps_meaning(r) for r in rated]))
        for rating in ("a", "b"):
            result.append(_share(f"rating.{source}.{rating}", [bool(r[rating]) for r in of_source]))
        distinct = {(r["word"], r["substitute"]): keeps_meaning(r) for r in of_source}
        result.append(_share(f"distinct.{source}", list(distinct.values())))
        precision[source] = mean(map(keeps_meaning, of_source))
    new = [r for r in pairs if r["corpus"] in NEW_CORPORA]
    for corpus in ("new", *NEW_CORPORA):
        rated = [r for r in new if corpus in ("new", r["corpus"])]
        result.append(_share(f"precision.verified.{corpus}", [keeps_meaning(r) for r in rated]))
    listed = mean(r["listed"] for r in coverage if "listed" in r)
    both = mixture([(precision["verified"], listed), (precision["added"], 1 - listed)])
    return [*result, DRAWN.number("precision.both", both), DRAWN.number("listed.both", listed)]


def _coverage(coverage: Records) -> list[Number]:
    result = []
    for record in (r for r in coverage if "texts" in r):
        one, three, n = _texts(record)
        name = f"{record['source']}.{record['corpus']}"
        if record["length"] == "all":
            result += [DRAWN.number(f"table.{name}", record["pairs"]), DRAWN.number(f"covered.1.{name}", one, n=n)]
            result.append(DRAWN.number(f"covered.3.{name}", three, n=n))
        elif record["source"] == "verified":
            result.append(DRAWN.number(f"length.{record['length']}.{record['corpus']}", three, n=n))
    return result


def _texts(record: dict[str, Any]) -> tuple[float, float, int]:
    """Share of the texts with at least one and at least three words, and their number."""
    texts = {int(words): number for words, number in record["texts"].items()}
    n = sum(texts.values())
    return 1 - texts[0] / n, texts[3] / n, n


def _choice(choice: Records) -> list[Number]:
    loose = [r for r in choice if r["draw"] == "first"]
    scores = ("sentence_cosine", "window_cosine", "state_cosine")
    result = [DRAWN.number(f"area.{score}", area(loose, score), n=len(loose)) for score in scores]
    result.append(DRAWN.number("choice.pairs", len(choice)))
    second = [r for r in choice if r["draw"] == "second" and r["share"] >= 0.3]
    for threshold in (0.6, 0.7, 0.75, 0.8, 0.82, THRESHOLD, 0.88):
        outcomes = [keeps_meaning(r) for r in second if r["cosine"] >= threshold]
        result.append(_share(f"choice.precision.{threshold}", outcomes))
    for draw in ("third", "fourth", FINAL, "sixth"):
        result.append(_share(f"choice.{draw}", [keeps_meaning(r) for r in choice if r["draw"] == draw]))
    return result


def _frontier(choice: Records, frontier: Records) -> list[Number]:
    """The lists alone (threshold 1), and with pairs of WordNet above a threshold of the filter."""
    listed = mean(keeps_meaning(r) for r in choice if r.get("listed"))
    others = [r for r in choice if "similarity" in r and not r.get("in_lists") and r["share"] >= 0.3]
    result = [DRAWN.number("frontier.lists", listed, n=sum(bool(r.get("listed")) for r in choice))]
    for threshold in sorted({r["threshold"] for r in frontier}):
        records = [r for r in frontier if r["threshold"] == threshold]
        rated = [keeps_meaning(r) for r in others if r["similarity"] >= threshold]
        weight = mean(r["added"] for r in records)
        if rated:
            result.append(_share(f"frontier.added.{threshold}", rated))
        both = mixture([(listed, 1 - weight), (mean(rated) if rated else 0.0, weight)])
        result.append(DRAWN.number(f"frontier.precision.{threshold}", both))
        result += [
            DRAWN.number(f"frontier.covered.{threshold}.{r['corpus']}", _texts(r)[1], n=_texts(r)[2]) for r in records
        ]
    return result


def _share(name: str, outcomes: Sequence[bool]) -> Number:
    return DRAWN.number(
        name, sum(outcomes) / len(outcomes), wilson_interval(sum(outcomes), len(outcomes)), len(outcomes)
    )
