"""Rows of the study of synonym groups that the page compares with vanilla of that study."""

from functools import cache
from statistics import geometric_mean, mean

from studies.stability.statistics import Estimate, Values, prediction
from studies.synonyms.plan import LONG, SHORT, THREE
from studies.synonyms.runs import BASE, Records, control_ratios, study_records

GROUPED = {"grouped-word-at": "word-at", "long-student": LONG, "two-teachers": SHORT}
"""Row -> its name in that study."""
PROBES = {"3-synonyms": ("cf3", "both"), "1-wordnet": ("wn3", "cf")}
"""Probe -> that of the other study, and the groups: with WordNet, groups of the counter-fitted table alone."""


@cache
def grouped_records() -> Records:
    return study_records("five_seeds tempered long_student", THREE)


def grouped_values(row: str, kind: str, probe: str) -> tuple[Values, Values]:
    """Data set -> one number per seed, of the row and of vanilla.  kind: label-flip, top-k-lost or jensen-shannon."""
    records, (key, groups) = grouped_records(), PROBES[probe]
    of = GROUPED[row], groups
    if kind == "top-k-lost":
        ours, plain = (
            {c: [1 - x for x in records.values(c, name, f"top-7-overlap/{key}")] for c in records.present(of)}
            for name in (of, BASE)
        )
    else:
        ours, plain = (
            {c: records.values(c, name, f"{kind}/{key}") for c in records.present(of)} for name in (of, BASE)
        )
    return ours, plain


def grouped_prediction(row: str, kind: str, probe: str) -> Estimate:
    return prediction(*grouped_values(row, kind, probe))


def grouped_ratios(row: str, kind: str, probe: str) -> dict[str, float]:
    """Data set -> ratio to vanilla."""
    ours, plain = grouped_values(row, kind, probe)
    return {corpus: mean(ours[corpus]) / mean(plain[corpus]) for corpus in ours}


def grouped_gains(row: str, measure: str, groups: str = "both") -> dict[str, float]:
    """Data set -> difference from vanilla, without substitutions."""
    records, of = grouped_records(), (GROUPED[row], groups)
    return {
        corpus: records.average(corpus, of, measure) - records.average(corpus, BASE, measure)
        for corpus in records.present(of)
    }


def grouped_flat_ratio(row: str, probe: str) -> float:
    """The shift of vanilla at the same normalized entropy, as a ratio to vanilla."""
    key, groups = PROBES[probe]
    return geometric_mean(control_ratios(grouped_records(), (GROUPED[row], groups), f"jensen-shannon/{key}"))
