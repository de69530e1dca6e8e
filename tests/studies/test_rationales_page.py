"""docs/results/rationales.md, and the pages that quote it, have the numbers of the records of planted reviews."""

import json
from collections.abc import Callable
from statistics import mean
from typing import Any

import pytest

from result_pages import RESULTS, ROOT, missing

PAGE = RESULTS / "rationales.md"
NEIGHBOR_COMMITS = ("76dcec38", "4dc7bfe7", "36d1aa4c")
BOTH, EXTREME, THRESHOLD = ("palate", "aroma"), ("skewed20", "biased80"), ("skewed10", "biased70")
NUMBERS = ("none", "one", "two", "three", "four", "five")
Score = Callable[..., list[float]]


@pytest.fixture
def planted() -> Any:
    from studies.rationales.runs import load

    return load()


@pytest.fixture
def scores(planted: Any) -> Score:
    """Aspect, setting, row -> a measure of each seed in %; the row `rnp` is at its selected rate."""
    from studies.tables import values

    def of(
        aspect: str, setting: str, row: str, measure: str = "f1", split: str = "test", regime: str = "easy",
        seeds: int | None = None,
    ) -> list[float]:  # fmt: skip
        runs = (
            planted.rnp(aspect, setting, regime, seeds)
            if row == "rnp"
            else planted.of(aspect, setting, row, regime, seeds)
        )
        return values(runs, measure, split=split)

    return of


def interlocked(numbers: list[float]) -> str:
    """How many seeds select the first sentence in most reviews, in words."""
    return NUMBERS[sum(number > 50 for number in numbers)]


def test_the_tables_are_those_of_the_records(planted: Any) -> None:
    from studies.rationales.table import REGIME_NAMES, TABLES, regime_table
    from studies.tables import markdown

    page = "\n".join(line.strip() for line in PAGE.read_text("utf-8").splitlines())
    assert [table.__name__ for table in TABLES if markdown(table(planted)) + "\n" not in page + "\n"] == []
    assert [row[0] for row in regime_table(planted)[1:]] == list(REGIME_NAMES.values())


def test_a_changed_digit_of_a_table_is_noticed(planted: Any) -> None:
    from studies.rationales.table import main_table
    from studies.tables import markdown

    table = markdown(main_table(planted))
    page = PAGE.read_text("utf-8")
    assert table in page
    assert table not in page.replace("98.5 ± 0.3", "98.6 ± 0.3")


def test_the_opening_and_the_claims_have_the_numbers_of_the_records(scores: Score) -> None:
    rnp, a2r = (f"{mean(scores('palate', 'skewed20', row)):.1f} %" for row in ("rnp", "a2r"))
    biased = [f"{mean(scores('palate', 'biased80', row)):.1f} %" for row in ("rnp", "a2r")]
    fast = interlocked(scores("palate", "biased80", "a2r-0.001", "x1"))
    lead = [mean(scores("palate", at, "a2r")) - mean(scores("palate", at, "rnp")) for at in EXTREME]
    slow = [mean(scores("palate", at, "a2r", seeds=3)) - mean(scores("palate", at, "rnp-1e-05")) for at in EXTREME]
    from_skewed_15 = ("skewed15", "skewed20", "biased75", "biased80")
    lowest = min(x for aspect in BOTH for at in from_skewed_15 for x in scores(aspect, at, "rnp", "x1"))
    sentences = [
        f"RNP selects the right sentence in {rnp} of generated reviews, A2R in {a2r}",
        f"At bias 0.8, RNP selects the right sentence in {biased[0]}, A2R in {biased[1]}.",
        f"of RNP at bias 0.7: {interlocked(scores('palate', 'biased70', 'rnp', 'x1'))} of five seeds interlock.",
        f"It still selects the right sentence in {mean(scores('palate', 'skewed10', 'rnp')):.1f} % at skew 10",
        f"1e-3, A2R interlocks too with a biased token, in {fast} of three seeds.",
        f"1e-3, A2R interlocks on a biased token in {fast} of three seeds.",
        f"each seed selects the first sentence in at least {lowest:.1f} % of the reviews",
        f"A2R's F1 on palate is {lead[0]:.0f} points above RNP's at skewed 20 and {lead[1]:.0f} at biased 0.8",
        f"Against RNP at 1e-5 the lead is {slow[0]:.0f} and {slow[1]:.0f} points.",
    ]
    assert missing(sentences, PAGE) == []
    assert max(scores("palate", "skewed20", "rnp-1e-05", "x1")) < 80, "it has not interlocked"
    quoted = f"{a2r} of generated reviews, RNP in {rnp}"
    assert [file for file in ("README.md", "docs/results/index.md") if missing([quoted], ROOT / file)] == []


def test_the_text_below_the_main_table_has_the_numbers_of_the_records(scores: Score, planted: Any) -> None:
    from studies.rationales.plan import ASPECTS, RATES, SETTINGS, rnp_row
    from studies.rationales.table import average

    x1 = min(mean(scores(a, at, rnp_row(rate), "x1")) for a in BOTH for at in EXTREME for rate in RATES)
    skewed, biased = ([mean(scores(aspect, at, "rnp", "accuracy")) for aspect in BOTH] for at in EXTREME)
    assert {round(number, -1) for number in skewed} == {60}
    assert {f"{number:.0f}" for number in biased} == {"80"}
    counts = {at: [interlocked(scores(aspect, at, "rnp", "x1")) for aspect in BOTH] for at in THRESHOLD}
    selected = [
        [mean(scores("palate", at, row, "accuracy", "validation", seeds=2)) for row in ("rnp-1e-05", "rnp")]
        for at in EXTREME
    ]
    slow = {name: [f"{mean(scores('palate', at, 'rnp-1e-05', name)):.0f}" for at in EXTREME] for name in ("x1", "f1")}
    last = {
        row: [average(planted.of("palate", at, row), "x1", "last") for at in EXTREME]
        for row in ("rnp-1e-05", "rnp-3e-05")
    }
    assert last["rnp-3e-05"] == ["100", "100"], "it has interlocked by epoch 8"
    a2r = [scores(aspect, at, "a2r") for aspect in BOTH for at in SETTINGS]
    deficits = {(a, at): mean(scores(a, at, "rnp")) - mean(scores(a, at, "a2r")) for a in ASPECTS for at in SETTINGS}
    later = [mean(scores("palate", at, row)[2:]) for at in EXTREME for row in ("rnp", "a2r")]
    (first, second) = (f"{pair[0]:.1f}" + " {} " + f"{pair[1]:.1f}" for pair in selected)
    sentences = [
        f"first sentence in at least {x1:.1f} % of the reviews. Accuracy is about 60 % after skewing, and 80 %",
        f"at skewed 10 {counts['skewed10'][0]} of five (palate) and {counts['skewed10'][1]} (aroma), at biased 0.7 "
        f"{counts['biased70'][0]} and {counts['biased70'][1]} (hence ± 54)",
        f"Their accuracy is {first.format('% against')} at skewed 20, and {second.format('against')} at biased 0.8. "
        f"X1 would be {slow['x1'][0]} and {slow['x1'][1]} instead of 100, F1 {slow['f1'][0]} and {slow['f1'][1]}.",
        f"X1 still rises: to {last['rnp-1e-05'][0]} (skewed 20) and {last['rnp-1e-05'][1]} (biased 0.8) at epoch 8.",
        f"{min(map(mean, a2r)):.1f} or more on average, {min(map(min, a2r)):.1f} in its worst seed.",
        f"A2R is {max(deficits.values()):.1f} below RNP on palate, the largest deficit in this table.",
        "(skewed 20: RNP {:.1f}, A2R {:.1f}; biased 0.8: {:.1f} and {:.1f})".format(*later),
        f"RNP selects the first sentence always and has {mean(scores('appearance', 'standard', 'rnp')):.1f}.",
    ]
    assert missing(sentences, PAGE) == []
    assert max(deficits, key=lambda cell: deficits[cell]) == ("palate", "standard")
    assert {f"{mean(scores('appearance', at, 'rnp', 'x1')):.1f}" for at in SETTINGS} == {"100.0"}
    lower = {at: [mean(scores("palate", at, rnp_row(rate), seeds=2)) for rate in RATES] for at in THRESHOLD}
    assert all(values[0] == max(values) for values in lower.values()), "on palate a lower rate helps"
    best = {at: max(RATES, key=lambda rate: mean(scores("aroma", at, rnp_row(rate), seeds=2))) for at in THRESHOLD}
    assert len(set(best.values())) == 2, "on aroma no rate is the best in both"


def test_the_text_about_lambda_and_neighbors_has_the_numbers_of_the_records(scores: Score, planted: Any) -> None:
    from studies.rationales.plan import LAMBDAS
    from studies.rationales.table import average

    def row(strength: float) -> str:
        return "a2r" if strength == 1 else f"a2r-lambda-{strength:g}"

    harder = {x: scores("palate", "biased80", row(x), regime="negated") for x in (*LAMBDAS, 1.0)}
    flat = [mean(values) for x, values in harder.items() if x <= 2]
    accuracy = {x: f"{mean(scores('palate', 'skewed20', row(x), 'accuracy', seeds=3)):.1f}" for x in (0, 1, 2, 10)}
    assert len(set(accuracy.values())) <= 2
    validation = [
        mean(scores("palate", "biased80", name, "accuracy", "validation", seeds=3))
        for name in ("a2r-0.001", "a2r", "a2r-0.0003")
    ]
    assert f"{validation[1]:.0f}" == f"{validation[2]:.0f}"
    fast = interlocked(scores("palate", "biased80", "a2r-0.001", "x1"))
    worst = f"{mean(harder[1.0]):.1f}"
    large = [mean(scores("palate", "skewed20", name, regime="large")) for name in ("rnp", "a2r")]
    unlucky = interlocked(scores("palate", "skewed20", "rnp-0.001", "x1", regime="large"))
    dropout = planted.rnp("palate", "skewed20", "dropout")
    assert [run["kept"] for run in dropout] == [1, 1, 1]
    sentences = [
        f"at skewed 20 accuracy does not change ({accuracy[10]} %)",
        f"F1 is {mean(harder[0.0]):.1f} at λ = 0, between {min(flat):.1f} and {max(flat):.1f} up to λ = 2, and "
        f"{mean(harder[10.0]):.1f} at 10, where {NUMBERS[sum(x < 50 for x in harder[10.0])]} seed of three interlocks. "
        f"Seeds differ by up to {max(max(v) - min(v) for x, v in harder.items() if x <= 2):.0f} points",
        f"A2R interlocks on the token in {fast} of three seeds, and is at its best elsewhere.",
        f"RNP finds the sentence too ({large[0]:.0f}, A2R {large[1]:.1f}; at 1e-3 {unlucky} seed of two interlocks)",
        f"select the first epoch (X1 {average(dropout, 'x1')}); at the last epoch they have interlocked (F1 "
        f"{average(dropout, 'f1', 'last')}).",
        f"(accuracy {validation[0]:.0f} %; at 1e-4 and 3e-4 {validation[1]:.0f} %)",
        "RNP (selected rate 3e-4) finds the sentence in the standard setting in all three seeds. This setting is the "
        f"worst for A2R: {worst} with a biased token.",
    ]
    assert missing(sentences, PAGE) == []
    assert all(last < first for last, first in zip(harder[10.0], harder[0.0], strict=True)), "each seed is lower"
    assert planted.rate("palate", "standard", "negated") == 3e-4
    assert min(scores("palate", "standard", "rnp", regime="negated")) > 95


def test_the_text_about_moved_findings_has_the_numbers_of_the_records(scores: Score) -> None:
    """The numbers of the earlier edition are quoted as they were printed."""
    from studies.rationales.plan import OTHER_REGIMES
    from studies.rationales.runs import FILES
    from studies.tables import read_records

    counts = {file.name.split("-")[1].split(".")[0]: len(read_records([str(file)])) for file in FILES}
    rnp = {(a, at): f"{mean(scores(a, at, 'rnp')):.1f}" for a in BOTH for at in ("skewed10", "skewed20")}
    assert {interlocked(scores(aspect, "biased70", "rnp", "x1")) for aspect in BOTH} == {"three"}
    a2r = f"{mean(scores('palate', 'skewed20', 'a2r')):.1f}"
    neighbors = [counts[commit] for commit in NEIGHBOR_COMMITS]
    regimes = {
        record["regime"] for file in FILES if file.name[16:24] in NEIGHBOR_COMMITS for record in read_records([file])
    }
    assert regimes == set(OTHER_REGIMES) - {"negated"}
    assert len(regimes) == 5
    biased = {
        name: f"{mean(scores('palate', 'biased80', name, regime=regime)):.1f}"
        for name, regime in (("rnp", "shared"), ("a2r", "apart"))
    }
    negated = {
        row: f"{mean(scores('palate', at, row, regime='negated')):.1f}"
        for row, at in (("rnp", "standard"), ("a2r", "biased80"), ("a2r-lambda-10", "biased80"))
    }
    sentences = [
        f"the {sum(counts.values())} records of `studies/records/planted_reviews-*.jsonl.gz`",
        f"{counts['db9835f']} runs were made at commit `db9835f`, {counts['0c1099d']} at `0c1099d`, and "
        f"{counts['af4afca']} (lower rates) at `af4afca`, with",
        "The {} of the neighboring settings, apart from negations, were made at `76dcec38` ({}), `4dc7bfe7` ({}) and "
        "`36d1aa4c` ({}).".format(sum(neighbors), *neighbors),
        f"(F1 7.1 before, now {biased['rnp']}). With independent aspects A2R has {biased['a2r']} there (before, 95.6).",
        f"at skewed 20 RNP had 1.1 and A2R 99.1, now {rnp['palate', 'skewed20']} and {a2r}.",
        f"in one seed of five (F1 83.3, now {rnp['palate', 'skewed10']}). "
        f"On aroma now one seed does (99.9, now {rnp['aroma', 'skewed10']}).",
        f"before, in all three (F1 1.0, now {mean(scores('palate', 'biased80', 'a2r-0.001')):.1f})",
        f"one seed of three interlocked (F1 66.5, now {negated['rnp']}). A2R has {negated['a2r']} there with a biased "
        f"token (before, 88.3), and {negated['a2r-lambda-10']} at λ = 10 (before, 79.3).",
    ]
    assert missing(sentences, PAGE) == []


def test_the_ledger_has_the_numbers_of_the_records(scores: Score, planted: Any) -> None:
    from studies.tables import spread

    appearance = "appearance", "standard"

    def f1(aspect: str, setting: str, row: str, **more: Any) -> str:
        return f"{mean(scores(aspect, setting, row, **more)):.1f}"

    skew = {a: [f1(a, f"skewed{epochs}", "rnp") for epochs in (10, 15, 20)] for a in BOTH}
    first = [f"{mean(scores('palate', f'skewed{epochs}', 'rnp', 'x1')):.1f}" for epochs in (20, 15, 10)]
    strengths = ("a2r-lambda-0.1", "a2r-lambda-0.5", "a2r", "a2r-lambda-2")
    lowest = min(
        mean(scores("palate", at, row, seeds=3)) for row in strengths for at in ("standard", "skewed20", "biased80")
    )
    zero = ("palate", "skewed20", "a2r-lambda-0")
    sentences = [
        "first sentence in {} % of the reviews at skewed 20 and in {} % at 15, but in {} % at 10".format(
            *(share.replace("100.0", "100") for share in first)
        ),
        "F1 of RNP at skewed 10, 15 and 20: {}, {} and {} on palate; {}, {} and {} on aroma.".format(
            *skew["palate"], *skew["aroma"]
        ),
        f"F1 of A2R at skewed 20: {f1('palate', 'skewed20', 'a2r')} on palate and {f1('aroma', 'skewed20', 'a2r')} on "
        f"aroma; RNP has {skew['palate'][2]} and {skew['aroma'][2]}.",
        f"F1 {f1('palate', 'skewed20', 'a2r')} at skewed 20 on planted reviews",
        f"F1 {f1(*zero)}, first sentence {mean(scores(*zero, 'x1')):.1f} % (paper 2.2 and 97.3, on palate).",
        f"F1 {f1('palate', 'biased80', 'rnp')} with RNP, {f1('palate', 'biased80', 'a2r')} with A2R if the "
        "learning rate of the generator is 1e-4.",
        "F1 in the standard setting: A2R {}, RNP {}".format(
            *(spread(runs, "f1") for runs in (planted.of(*appearance, "a2r"), planted.rnp(*appearance)))
        ),
        f"F1 on palate is {lowest:.1f} or more from 0.1 to 2",
        f"F1 {f1('palate', 'standard', 'a2r')} with A2R, {f1('palate', 'standard', 'rnp')} with RNP on palate.",
    ]
    assert missing(sentences, RESULTS / "ledger.md") == []
    pairs = list(zip(*(scores(*appearance, row) for row in ("a2r", "rnp")), strict=True))
    assert [a2r > rnp for a2r, rnp in pairs] == [True] * 5, "A2R is higher in each of five seeds."
    assert set(scores(*appearance, "rnp", "x1")) == {100.0}, "RNP always selects the first sentence"


def test_the_text_about_the_last_epoch_has_the_numbers_of_the_records(planted: Any) -> None:
    from studies.rationales.plan import CORE_SETTINGS, OTHER_REGIMES, TRAINING
    from studies.tables import values

    cells = [(at, regime) for regime in OTHER_REGIMES if regime != "negated" for at in CORE_SETTINGS]
    rnp = [planted.rnp("palate", *cell, 3) for cell in cells]
    first = min(min(values(runs, "x1", "last")) for runs in rnp if mean(values(runs, "x1")) > 50)
    assert all("last" in run for runs in rnp for run in runs)
    a2r = [run for at, regime in cells for run in planted.of("palate", at, "a2r", regime, 3)]
    late = planted.of("palate", "biased80", "a2r", "apart", 3)
    sentences = [
        f"X1 is {first:.0f} or more in each seed wherever",
        f"For A2R it was recorded in {sum('last' in run for run in a2r)} of {len(a2r)} runs.",
        f"all three seeds of A2R select the last epoch (F1 {mean(values(late, 'f1')):.1f})",
    ]
    assert missing(sentences, PAGE) == []
    assert {run["kept"] for run in late} == {TRAINING["epochs"]}


FRESH_TEXTS = {
    "movies, MiniLM": "minilm",
    "movies, GloVe": "movies",
    "planted, standard": "standard",
    "planted, skewed 20": "skewed20",
    "planted, biased 0.8": "biased80",
}
FRESH_ROWS = {
    "FRESH": "fresh",
    "FRESH, one window": "fresh-window",
    "A2R": "a2r",
    "RNP": "rnp",
    "RNP, straight-through": "rnp-st",
    "FR": "fr",
    "DR": "dr",
    "DR, straight-through": "dr",
}


def test_the_table_of_fresh_is_that_of_the_records() -> None:
    """Rows that refer to the table above are those of movies.jsonl."""
    from studies.fresh.table import rows

    recorded = {(line[0], line[1]): line[2:] for line in rows([str(ROOT / "studies" / "records" / "fresh.jsonl")])}
    lines = PAGE.read_text("utf-8").split("| texts | row | seeds |")[1].split("\n\n")[0].splitlines()[2:]
    texts, checked = "", set()
    for line in lines:
        first, row, seeds, *numbers = (cell.strip(" *") for cell in line.strip("|").split("|"))
        texts = first or texts
        if "(above)" in row:
            continue
        key = FRESH_TEXTS[texts], FRESH_ROWS[row]
        count, _, accuracy, full, p, r, f1, x1, reader, gap = recorded[key]
        precision, recall = ("", "") if texts.startswith("planted") else (p, r)
        assert [seeds, *numbers] == [count, accuracy, full, precision, recall, f1, x1, reader, gap], key
        checked.add(key)
    assert set(recorded) - checked == set()


def test_readme_compares_attention_with_both_variants_of_a2r() -> None:
    """The released variant agrees with people as well as attention does: naming A2R as printed alone would mislead."""
    runs: dict[tuple[str, float | None], list[float]] = {}
    for line in (ROOT / "studies" / "records" / "movies.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        runs.setdefault((record["row"], record.get("rate")), []).append(100 * record["chosen"]["test"]["f1"])
    attention, printed, released = (
        f"{sum(runs[row]) / len(runs[row]):.1f} %"
        for row in (("attention-minilm", None), ("a2r-minilm", 0.003), ("a2r-released-minilm", None))
    )
    sentence = f"(F1 {attention}) than A2R ({printed}), and as well as its released variant ({released};"
    assert sentence in (ROOT / "README.md").read_text(encoding="utf-8")
