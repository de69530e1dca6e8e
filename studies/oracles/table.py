"""How often each verdict is right: false yes, false no and undecided, by what is true."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from studies.oracles.explainers import EXPLAINERS, HONEST, RANDOM
from studies.oracles.models import MODELS, Truth
from studies.tables import markdown, read_records

ANSWERS = ("yes", "undecided", "no", "not meaningful", "not measured")
Counts = dict[tuple[str, bool], Counter[str]]
"""Verdict and what is true -> number of each answer."""


def expected(verdict: str, explainer: str, model: str) -> bool | None:
    """Whether yes is the right answer; None: it is not known."""
    kind, truth = EXPLAINERS[explainer], MODELS[model].truth
    if not truth.matters:
        return None
    match verdict:
        case "faithfulness":
            return kind.faithful
        case "shortcut-leakage":
            return _honest(explainer, model)
        case "seed-consistency":
            return truth.consistent if kind.faithful else kind.faithful
        case "stability":
            return _stable(explainer, truth)
    plausible = explainer in HONEST and kind.faithful and truth.plausible
    return True if plausible else False if explainer in RANDOM else None


ABSENCE = ("one word", "two words", "gate alone", "parity")
"""Models that predict a class because words are missing: no words are reasons for it."""
AGREEING = ("code: words that agree", "selected: one word that agrees")
ARBITRARY = "code: arbitrary for some classes"


def _honest(explainer: str, model: str) -> bool | None:
    """Whether nothing leaks.  Words that agree with the label leak if the model ignores half of them."""
    if explainer in AGREEING:
        return False if model == "gated" else None
    if explainer == ARBITRARY and model in ABSENCE:
        return None
    leaks = EXPLAINERS[explainer].leaks
    return None if leaks is None else not leaks


def _stable(explainer: str, truth: Truth) -> bool | None:
    kind = EXPLAINERS[explainer]
    if kind.faithful is False or kind.steady == "never":
        return False
    return truth.stable if kind.faithful else None


def answers(records: list[dict[str, Any]]) -> Iterator[tuple[str, str, str, str, str]]:
    """Verdict, explainer, model, kind of world and answer."""
    for record in records:
        for explainer, given in record["answers"].items():
            for verdict, answer in given.items():
                yield verdict, explainer, record["model"], record["kind"], answer


def count(records: list[dict[str, Any]]) -> Counts:
    counts: Counts = {}
    for verdict, explainer, model, _, answer in answers(records):
        if (truth := expected(verdict, explainer, model)) is not None:
            counts.setdefault((verdict, truth), Counter())[answer] += 1
    return counts


def lines_of(counts: Counts) -> list[list[str]]:
    lines = [["verdict", "true answer", "cases", *ANSWERS]]
    for (verdict, truth), number in sorted(counts.items()):
        total = number.total()
        cells = [f"{100 * number[answer] / total:.1f} %" for answer in ANSWERS]
        lines.append([verdict, "yes" if truth else "no", f"{total:,}", *cells])
    return lines


def table(records: list[Path]) -> str:
    return markdown(lines_of(count(read_records(records))))
