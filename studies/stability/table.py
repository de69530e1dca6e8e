"""Numbers of docs/results/stability.md, of method cards and of plots, and the tables of all comparisons."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import mean

from studies.numbers import Number, Origin
from studies.stability import data as tables
from studies.stability.comparison import FIRST_SEEDS, PROBES, Rows, compare, rows_of, with_first_seeds
from studies.stability.flatness import tempered_log_ratio
from studies.stability.grouped import (
    GROUPED,
    grouped_flat_ratio,
    grouped_gains,
    grouped_prediction,
    grouped_ratios,
)
from studies.stability.grouped import PROBES as GROUPED_PROBES
from studies.stability.plan import COSTS, HATE, MAIN_SETTINGS, NOT_TRAINED, SETTINGS
from studies.stability.records import COMMIT, STUDY, read, study_records
from studies.stability.statistics import Estimate, over_settings, prediction
from studies.study import Data
from studies.synonyms.runs import AGAIN
from studies.tables import RECORDS, markdown, minus_signs, read_records

STUDY_ORIGIN = Origin(COMMIT, "python -m studies run stability --out DIR --glove FILE --synonyms DIR")
COVERAGE_ORIGIN = Origin("506056c8", "python -m studies run stability_coverage --out DIR")
OUTSIDE = RECORDS / "outside_review.json"
OUTSIDE_ORIGIN = Origin("outside review", "not repeated")
"""Numbers that an outside reviewer measured."""
WHERE = {name.removesuffix("-bilstm"): [name] for name in SETTINGS} | {"mean": MAIN_SETTINGS}
"""Name of a data set -> its setting; mean: of the three without hate speech."""
SUBSTITUTES = ("3-synonyms", "3-held-out", "1-wordnet")
"""Substitutes of the table used in training, of its held-out pairs, of WordNet."""
KINDS = ("label-flip", "top-k-lost", "jensen-shannon")
MEASURES = (
    *(f"{kind}/{probe}" for kind in (*KINDS, "kendall") for probe in SUBSTITUTES),
    *("jensen-shannon/pgd-attention", "macro-f1", "normalized-entropy", "comprehensiveness"),
)
MORE_MEASURES = (*MEASURES, "jensen-shannon/noise", "jensen-shannon/fgm-label", "confidence")
"""Those of comparisons with the own start."""
TECHNIQUES = (
    *("word-at-groups", "consensus-groups", "vanilla-groups", "word-at", "consensus", "consensus-word-at"),
    *("synonym-augmentation", "ensemble"),
)
"""Rows of the table of techniques."""
ROWS = (
    *TECHNIQUES,
    *("word-iat-by-f1", "attention-rp-by-f1", "attention-at-by-f1", "attention-iat-word-by-f1", "seat-joint-kl"),
    *("tempered-1.5", "tempered-2.0", "tempered-3.0", FIRST_SEEDS),
)
OWN_START = ("anchored", "seat-paper-ce", "seat-joint-kl")
"""Rows that are compared with the vanilla model that each model starts from."""
ABLATIONS = ("anchored-no-noise", "anchored-no-swaps", "seat-no-top-k-ce", "seat-no-top-k-kl", "seat-no-stability")


@cache
def rows() -> Rows:
    return with_first_seeds(rows_of(study_records()))


def name_of(row: str, measure: str) -> str:
    """`emotion.seat.label-flip.3-synonyms` has this end."""
    return f"{row.replace(', ', '-').replace(' ', '-').replace('–', '-')}.{measure.replace('/', '.')}"


def number(name: str, estimate: Estimate, n: int | None = None, origin: Origin = STUDY_ORIGIN) -> Number:
    return origin.number(name, estimate.value, (estimate.low, estimate.high), n)


def comparisons(names: Iterable[str], where: Sequence[str], own: bool = False) -> Iterator[Number]:
    """Ratios of shares and shifts, differences of the rest: to all vanilla models, or to those of the same seeds."""
    for place in where:
        settings = WHERE[place]
        for row in names:
            for measure in MORE_MEASURES if own else MEASURES:
                if (estimate := compare(rows(), row, measure, settings, own)) is not None:
                    models = sum(len(rows()[row][s]) for s in settings if s in rows()[row])
                    yield number(f"{'own-start.' if own else ''}{place}.{name_of(row, measure)}", estimate, models)


def predictions() -> Iterator[Number]:
    """Where the ratio of another data set lies, and for which rows and measures that of hate speech is outside."""
    below = above = cells = 0
    for row in TECHNIQUES:
        for measure in (f"{kind}/{probe}" for kind in KINDS for probe in SUBSTITUTES):
            estimate = _predicted(row, measure, MAIN_SETTINGS)
            yield number(f"prediction.{name_of(row, measure)}", estimate, len(MAIN_SETTINGS))
            hate = compare(rows(), row, measure, [HATE])
            assert hate is not None, f"the records have no {measure} of {row}"
            cells, below, above = cells + 1, below + (hate.value < estimate.low), above + (hate.value > estimate.high)
    for row in GROUPED:
        for kind in KINDS:
            for probe in GROUPED_PROBES:
                estimate = grouped_prediction(row, kind, probe)
                yield number(f"prediction.{row}.{kind}.{probe}", estimate, len(MAIN_SETTINGS), AGAIN)
    for measure in ("label-flip/3-synonyms", "top-k-lost/3-synonyms"):
        estimate = _predicted("word-at-groups", measure, list(SETTINGS))
        yield number(f"prediction-with-hate.{name_of('word-at-groups', measure)}", estimate, len(SETTINGS))
    for name, count in {"below": below, "above": above, "outside": below + above, "all": cells}.items():
        yield STUDY_ORIGIN.number(f"hate-and-predictions.{name}", count)
    if (estimates := compare(rows(), "consensus", "macro-f1", list(SETTINGS), statistic=over_settings)) is not None:
        yield number("over-data-sets.consensus.macro-f1", estimates, len(SETTINGS))


def _predicted(row: str, measure: str, settings: list[str]) -> Estimate:
    estimate = compare(rows(), row, measure, settings, statistic=prediction)
    assert estimate is not None, f"the records have no {measure} of {row}"
    return estimate


def grouped() -> Iterator[Number]:
    """Rows of the study of synonym groups, against vanilla of that study."""
    for row in GROUPED:
        for kind in KINDS:
            for probe in GROUPED_PROBES:
                for corpus, ratio in grouped_ratios(row, kind, probe).items():
                    yield AGAIN.number(f"grouped.{corpus}.{row}.{kind}.{probe}", ratio)
        for measure in ("macro-f1", "normalized-entropy"):
            for corpus, gain in grouped_gains(row, measure).items():
                yield AGAIN.number(f"grouped.{corpus}.{row}.{measure}", gain)
        for probe in GROUPED_PROBES:
            yield AGAIN.number(f"as-flat.{row}.{probe}", grouped_flat_ratio(row, probe))


def flatness() -> Iterator[Number]:
    """The shift of vanilla that is as flat, as a ratio; the share of the logarithm of a gain that it explains."""
    for row in TECHNIQUES:
        for probe in SUBSTITUTES:
            key = f"jensen-shannon/{probe}"
            log = mean(tempered_log_ratio(rows(), row, setting, key) for setting in MAIN_SETTINGS)
            yield STUDY_ORIGIN.number(f"as-flat.{row}.{probe}", math.exp(log))
            if row == "consensus" and (estimate := compare(rows(), row, key, MAIN_SETTINGS)) is not None:
                yield STUDY_ORIGIN.number(f"explained-by-flatness.{row}.{probe}", log / math.log(estimate.value))


def models() -> Iterator[Number]:
    """Counts of models, shares of labels and texts, costs, and differences between seeds."""
    records = [record for record in study_records() if record["phase"] == "test" and "same-as" not in record]
    derived = sum(record["row"].startswith(NOT_TRAINED) for record in records)
    for name, count in {"trained": len(records) - derived, "derived": derived, "all": len(records)}.items():
        yield STUDY_ORIGIN.number(f"models.{name}", count)
    yield from (STUDY_ORIGIN.number(f"cost.{row}", cost) for row, cost in COSTS.items())
    seeds = {(r["setting"], r["row"]): r["jensen-shannon/seeds"] for r in study_records() if r["phase"] == "seeds"}
    for place, (setting, *others) in WHERE.items():
        if others:
            continue
        for row in ("vanilla", "consensus", "consensus-word-at"):
            share = mean(record["label-flip/fgm-label"] for record in rows()[row][setting].values())
            yield STUDY_ORIGIN.number(f"flip-share.{place}.{row}.fgm-label", share)
        for measure in ("macro-f1", "label-flip/3-synonyms", "jensen-shannon/3-synonyms"):
            runs = [record[measure] for record in rows()["vanilla"][setting].values()]
            yield STUDY_ORIGIN.mean(f"level.{place}.{name_of('vanilla', measure)}", runs)
        for row in TECHNIQUES:
            yield STUDY_ORIGIN.number(f"between-seeds.{place}.{row}", seeds[setting, row] / seeds[setting, "vanilla"])
        first = rows()["vanilla"][setting][0]
        for probe in SUBSTITUTES[:2]:
            skipped = first["skipped"][f"jensen-shannon/{probe}"]
            yield STUDY_ORIGIN.number(f"left-out.{place}.{probe}", skipped / first["n"], n=first["n"])


def outside() -> Iterator[Number]:
    """Reductions that an outside reviewer measured, as shares, and relative to our mean reduction."""
    review = json.loads(OUTSIDE.read_text(encoding="utf-8"))
    for row, kinds in review["reduction in percent"].items():
        for kind, reductions in kinds.items():
            if row in GROUPED:
                here = grouped_prediction(row, kind, "3-synonyms")
            else:
                here = _predicted(row, f"{kind}/3-synonyms", MAIN_SETTINGS)
            for place, percent in zip(review["data sets"], reductions, strict=True):
                share = percent / 100
                yield OUTSIDE_ORIGIN.number(f"outside.{row}.{kind}.{place}", share, n=review["seeds"])
                yield OUTSIDE_ORIGIN.number(f"outside-share.{row}.{kind}.{place}", share / (1 - here.value))
    thesauri = review["under two other thesauri, lowest and highest reduction in percent"]
    for kind, ends in thesauri.items():
        for end, percent in zip(("lowest", "highest"), ends, strict=True):
            yield OUTSIDE_ORIGIN.number(f"outside.other-thesauri.{kind}.{end}", percent / 100)
    (precision,) = review["difference"]["long-student"].values()
    yield OUTSIDE_ORIGIN.number("outside.long-student.average-precision", precision)
    ratios = review["consensus, HateXplain, JSD ratio to vanilla by the seeds of vanilla"]
    for seeds, ratio in ratios.items():
        yield OUTSIDE_ORIGIN.number(f"outside.consensus.jensen-shannon.seeds-{seeds.replace(' ', '-')}", ratio)


def coverage() -> Iterator[Number]:
    records = read_records([RECORDS / "stability_coverage.jsonl"])
    everywhere = [record["coverage"] for record in records]
    single = [share for record in records for share in record["by setting"].values()]
    ends = {"lowest": min(everywhere), "highest": max(everywhere), "lowest-of-one-data-set": min(single)}
    yield from (COVERAGE_ORIGIN.number(f"coverage.{name}", share) for name, share in ends.items())


def numbers() -> list[Number]:
    everywhere = [*WHERE]
    return [
        *comparisons(ROWS, everywhere),
        *comparisons(("anchored",), ["mean"]),
        *comparisons(OWN_START, everywhere, own=True),
        *comparisons(("seat-joint-ce",), ["mean"], own=True),
        *comparisons(("tempered-1.5", "tempered-3.0"), ["hate"], own=True),
        *comparisons(ABLATIONS, ["sst2"], own=True),
        *predictions(),
        *grouped(),
        *flatness(),
        *models(),
        *outside(),
        *coverage(),
    ]


def data() -> Data:
    """The CSV files of the page of all tables."""
    lines = [["technique", "measure", "ratio", "low", "high", "data sets"]]
    for entry in predictions():
        kind, row, *measure = entry.name.split(".")
        if kind == "prediction" and entry.interval is not None:
            values = (f"{value:.4g}" for value in (float(entry), *entry.interval))
            lines.append([row, "/".join(measure), *values, str(entry.n)])
    return {**tables.files(), "stability-predictions.csv": lines}


def table(records: list[Path] = [STUDY]) -> str:  # noqa: B006
    """Shift, ratio to vanilla over three data sets, with 95 % t intervals over seeds.  Records: files or folders."""
    own = with_first_seeds(rows_of(record for path in records for record in read(path)))
    lines = []
    for row in own:
        estimates = [compare(own, row, f"jensen-shannon/{probe}", MAIN_SETTINGS) for probe in PROBES.values()]
        cells = [f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]" if e else "" for e in estimates]
        lines += [[row, *cells]] if row != "vanilla" and any(cells) else []
    return minus_signs(markdown([["technique", *PROBES], *lines]))
