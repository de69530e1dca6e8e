"""docs/results/stability.md, from its template and the records of bench/stability.py.

    python bench/stability_text.py > docs/results/stability.md

The template, bench/stability_page.md, has expressions in braces.  A test fills those of README and other pages, too.

    {table Effect on the model}
    {less consensus 3-synonyms}             77 %      how much lower than vanilla
    {change word-at label-flip/3-synonyms}  −6 %      the same with its sign
    {ratio consensus pgd-attention}         0.13
    {difference word-at macro-f1 hate}      −0.024
    {less_span consensus 3-synonyms}        60 to 70 %      lowest and highest data set, without hate
    {predict consensus 3-synonyms}          −83 to −27 %    95 % prediction interval from these data sets
    {outside word-at-groups label-flip}     46 and 42 %     how much lower an outside reviewer measured it
    {outside_share word-at-groups label-flip}  69 to 76 %   that, relative to the mean of the three data sets here
    {mean_less long-student label-flip/1-wordnet}  33 %     mean of the table of predictions
    {hate_outside below}                   12               cells whose prediction interval lies above hate
    {techniques LINK}                       the table of techniques; LINK: the page of synonym groups

A row, a measure (a probe alone is the shift under it), and the settings: all but hate, or those named.  `own_` before
the name compares with the vanilla model that each model starts from.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import mean

import numpy as np

import stability_effects as effects
from stability_page import between_seeds, tables, tempered_log_ratio
from studies.stability.comparison import (
    FIRST_SEEDS,
    PROBES,
    Rows,
    compare_with_start,
    compare_with_vanilla,
    rows_of,
    with_first_seeds,
)
from studies.stability.plan import MAIN_SETTINGS, SEEDS, SETTINGS
from studies.stability.records import COMMIT, Record, study_records
from studies.stability.statistics import Estimate, difference, over_settings, paired, paired_difference, ratio
from studies.tables import minus_signs

SETTING_GROUPS = {
    **{name.removesuffix("-bilstm"): [name] for name in SETTINGS},
    "main": MAIN_SETTINGS,
    "all": list(SETTINGS),
}
OUTSIDE = Path(__file__).parents[1] / "studies" / "records" / "outside_review.json"
"""Numbers that an outside reviewer measured; we did not repeat them."""
EXPRESSION = re.compile(r"\{(\w+)((?: [^{}]+)?)\}")
NOT_TRAINED = ("tempered-", "ensemble")
"""Rows without models of their own."""


def page() -> str:
    return minus_signs(fill((Path(__file__).parent / "stability_page.md").read_text(encoding="utf-8")))


def fill(text: str) -> str:
    """The text with every expression in braces replaced by its value."""

    def value(match: re.Match[str]) -> str:
        name, words = match[1], match[2].split()
        if name == "table":
            return tables()[match[2].strip()]
        own = name.startswith("own_")
        form = FORMS[name.removeprefix("own_")]
        return form(*words, own=own) if own else form(*words)

    return EXPRESSION.sub(value, text)


@cache
def _rows() -> Rows:
    rows = with_first_seeds(rows_of(study_records()))
    return {**rows, "first": rows[FIRST_SEEDS]}


@cache
def _estimate(kind: str, row: str, measure: str, where: str, own: bool) -> Estimate:
    key = _key(measure)
    if own:
        statistic = {"ratio": paired, "difference": paired_difference}[kind]
        estimate = compare_with_start(statistic, _rows(), row, key, SETTING_GROUPS[where])
    else:
        estimate = compare_with_vanilla(
            {"ratio": ratio, "difference": difference}[kind], _rows(), row, key, SETTING_GROUPS[where]
        )
    if estimate is None:
        raise SystemExit(f"the records have no {measure} of {row} in {where}")
    return estimate


def _ratio(row: str, measure: str, where: str = "main", own: bool = False) -> str:
    return f"{_estimate('ratio', row, measure, where, own).value:.2f}"


def _less(row: str, measure: str, where: str = "main", own: bool = False) -> str:
    return f"{_percent(1 - _estimate('ratio', row, measure, where, own).value)} %"


def _more(row: str, measure: str, where: str = "main", own: bool = False) -> str:
    return f"{_percent(_estimate('ratio', row, measure, where, own).value - 1)} %"


def _change(row: str, measure: str, where: str = "main", own: bool = False) -> str:
    return f"{_signed(100 * (_estimate('ratio', row, measure, where, own).value - 1), '.0f')} %"


def _difference(row: str, measure: str, where: str = "main", own: bool = False) -> str:
    return _signed(_estimate("difference", row, measure, where, own).value, ".3f")


def _coarse(row: str, measure: str, where: str = "main", own: bool = False) -> str:
    return _signed(_estimate("difference", row, measure, where, own).value, ".2f")


def _loss(row: str, measure: str, where: str = "main", own: bool = False) -> str:
    return f"{-_estimate('difference', row, measure, where, own).value:.3f}"


def _gain(row: str, measure: str, where: str = "main", own: bool = False) -> str:
    return f"{_estimate('difference', row, measure, where, own).value:.3f}"


def _gain_range(row: str, measure: str, where: str) -> str:
    """The lowest and the highest difference in one setting."""
    differences = [
        _estimate("difference", row, measure, s.removesuffix("-bilstm"), False).value for s in SETTING_GROUPS[where]
    ]
    return f"{_signed(min(differences), '.3f')} to {_signed(max(differences), '.3f')}"


def _flat_less(row: str, measure: str, where: str = "main") -> str:
    return f"{_percent(1 - np.exp(_flatness(row, measure, where)))} %"


def _explained(row: str, measure: str) -> str:
    """The share of the logarithm of the ratio that flatness explains."""
    return f"{_percent(_flatness(row, measure) / np.log(_estimate('ratio', row, measure, 'main', False).value))} %"


@cache
def _flatness(row: str, measure: str, where: str = "main") -> float:
    settings = SETTING_GROUPS[where]
    return float(np.mean([tempered_log_ratio(_rows(), row, s, f"jensen-shannon/{measure}") for s in settings]))


def _key(measure: str) -> str:
    return f"jensen-shannon/{measure}" if measure in PROBES.values() else measure


def _less_span(row: str, measure: str) -> str:
    ends = sorted((_percent(1 - ratio) for ratio in effects.by_setting(row, _key(measure))), key=int)
    return f"{ends[0]} to {ends[-1]} %" if ends[0] != ends[-1] else f"{ends[0]} %"


def _predict(row: str, measure: str, where: str = "main") -> str:
    _, low, high = effects.predicted(row, _key(measure), SETTING_GROUPS[where])
    return f"{effects.change(low)} to {effects.change(high)} %"


def _mean_less(row: str, measure: str) -> str:
    return f"{_percent(1 - effects.predicted(row, _key(measure))[0])} %"


def _over_data(row: str, measure: str) -> str:
    """The 95 % interval of a mean difference over data sets instead of seeds."""
    estimate = compare_with_vanilla(over_settings, _rows(), row, measure, list(SETTINGS))
    if estimate is None:
        raise SystemExit(f"the records have no {measure} of {row}")
    return f"{_signed(estimate.low, '.3f')} to {_signed(estimate.high, '.3f')}"


def _outside(row: str, measure: str) -> str:
    """By how much it is lower, one number per data set."""
    return " and ".join(map(str, _reductions(row, measure))) + " %"


def _outside_share(row: str, measure: str) -> str:
    """The same, relative to the mean reduction of the study under three synonyms of the table."""
    here = 1 - effects.predicted(row, f"{measure}/3-synonyms")[0]
    return " to ".join(_percent(number / 100 / here) for number in sorted(_reductions(row, measure))) + " %"


def _reductions(row: str, measure: str) -> list[int]:
    reductions: list[int] = json.loads(OUTSIDE.read_text(encoding="utf-8"))["reduction in percent"][row][measure]
    return reductions


def _hate_outside(kind: str) -> str:
    below, above, cells = effects.hate_outside_predictions()
    return str({"below": below, "above": above, "outside": below + above, "cells": cells}[kind])


def _flip_rates(row: str, probe: str, digits: str, where: str = "main") -> str:
    """The lowest and the highest share of flipped labels."""
    groups = (_rows()[row][s].values() for s in SETTING_GROUPS[where])
    shares = [mean(r[f"label-flip/{probe}"] for r in records) for records in groups]
    ends = dict.fromkeys(f"{100 * share:.{digits}f}" for share in (min(shares), max(shares)))
    return " to ".join(ends) + " %"


def _seeds(row: str) -> str:
    """Reduction of the difference between seeds, relative to vanilla: lowest to highest setting."""
    ratios = between_seeds(row, _seed_records(), MAIN_SETTINGS)
    return f"{_percent(1 - max(ratios))} to {_percent(1 - min(ratios))} %"


@cache
def _seed_records() -> dict[tuple[str, str], Record]:
    return {(r["setting"], r["row"]): r for r in study_records() if r["phase"] == "seeds"}


def _correlation(row: str, measure: str) -> str:
    """Correlation of the logarithms of a row and of vanilla with the same seeds, within settings."""
    pairs = []
    for s in SETTINGS:
        logs = np.log(
            [[_rows()[name][s][i][f"jensen-shannon/{measure}"] for i in range(SEEDS)] for name in (row, "vanilla")]
        )
        pairs.append(logs - logs.mean(1, keepdims=True))
    both = np.concatenate(pairs, axis=1)
    return f"{np.corrcoef(both)[0, 1]:.2f}"


def _excluded_texts(setting: str) -> str:
    """Shares of texts with too few words to substitute (three synonyms; held-out), of the first vanilla model."""
    record = _rows()["vanilla"][f"{setting}-bilstm"][0]
    shares = [record["skipped"][f"jensen-shannon/{probe}"] / record["n"] for probe in ("3-synonyms", "3-held-out")]
    return "; ".join(map(_percent, shares)) + " %"


def _models(kind: str) -> str:
    """Models that were trained, or measured without training of their own."""
    records = [r for r in study_records() if r["phase"] == "test" and "same-as" not in r]
    derived = sum(r["row"].startswith(NOT_TRAINED) for r in records)
    return str({"trained": len(records) - derived, "derived": derived, "all": len(records)}[kind])


def _commit() -> str:
    return COMMIT


def _percent(share: float) -> str:
    return f"{100 * share:.0f}".replace("-0", "0")


def _signed(number: float, form: str) -> str:
    """The number with its sign; zero has none.

    >>> _signed(-0.0231, ".3f"), _signed(0.0001, ".3f")
    ('−0.023', '0.000')
    """
    text = f"{number:+{form}}"
    return text.replace("-", "−") if float(text) else f"{0:{form}}"


FORMS: dict[str, Callable[..., str]] = {
    "ratio": _ratio,
    "less": _less,
    "more": _more,
    "change": _change,
    "difference": _difference,
    "coarse": _coarse,
    "loss": _loss,
    "gain": _gain,
    "gain_range": _gain_range,
    "flat_less": _flat_less,
    "explained": _explained,
    "flip_rates": _flip_rates,
    "less_span": _less_span,
    "predict": _predict,
    "mean_less": _mean_less,
    "over_data": _over_data,
    "outside": _outside,
    "outside_share": _outside_share,
    "hate_outside": _hate_outside,
    "techniques": effects.technique_table,
    "predictions": effects.prediction_table,
    "seeds": _seeds,
    "correlation": _correlation,
    "left_out": _excluded_texts,
    "models": _models,
    "commit": _commit,
}


def main() -> None:
    print(page(), end="")


if __name__ == "__main__":
    main()
