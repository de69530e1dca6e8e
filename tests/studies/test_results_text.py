"""Numbers in the text of results pages are those of the records, or of the tables beside them."""

import json
import re
from collections import Counter, defaultdict
from statistics import mean, stdev
from typing import Any

import pytest
from scipy.stats import t

from result_pages import RESULTS, ROOT, missing, text_of

Records = list[dict[str, Any]]


def records(name: str) -> Records:
    lines = (ROOT / "studies" / "records" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a2r_on_few_reviews_has_the_numbers_of_the_records() -> None:
    from studies.a2r_small.table import table

    page = (ROOT / "docs" / "how-to" / "extract-rationales.md").read_text(encoding="utf-8")
    assert table() in page
    fast, slow = ([r["right_sentence"] for r in records("a2r_small") if r["rate"] == rate] for rate in (1e-3, 1e-4))
    sentence = (
        f"1e-3 was better: right sentence in {100 * mean(fast):.0f} %, at 1e-4 {100 * mean(slow):.0f} % (means over"
    )
    assert sentence in text_of(RESULTS / "rationales.md")


def test_the_coverage_of_the_intervals_of_compare_is_that_of_the_records() -> None:
    """Two effects of seeds and two numbers of texts for each number of seeds; all intervals cover 90 % or more."""
    from studies.interval_coverage.table import SHOWN, table

    runs = records("interval_coverage")
    assert Counter(run["seeds"] for run in runs) == {3: 4, 5: 4}
    assert table() in (ROOT / "docs" / "how-to" / "compare-techniques.md").read_text(encoding="utf-8")
    for run in runs:
        assert min(run["coverage"][kind] for kind in SHOWN) >= 0.9


def rows_below(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table whose header begins so."""
    lines = (RESULTS / f"{page}.md").read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(heading)) + 2
    cells = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        cells.append([cell.strip(" *") for cell in line.strip().strip("|").split("|")])
    return cells


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


# Long texts

READING = {"first 256 pieces": "truncated256", "first 509 pieces": "truncated509", "windows of 256": "windows"}
COLUMNS = ("accuracy", "accuracy, long", "accuracy, short", "coverage", "coverage, long", "fully covered")


def long_texts() -> dict[str, Records]:
    rows = defaultdict(list)
    for record in records("long_texts"):
        rows[record["row"]].append(record)
    return {row: sorted(runs, key=lambda run: run["seed"]) for row, runs in rows.items()}


def test_the_table_of_long_texts_is_that_of_the_records() -> None:
    rows = long_texts()
    table = {cells[0]: cells[1:] for cells in rows_below("long-texts", "| reading | accuracy |")}
    assert set(table) == set(READING)
    for label, row in READING.items():
        for column, cell in zip(COLUMNS, table[label], strict=True):
            values = [100 * run[column] for run in rows[row]]
            shown = (
                f"{mean(values):.1f} ± {stdev(values):.1f}" if column.startswith("accuracy") else f"{mean(values):.1f}"
            )
            assert cell == shown.replace("100.0", "100"), (label, column)


def test_the_text_about_long_texts_has_the_numbers_of_the_records() -> None:
    rows = long_texts()
    accuracy = {row: [run["accuracy"] for run in runs] for row, runs in rows.items()}
    coverage = {row: mean(run["coverage"] for run in runs) for row, runs in rows.items()}
    short, long, windows = (percent(mean(accuracy[row]), 1) for row in READING.values())
    points = {row: _points(accuracy["windows"], accuracy[row]) for row in ("truncated509", "truncated256")}
    assert coverage["windows"] == 1
    sentences = [
        f"leaves {percent(1 - coverage['truncated509'])} of the words without a weight, "
        f"truncation at 256 pieces {percent(1 - coverage['truncated256'])}",
        f"Accuracy is {windows} with windows, {long} at 509 pieces and {short.removesuffix(' %')} % at 256",
        "the difference is {} points before rounding ({})".format(*points["truncated509"]),
        "The difference between windows and 256 pieces is {} points ({})".format(*points["truncated256"]),
        f"they are {percent(rows['windows'][0]['long'])} of the test reviews",
        "{:,} training reviews, 2 epochs, {:,} test reviews".format(*rows["windows"][0]["sizes"]),
        f"{len(rows['windows'])} seeds: mean ± standard deviation",
    ]
    assert not missing(sentences, RESULTS / "long-texts.md")


WORKLOADS = {
    "512 pieces": "512", "1,024 pieces": "1024", "4,096 pieces": "4096", "16,384 pieces": "16384", "mixed": "mixed",
    "IMDB reviews": "reviews", "IMDB reviews of several windows": "long reviews",
}  # fmt: skip


def test_the_cost_of_long_texts_is_that_of_the_records_and_within_the_target() -> None:
    before, after, again, cpu = records("long_texts_cost")
    columns = [after["forward, floor"], after["forward"], before["forward"], after["backward"]]
    short = {
        name: {length: run[length] for length in ("512", "1024", "mixed")}
        for name, run in cpu.items()
        if "ward" in name
    }
    columns += [short["forward"], short["backward"]]
    table = {cells[0]: cells[1:] for cells in rows_below("long-texts", "| texts | floor |")}
    assert set(table) == set(WORKLOADS)
    for label, workload in WORKLOADS.items():
        shown = [f"{column[workload]:.2f}" if workload in column else "" for column in columns]
        assert table[label] == shown, label
    worst = {name: max(after[column].values()) for name, column in (("forward", "forward"), ("training", "backward"))}
    assert max(worst.values()) <= 1.2
    steps = ("forward", "backward")
    change = max(abs(again[step][name] - after[step][name]) for step in steps for name in after[step])
    assert max(max(again[step].values()) for step in steps) <= 1.2
    sentences = [
        f"at commit `{again['commit']}` has ratios that differ from the columns *H200* by at most {change:.2f}",
        f"[{min(after['backward'].values()):.2f} to {worst['training']:.2f} times](#cost) that of texts",
        f"at most {worst['training']:.2f} times a piece of a single window: "
        f"{worst['forward']:.2f} in forward passes on a GPU, {worst['training']:.2f} in training",
        f"the ratio is {after['forward']['long reviews']:.2f} to {after['forward']['reviews']:.2f}.",
    ]
    assert not missing(sentences, RESULTS / "long-texts.md")


def test_the_overlap_and_memory_of_long_texts_are_those_of_the_records() -> None:
    overlap, *memory = records("long_texts_windows")
    similarity = {
        f"{size} (default)" if size == "16" else size: [
            *(f"{values[name]:.{digits}f}" for name, digits in (("mean", 3), ("5 % quantile", 3), ("minimum", 2))),
            f"{256 / (256 - int(size)):.2f}",
        ]
        for size, values in overlap["similarity"].items()
    }
    assert {cells[0]: cells[1:] for cells in rows_below("long-texts", "| overlap of 256 |")} == similarity
    assert not missing([f"on {overlap['texts']} training reviews of 400 to 512"], RESULTS / "long-texts.md")
    peaks = [
        [f"{record['words']:,}", *(f"{peak:,}" for peak in record["peak MB before, predict, explain"])]
        for record in memory
    ]
    table = rows_below("long-texts", "| device | words |")
    assert [cells[1:] for cells in table if cells[0] == "CPU (process)"] == peaks


def _points(ours: list[float], others: list[float]) -> tuple[str, str]:
    """Percentage points with a t interval over pairs of seeds."""
    pairs = [100 * (a - b) for a, b in zip(ours, others, strict=True)]
    half = t.ppf(0.975, len(pairs) - 1) * stdev(pairs) / len(pairs) ** 0.5
    low, high = (f"{end:.1f}".replace("-", "−") for end in (mean(pairs) - half, mean(pairs) + half))
    return f"{mean(pairs):.1f}", f"95 % CI {low} to {high}"


# Label leakage

CORPORA = {"planted": "planted", "IMDB": "imdb", "Yelp": "yelp", "600 reviews": "reviews600"}
SELECTORS = {
    "L2X with ŷ, plain": "l2x-y",
    "… random-pretraining": "pretrained-y",
    "L2X without ŷ": "l2x",
    "leave-one-out": "leave-one-out",
    "deciding words": "truth",
}
PADDED = {
    "padding cannot be selected, plain": "l2x-y",
    "padding can be selected, plain": "padded-y",
    "padding can be selected, mask-neutral": "padded-neutral-y",
    "padding cannot be selected, mask-neutral": "neutral-y",
}
READER = "independent-reader-accuracy"


def selections() -> dict[tuple[str, str], Records]:
    cells = defaultdict(list)
    for record in records("independent_reader"):
        cells[record["corpus"], record["row"]].append(record)
    return cells


def assert_shown(cell: str, runs: Records, key: str) -> None:
    """The mean, and the range of the seeds if it is in parentheses."""
    values = [run[key] for run in runs if key in run]
    if not values:
        assert cell == ""
        return
    numbers = [float(number) for number in re.findall(r"-?\d\.\d+", cell.replace("−", "-"))]
    shown = [mean(values), min(values), max(values)][: len(numbers)]
    assert len(numbers) in (1, 3), cell
    assert numbers == pytest.approx(shown, abs=0.00051), (cell, shown)


def test_the_tables_of_the_independent_reader_are_those_of_the_records() -> None:
    cells, corpus, seen = selections(), "", 0
    for first, selector, *numbers, opinions, warned in rows_below("shortcuts", "| data, k, held-out texts |"):
        name = first.split(",")[0]
        corpus = CORPORA[name] if name else corpus
        runs = cells[corpus, SELECTORS[selector]]
        if first:
            assert first.endswith(f" {runs[0]['n']:,}"), first
        keys = (
            "fidelity",
            "post-hoc-accuracy",
            READER,
            f"{READER}/random-words",
            "leakage-gap",
            "leakage-gap/black-box",
        )
        for cell, key in zip(numbers, keys, strict=True):
            assert_shown(cell, runs, key)
        assert opinions == percent(mean(run["opinion-share"] for run in runs)), (corpus, selector)
        assert warned == f"{sum(run['leaks'] for run in runs)} of {len(runs)}"
        seen += len(runs)
    for label, count, post_hoc, reader, fidelity, warned in rows_below("shortcuts", "| L2X with ŷ | seeds |"):
        runs = cells["imdb", PADDED[label]]
        for cell, key in ((post_hoc, "post-hoc-accuracy"), (reader, READER), (fidelity, "fidelity")):
            assert_shown(cell, runs, key)
        assert (count, warned) == (str(len(runs)), f"{sum(run['leaks'] for run in runs)} of {len(runs)}")
        seen += len(runs) * (PADDED[label] != "l2x-y")
    assert seen == 100, "every record is in a table"


LEAKING = ("l2x-y", "padded-y", "padded-neutral-y", "neutral-y")


def test_the_counts_of_warnings_are_those_of_the_records() -> None:
    groups = (
        LEAKING[:1],
        LEAKING[1:],
        ("pretrained-y", "l2x"),
        ("leave-one-out", "truth"),
    )
    counts = []
    for which in groups:
        runs = [run for run in records("independent_reader") if run["row"] in which]
        gaps = [sum(run[f"{gap} low"] > 0.05 for run in runs) for gap in ("leakage-gap/black-box", "leakage-gap")]
        counts.append([len(runs), sum(run["leaks"] for run in runs), *gaps])
    table = rows_below("shortcuts", "| runs | number |")
    assert [[int(cell) for cell in cells[1:]] for cells in table] == counts
    leaking = [sum(pair) for pair in zip(*counts[:2], strict=True)]
    fitted, warned, *_ = counts[2]
    selected = [run for run in records("independent_reader") if run["row"] in groups[2]]
    without_gap = [run for run in selected if run["fidelity"] <= run["post-hoc-accuracy"]]
    imdb = [run["leaks"] for run in records("independent_reader") if run["corpus"] == "imdb" and run["row"] in LEAKING]
    sentences = [
        f"warned in {leaking[1]} of {leaking[0]} runs of methods that leak, and in {warned} of {fitted} runs of",
        f"In {len(without_gap)} of the {fitted}, fidelity does not exceed post-hoc accuracy",
        f"Only IMDB was not used to design the rule: {sum(imdb)} of {len(imdb)} there, and 0 of 10.",
    ]
    assert not missing(sentences, RESULTS / "shortcuts.md")


def test_the_text_about_leakage_has_the_numbers_of_the_records() -> None:
    cells = selections()
    post_hoc = {key: [run["post-hoc-accuracy"] for run in runs] for key, runs in cells.items()}
    leaking = post_hoc["imdb", "l2x-y"]
    imdb, yelp = (
        {row: percent(mean(post_hoc[corpus, row])) for row in ("l2x-y", "pretrained-y", "l2x")}
        for corpus in ("imdb", "yelp")
    )
    majority = max(run[f"{READER}/no-words"] for run in cells["imdb", "l2x-y"])
    neutral = post_hoc["imdb", "neutral-y"]
    fitted = [
        run for (corpus, row), runs in cells.items() for run in runs if corpus != "reviews600" and "fidelity" in run
    ]
    plotted = [run for run in fitted if not run["row"].startswith("padded")]
    missed = min(cells["imdb", "neutral-y"], key=lambda run: run["leaks"])
    raised = mean(post_hoc["imdb", "padded-neutral-y"]) - mean(post_hoc["imdb", "padded-y"])
    one_class = percent(cells["yelp", "l2x-y"][0][f"{READER}/no-words"])
    rows = {row: cells["yelp", row] for row in ("l2x-y", "pretrained-y")}
    shares = {row: [run["unseen-share"] for run in runs] for row, runs in rows.items()}
    unseen = {row: f"{percent(min(seen))[:-2]}–{percent(max(seen))}" for row, seen in shares.items()}
    other = {row: percent(mean(run[f"{READER}/by-class=0"] for run in runs)) for row, runs in rows.items()}
    sentences = [
        f"recovers {percent(mean(run['fidelity'] for run in cells['imdb', 'l2x-y']))} of the predictions from these "
        f"words, but the black box only {imdb['l2x-y']}. A constant prediction recovers {percent(majority, 1)}.",
        f"share to {imdb['pretrained-y']}; mask-neutral weighting does not raise it. L2X without ŷ has {imdb['l2x']}.",
        f"On Yelp, a constant prediction recovers {one_class}, L2X with ŷ {yelp['l2x-y']}, without ŷ {yelp['l2x']}, "
        f"and with random pretraining {yelp['pretrained-y']}.",
        f"run on IMDB alone, and has {percent(mean(neutral))}.",
        f"the five seeds behind {imdb['l2x-y']} range from {percent(min(leaking))[:-2]} to {percent(max(leaking))}",
        f"The plot has {len(plotted)} fitted explainers",
        f"On Yelp {unseen['l2x-y']} of its words are invisible to the black box "
        f"(random-pretraining: {unseen['pretrained-y']})",
        f"predicts one class for {one_class} of the texts",
        f"the reader recovers {other['l2x-y']} from leaking selections and {other['pretrained-y']} from those of",
        f"raises mean post-hoc accuracy by {raised:.2f}",
        f"does not raise post-hoc accuracy ({mean(neutral):.3f} against {mean(leaking):.3f})",
        f"recovers {missed[READER]:.3f} of the predictions, and the gap to the reader is {missed['leakage-gap']:.3f}",
    ]
    assert not missing(sentences, RESULTS / "shortcuts.md")
    index = text_of(RESULTS / "index.md")
    assert (
        f"recovers only {imdb['l2x-y']} of its predictions (without reading it {imdb['l2x']}); "
        f"with random pretraining {imdb['pretrained-y']}"
    ) in index
    assert f"on Yelp {yelp['l2x-y']} and {yelp['pretrained-y']}" in index


# Leakage


def test_the_texts_about_leakage_have_the_numbers_of_the_records() -> None:
    """A selection that encodes the label by value: no gap, no warning, and words that the black box ignores."""
    runs = records("value_encoding")
    assert {
        (run["fidelity"], run["independent-reader-accuracy"], run["leakage-gap"], run["warned"]) for run in runs
    } == {(1.0, 1.0, 0.0, 0)}
    assert {(run["positive, given good"], run["positive, given good selected"]) for run in runs} == {(0.75, 1.0)}
    ignored = [100 * run["ignored"] for run in runs]
    sentence = (
        "In five seeds, fidelity and the accuracy of the reader are 1.000, the gap is 0.000, and no run warns. Yet "
        f"{min(ignored):.0f} to {max(ignored):.0f} % of the selected words"
    )
    assert len(runs) == 5
    assert missing([sentence], ROOT / "docs" / "concepts" / "leakage.md") == []


@pytest.mark.slow
def test_an_encoding_by_value_has_no_leakage_gap() -> None:
    from studies.value_encoding.run import measure

    run = measure(0)
    assert (run["warned"], run["positive, given good"], run["positive, given good selected"]) == (0, 0.75, 1.0)
    assert run["fidelity"] > 0.99
    assert abs(run["leakage-gap"]) < 0.01
    assert run["ignored"] > 0.1
