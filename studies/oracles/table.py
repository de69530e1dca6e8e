"""How often each verdict is right: false yes, false no and undecided, by what is true.

A verdict that is not meaningful counts as neither yes nor no where the true answer is no, and as a false no where it
is yes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from steadygaze.properties import PROPERTIES
from steadygaze.results.intervals import wilson_interval
from studies.numbers import Number, Origin
from studies.oracles.curves import CURVES, shares, turns
from studies.oracles.explainers import EXPLAINERS, HONEST, LEAKING, PARTLY, RANDOM
from studies.oracles.models import MODELS, Truth
from studies.oracles.run import SWEEP, SWEEPS, TEST, TRAINING
from studies.study import Data
from studies.tables import RECORDS, markdown, read_records

SIZES = (20, 50, 100, 300)
"""Numbers of texts in the sweep."""
ANSWERS = ("yes", "undecided", "no", "not meaningful", "not measured")
VERDICTS = ("faithfulness", "stability", "seed-consistency", "shortcut-leakage", "plausibility")
"""Those that black boxes get; robustness needs word vectors."""
Counts = dict[tuple[str, bool], Counter[str]]
"""Verdict and what is true -> number of each answer."""
Records = list[dict[str, Any]]
RUN = "python -m studies run oracles --out OUT --part"
ORIGINS = {
    TRAINING: Origin("a2739956", f"{RUN} training"),
    TEST: Origin("a2739956", f"{RUN} test"),
    SWEEP: Origin("a2739956", f"{RUN} sweep"),
}
GROUPS = {"honest": HONEST, "partly wrong": PARTLY, "random or constant": RANDOM, "leaking": LEAKING}


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


def answers(records: Records) -> Iterator[tuple[str, str, dict[str, Any], str]]:
    """Verdict, explainer, record and answer."""
    for record in records:
        for explainer, given in record["answers"].items():
            for verdict, answer in given.items():
                if verdict in VERDICTS:
                    yield verdict, explainer, record, answer


def count(records: Records, explainers: Iterable[str] = EXPLAINERS) -> Counts:
    counts: Counts = {(verdict, truth): Counter() for verdict in VERDICTS for truth in (True, False)}
    for verdict, explainer, record, answer in answers(records):
        if explainer in explainers and (truth := expected(verdict, explainer, record["model"])) is not None:
            counts[verdict, truth][answer] += 1
    return counts


def is_wrong(truth: bool, answer: str) -> bool:
    return answer in ("no", "not meaningful") if truth else answer == "yes"


def records_of(part: str) -> Records:
    return read_records([RECORDS / f"oracles_{part}.jsonl.gz"])


def numbers() -> list[Number]:
    result = []
    for part, origin in ORIGINS.items():
        records = records_of(part)
        result.append(origin.number(f"{part}.audits", len(records)))
        result += _rates(part, count(records), origin)
    test, origin = records_of(TEST), ORIGINS[TEST]
    for name, group in GROUPS.items():
        result += _rates(f"{TEST}.{name}", count(test, group), origin)
    for name in (*PARTLY, "code: chatter in a tenth", "code: ends in a tenth"):
        result += _rates(f"{TEST}.explainer.{name}", count(test, [name]), origin)
    sweep = records_of(SWEEP)
    for name in SWEEPS:
        result += _rates(f"{SWEEP}.{name}", count([r for r in sweep if r["sweep"] == name]), ORIGINS[SWEEP])
        result += _undecided(f"{SWEEP}.{name}", [r for r in sweep if r["sweep"] == name])
    result += _curves()
    result.append(origin.number("explainers", len(EXPLAINERS)))
    result.append(origin.number("models", len(MODELS)))
    return result


def _rates(prefix: str, counts: Counts, origin: Origin) -> Iterator[Number]:
    """Shares of wrong, undecided and right answers by verdict and truth, and of undecided ones over all verdicts."""
    total: Counter[str] = Counter()
    for (verdict, truth), number in counts.items():
        n = number.total()
        if not n:
            continue
        wrong = sum(value for answer, value in number.items() if is_wrong(truth, answer))
        kinds = {"wrong": wrong, "undecided": number["undecided"], "no": number["no"]}
        for kind, value in kinds.items():
            name = f"{prefix}.{verdict}.{'yes' if truth else 'no'}.{kind}"
            yield origin.number(name, value / n, wilson_interval(value, n), n)
        total.update({"wrong": wrong, "undecided": number["undecided"], "all": n})
    for kind in ("wrong", "undecided"):
        interval = wilson_interval(total[kind], total["all"])
        yield origin.number(f"{prefix}.{kind}", total[kind] / total["all"], interval, total["all"])


def _undecided(prefix: str, records: Records) -> Iterator[Number]:
    """The share of undecided answers by verdict, whatever is true."""
    counts = count(records)
    for verdict in VERDICTS:
        both = counts[verdict, True] + counts[verdict, False]
        if n := both.total():
            interval = wilson_interval(both["undecided"], n)
            yield ORIGINS[SWEEP].number(f"{prefix}.{verdict}.undecided", both["undecided"] / n, interval, n)


def curve_part() -> str:
    """The worlds of the curves: those on which thresholds were chosen, if their values are recorded."""
    return TRAINING if "numbers" in records_of(TRAINING)[0] else TEST


def _curves() -> Iterator[Number]:
    part = curve_part()
    yield ORIGINS[part].number("curve.worlds", part)
    for name, curve in CURVES.items():
        rule = PROPERTIES[curve.verdict].rule
        known = [
            (truth, faithful, where)
            for explainer, model, faithful, where in turns(curve, records_of(part))
            if (truth := expected(curve.verdict, explainer, model)) is not None
        ]
        for value in curve.values:
            for kind, (wrong, n) in shares(curve, known, value, bool(rule and rule.depends_on)).items():
                if n:
                    interval = wilson_interval(wrong, n)
                    yield ORIGINS[part].number(f"curve.{name}.{value}.{kind}", wrong / n, interval, n)


def data() -> Data:
    """The answers about each explainer, and every wrong answer of the test."""
    heading = ["worlds", "verdict", "explainer", "true answer", *ANSWERS]
    table: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    wrong = [["verdict", "explainer", "model", "kind of texts", "seed", "true answer", "answer"]]
    for part in (TRAINING, TEST):
        for verdict, explainer, record, answer in answers(records_of(part)):
            truth = expected(verdict, explainer, record["model"])
            words = "unknown" if truth is None else "yes" if truth else "no"
            table[part, verdict, explainer, words][answer] += 1
            if part == TEST and truth is not None and is_wrong(truth, answer):
                case = [record[key] for key in ("model", "kind", "seed")]
                wrong.append([verdict, explainer, *map(str, case), words, answer])
    rows = [[*key, *(str(number[answer]) for answer in ANSWERS)] for key, number in sorted(table.items())]
    return {"oracles.csv": [heading, *rows], "oracle-errors.csv": wrong}


def lines_of(counts: Counts) -> list[list[str]]:
    lines = [["verdict", "true answer", "cases", *ANSWERS]]
    for (verdict, truth), number in sorted(counts.items()):
        total = number.total()
        cells = [f"{100 * number[answer] / total:.1f} %" for answer in ANSWERS]
        lines.append([verdict, "yes" if truth else "no", f"{total:,}", *cells])
    return lines


def table(records: list[Path]) -> str:
    return markdown(lines_of(count(read_records(records))))
