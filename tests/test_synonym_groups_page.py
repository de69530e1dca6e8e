"""docs/results/synonym-groups.md, and the pages that quote it, have the numbers of the records in their text."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LONG, EIGHT, SHORT = "4-4-t2-e8-own-x0.5-s4", "4-4-t2-e8-own-x0.5-s8", "4-4-t2-e2"
THREE = ["sst2", "rotten_tomatoes", "tweet_emotion"]
BASE, BOTH, LONGER = ("vanilla", "none"), ("vanilla", "both"), (LONG, "both")
UNUSED = (LONG, "wn"), (LONG, "cf")
"""The groups are of the other table than the substitutes: counter-fitted, WordNet."""
EVERY = "five_seeds tempered long_student"


def read(file: str) -> str:
    """A page as one line, so that line breaks do not matter."""
    return " ".join((ROOT / file).read_text("utf-8").split())


def section(name: str) -> str:
    """Text from a heading to the next one; "" is the opening."""
    parts = re.split(r"(?:^| )##? ", read("docs/results/synonym-groups.md"))
    return next(part for part in parts if part.startswith(name or "Synonym groups **Finding"))


@pytest.fixture
def records(bench: None) -> Any:
    """Names of record files, corpora -> the records of test texts."""
    from synonym_table import Records

    def of(files: str, corpora: list[str], split: str = "test") -> Any:
        names = [ROOT / "studies" / "records" / f"synonym_groups_{name}.jsonl" for name in files.split()]
        return Records([*map(str, names)], split, corpora)

    return of


@pytest.fixture
def three(records: Any) -> Any:
    """The data sets of the plot and the main table."""
    return records("long_student five_seeds", THREE)


@pytest.fixture
def four(records: Any) -> Any:
    """The data sets of the long student."""
    return records("five_seeds tempered long_student", [*THREE, "imdb"])


def times(row: str) -> str:
    """Median training time over vanilla's on one H200."""
    from consensus_cost import table

    return next(line[-1] for line in table(cost_records()) if line[0].endswith("db9835f") and line[2] == row)


def cost_records() -> list[dict[str, Any]]:
    import json

    lines = (ROOT / "studies" / "records" / "consensus_cost.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def spans(run: Any, cf: tuple[str, str], wn: tuple[str, str]) -> list[str]:
    """How many fewer flips than vanilla under both tables: lowest and highest data set."""
    texts = []
    for row, measure in ((cf, "label-flip/cf3"), (wn, "label-flip/wn3")):
        less = [100 - 100 * run.average(c, row, measure) / run.average(c, BASE, measure) for c in run.present(row)]
        texts.append(f"{min(less):.0f} to {max(less):.0f} %")
    return texts


def unchecked(text: str, sentences: list[str]) -> list[str]:
    """Decimal numbers and percentages of a text outside these sentences."""
    for sentence in sentences:
        text = text.replace(sentence, " ")
    return re.findall(r"\d+\.\d+|\d+ %", text)


def test_the_opening_has_the_numbers_of_the_records(records: Any, three: Any, four: Any) -> None:
    from stability_text import fill

    def rates(first: tuple[str, str], second: tuple[str, str] | None = None) -> list[str]:
        rows = {"cf3": first, "wn3": second or first}
        return [f"{100 * three.level(row, f'label-flip/{probe}'):.1f} %" for probe, row in rows.items()]

    def fewer(row: tuple[str, str], probe: str) -> str:
        return f"{100 - 100 * three.ratio(row, f'label-flip/{probe}'):.0f}"

    def flips(groups: str, probe: str) -> list[float]:
        names = [name for name in ("vanilla", "word-at", SHORT, LONG) if three.present((name, groups))]
        return [three.ratio((name, groups), f"label-flip/{probe}") for name in names]

    vanilla, run = rates(BASE), records(EVERY, THREE)
    both, long, unused = (spans(run, row, wn) for row, wn in ((BOTH, BOTH), (LONGER, LONGER), UNUSED))
    less = {f"{100 - 100 * four.ratio((name, 'both'), 'comprehensiveness'):.0f} %" for name in (LONG, "word-at")}
    minilm, first = (records(name, ["sst2-minilm"]) for name in ("minilm-db9835f", "tempered"))
    student, word_at = (
        (-run.gain((name, "both")), 100 * run.ratio((name, "both"), "comprehensiveness"))
        for run, name in ((minilm, LONG), (first, "word-at"))
    )
    only = {"cf": "wn-only3", "wn": "cf-only3"}
    groups, students = ([fewer((name, g), p) for g, p in only.items()] for name in ("vanilla", LONG))
    bounds = [f"{edge(flips('both', probe)):.2f}" for probe in ("cf3", "wn3") for edge in (min, max)]
    linked = flips("linked", "cf3")
    sentences = [
        f"vanilla's label flips in {vanilla[0]} (counter-fitted table) and {vanilla[1]} (WordNet) of the texts.",
        f"Groups from both tables lower this by {both[0]} and {both[1]} (range of three data sets), "
        f"and with the long student of `consensus` by {long[0]} and {long[1]}.",
        "Under a table that was not used, with groups from the other table alone, "
        f"this student has {unused[0]} and {unused[1]} fewer flips.",
        f"groups of both tables lower flips to between {bounds[0]} and {bounds[1]}, and linked groups to about "
        f"{(min(linked) + max(linked)) / 2:.2f}. Under WordNet substitutions, groups of both tables lower them to "
        f"between {bounds[2]} and {bounds[3]}.",
        f"train the [long student](#long-student) ({float(times('long student').split()[0]):.1f} times).",
        "`word-at` ({:.1f} times vanilla's training time; {} and {} flips)".format(
            float(times("word-at").split()[0]), *rates(("word-at", "both"))
        ),
        f"Removing top-weighted words changes the prediction {' and '.join(less)} less than with vanilla",
        fill("an outside reviewer measured [{outside long-student label-flip} fewer flips]"),
        f"top-weighted words of `word-at` matter {100 - word_at[1]:.0f} % less, macro-F1 is lower by "
        f"{student[0]:.3f} (long student) and {word_at[0]:.3f} (`word-at`).",
        f"The {' and '.join(less)} are of the long student and of `word-at`",
        f"the long student keeps {student[1]:.0f} % of vanilla's comprehensiveness, the effect of removing "
        f"top-weighted words; `word-at` with groups keeps only {word_at[1]:.0f} %.",
        f"macro-F1 is {four.gain(('word-at', 'both')):.3f} above vanilla's for `word-at` and "
        f"{four.gain((LONG, 'both')):.3f} for the long student",
        f"Groups from WordNet alone have {fewer(('vanilla', 'wn'), 'wn3')} % fewer flips than vanilla under WordNet "
        f"substitutions, but only {fewer(('vanilla', 'wn'), 'cf3')} % fewer under the counter-fitted table.",
        f"Groups from the counter-fitted table alone have {fewer(('vanilla', 'cf'), 'cf3')} % fewer under their own "
        f"table, and {fewer(('vanilla', 'cf'), 'wn3')} % fewer under WordNet.",
        f"groups alone have {min(groups)} to {max(groups)} % fewer flips, "
        f"and the long student {min(students)} to {max(students)} % fewer.",
    ]
    assert student[0] > word_at[0]
    opening = section("")
    assert [sentence for sentence in sentences if sentence not in opening] == []
    assert set(unchecked(opening, sentences)) == {"95 %"}


def test_the_bullets_of_the_main_table_have_the_numbers_of_the_records(records: Any) -> None:
    five = records("five_seeds", THREE)

    def ratio(technique: str, groups: str, measure: str) -> str:
        return f"{five.ratio((technique, groups), measure):.2f}"

    cf, wn = (partial(ratio, measure=f"label-flip/{probe}") for probe in ("cf3", "wn3"))
    cf_only, wn_only = (partial(ratio, measure=f"label-flip/{probe}") for probe in ("cf-only3", "wn-only3"))
    shift, seeds = (partial(ratio, measure=measure) for measure in ("jensen-shannon/cf3", "seeds"))
    linked = [f"{wn(name, 'both')} to {wn(name, 'linked')}" for name in ("vanilla", "word-at", SHORT)]
    sentences = [
        f"Word-at alone lowers the divergence ({shift('word-at', 'none')}), but hardly the flips "
        f"({cf('word-at', 'none')}). Groups alone lower the flips ({cf('vanilla', 'both')}). Both together reach "
        f"{shift('word-at', 'both')} and {cf('word-at', 'both')}.",
        f"The divergence between seeds stays with groups alone ({seeds('vanilla', 'both')}). "
        f"Two short teachers lower it to {seeds(SHORT, 'both')},",
        f"Two short teachers with groups of counter-fitted vectors have {wn(SHORT, 'cf')} of vanilla's flips under "
        f"WordNet, and groups of WordNet have {cf(SHORT, 'wn')} under counter-fitted vectors. Under pairs that the "
        f"own table lacks, {wn_only(SHORT, 'cf')} and {cf_only(SHORT, 'wn')} are left. Most of that is not due to the "
        f"groups: without any the ratios are {wn_only(SHORT, 'none')} and {cf_only(SHORT, 'none')}.",
        f"groups of WordNet alone ({wn(SHORT, 'both')} against {wn(SHORT, 'wn')}): a word is in one group only. "
        f"`linked` merges groups, which leaves {wn(SHORT, 'linked')}.",
        f"Under *wn* it lowers them less: from {linked[0]}, {linked[1]} and {linked[2]}.",
    ]
    page = section("Test texts")
    assert [sentence for sentence in sentences if sentence not in page] == []


def test_the_bullets_of_long_texts_and_transformers_have_the_numbers_of_the_records(records: Any) -> None:
    from studies.stability.statistics import difference

    imdb = records("tempered imdb-3a7fb79 long_student", ["imdb"])
    first, second = (records(name, ["sst2-minilm"]) for name in ("tempered", "minilm-db9835f"))
    short, long = ("4-4-t2-e2-x0.5", "both"), (LONG, "both")
    kept = sorted(imdb.ratio(("word-at", groups), "comprehensiveness") for groups in ("none", "both"))
    levels = [run.average("sst2-minilm", BASE, "macro-f1") for run in (second, first)]
    gain, low, high, _ = difference(
        *({c: second.values(c, row, "macro-f1") for c in second.corpora} for row in (long, BASE))
    )
    sentences = [
        f"Vanilla flips {100 * imdb.average('imdb', BASE, 'label-flip/cf3'):.1f} % of the labels,",
        f"lower flips under *cf* to {imdb.ratio(short, 'label-flip/cf3'):.2f} of vanilla's and the divergence between "
        f"seeds to {imdb.ratio(short, 'seeds'):.2f}, with macro-F1 {imdb.gain(short):.3f} higher. Their "
        f"comprehensiveness is {100 - 100 * imdb.ratio(short, 'comprehensiveness'):.0f} % lower,",
        f"has a Δp of {imdb.ratio(long, 'prediction-change/cf3'):.2f} on IMDB (two short teachers: "
        f"{imdb.ratio(short, 'prediction-change/cf3'):.2f}), and {imdb.ratio(long, 'comprehensiveness'):.2f} of "
        "vanilla's comprehensiveness.",
        f"word-at keeps {kept[0]:.2f} to {kept[1]:.2f} of vanilla's comprehensiveness,",
        f"On MiniLM, groups lower macro-F1 by {-first.gain(BOTH):.3f},",
        f"lowers the divergence between seeds to {first.ratio(short, 'seeds'):.2f}.",
        f"a macro-F1 of {levels[0]:.3f} ({levels[1]:.3f} in the first run). Macro-F1 of the long student "
        f"changes by −{-gain:.3f} (95 % interval −{-low:.3f} to {high:.3f}), so that a loss is not shown. It keeps "
        f"{second.ratio(long, 'comprehensiveness'):.2f} of vanilla's comprehensiveness, and flips under *cf* fall to "
        f"{second.ratio(long, 'label-flip/cf3'):.2f}.",
    ]
    page = section("IMDB and MiniLM")
    assert [sentence for sentence in sentences if sentence not in page] == []
    assert unchecked(page[page.index("- On IMDB") :], sentences) == []


def test_the_bullets_of_the_long_student_have_the_numbers_of_the_records(three: Any, four: Any) -> None:
    from synonym_table import targets_table

    long, eight, linked = (LONG, "both"), (EIGHT, "both"), (EIGHT, "linked")
    value, interval = next(line[3:5] for line in targets_table(four, LONG) if line[0].startswith("comprehensiveness"))

    def kept(row: tuple[str, str], digits: int = 2) -> str:
        return f"{four.ratio(row, 'comprehensiveness'):.{digits}f}"

    def flips(row: tuple[str, str], *probes: str) -> str:
        return " and ".join(f"{four.ratio(row, f'label-flip/{probe}'):.2f}" for probe in probes)

    by_data = {
        c: f"{four.average(c, long, 'comprehensiveness') / four.average(c, BASE, 'comprehensiveness'):.2f}"
        for c in four.corpora
    }
    weights = [kept((f"4-4-t2-e8-own-x0.5{weight}", "both")) for weight in ("", "-s2", "-s4", "-s8", "-s16")]
    two_epochs = "4-4-t2-e2-own-x0.5", "both"
    assert weights[3] == weights[4]
    sentences = [
        f"{value} of vanilla's, with a 95 % interval of {interval} (weight 8: {kept(eight, 3)}). It is "
        f"{by_data['rotten_tomatoes']} on Rotten Tomatoes, {by_data['sst2']} on SST-2, {by_data['imdb']} on IMDB and "
        f"{by_data['tweet_emotion']} on tweet_emotion, and {four.equal_confidence(long):.2f} at equal confidence.",
        f"Weights 1, 2 and 4 have {weights[0]}, {weights[1]} and {weights[2]} of vanilla's comprehensiveness; "
        f"weights 8 and 16 have {weights[3]}.",
        f"students of counter-fitted pairs have {flips((LONG, 'cf'), 'wn3')} of vanilla's flips under WordNet, "
        f"students of WordNet pairs {flips((LONG, 'wn'), 'cf3')} under counter-fitted vectors.",
        f"Under pairs that only the other table has, {flips((LONG, 'cf'), 'wn-only3')} and "
        f"{flips((LONG, 'wn'), 'cf-only3')} are left.",
        f"lowers flips to {flips(linked, 'cf3', 'wn3')}. It has less comprehensiveness ({kept(linked)}) and macro-F1 "
        f"({four.gain(linked):+.3f}).",
        f"{four.cost(long):.1f} vanilla runs, as epochs × cost of a step, and "
        f"{float(times('long student').split()[0]):.1f} times vanilla's [training time](#training-time). With 2 "
        f"epochs ({four.cost(two_epochs):.1f} runs) flips stay at {flips(two_epochs, 'cf3', 'wn3')}.",
    ]
    page = section("Long student")
    assert [sentence for sentence in sentences if sentence not in page] == []
    assert unchecked(page[page.index("- **All targets") :], sentences) == []

    def excess(c: str, row: tuple[str, str]) -> float:
        return float(four.average(c, row, "confidence") - four.average(c, row, "accuracy"))

    assert [c for c in four.corpora if excess(c, long) > excess(c, BASE)] == ["rotten_tomatoes"]


def test_the_long_student_meets_every_target_but_cost(four: Any) -> None:
    from synonym_table import TARGETS, targets_table

    heading, *rows = targets_table(four, LONG)
    assert [row[0] for row in rows if row[heading.index("met")] != "yes"] == []
    missed = [row[0] for row in targets_table(four, EIGHT)[1:] if row[-1] != "yes"]
    assert missed == ["comprehensiveness ≥ 0.93"]
    page = section("Targets")
    for (_, _, _, target), row, other in zip(TARGETS, rows, targets_table(four, EIGHT)[1:], strict=True):
        low, high = row[4].split(" to ")
        bold = "**" if other[-1] == "no" else ""
        bar = target.replace("+0", "0") if target == "> +0" else target
        assert re.search(rf"\| {re.escape(bar)} \|[^|]+\|[^|]+\| {re.escape(f'{row[3]} [{low}, {high}]')} \| "
                         rf"{re.escape(f'{bold}{other[3]}{bold}')} \|", page), row  # fmt: skip
    cost = [f"**{four.cost((name, 'both')):.2f}**" for name in (LONG, EIGHT)]
    assert f"| ≤ 3 | **3.27** | **3.27** | {cost[0]} | {cost[1]} |" in page


def test_the_tables_of_cost_have_the_numbers_of_the_records(four: Any) -> None:
    from consensus_cost import table

    page = section("Training time")
    measured = {(line[0], line[2]): line for line in table(cost_records())}
    for device, row, name in (
        ("cuda, commit db9835f", "word-at", "word-at"),
        ("cuda", "two short teachers", "two short teachers, earlier run"),
        ("cuda, commit db9835f", "long student", "long student"),
    ):
        assert f"| {name} | both | {' | '.join(measured[device, row][4:])} |" in page
    assert f"| vanilla | none | {measured['cuda, commit db9835f', 'vanilla'][4]} | 1.00 |" in page
    assert f"In the earlier run, vanilla took {measured['cuda', 'vanilla'][4]} s." in page
    names = {
        "vanilla": "vanilla",
        "word-at": "word-at",
        "4-4-t2-e2-own-x0.5": "two short teachers, 2 epochs, T = 0.5, weight 1",
        "4-4-t2-e4-own-x0.35": "two short teachers, 4 epochs, T = 0.35, weight 1",
        "4-4-t2-e8-own-x0.5": "two short teachers, 8 epochs, T = 0.5, weight 1",
        LONG: "long student",
    }
    for technique, name in names.items():
        row = technique, "both"
        count = min(len(four.cells[corpus, row]) for corpus in four.corpora)
        measures = ("label-flip/cf3", "label-flip/wn3", "seeds", "comprehensiveness")
        values = [f"{four.ratio(row, measure):.2f}" for measure in measures]
        cells = [name, f"{four.cost(row):.2f}", str(count), *values, f"{four.gain(row):+.3f}"]
        assert f"| {' | '.join(cells)} |" in page


def test_other_pages_repeat_the_numbers_of_the_long_student(records: Any, three: Any, four: Any) -> None:
    """The stability study, the index of the results and the how-to."""
    long, both = (LONG, "both"), (SHORT, "both")

    time = float(times("long student").split()[0])
    index = read("docs/results/index.md")
    assert f"| [long student](synonym-groups.md#long-student)† | {time:.1f} |" in read("docs/results/stability.md")
    fewer, unused = (spans(records(EVERY, THREE), cf, wn) for cf, wn in ((long, long), UNUSED))
    assert (
        f"{fewer[0]} fewer labels flip than with vanilla under three counter-fitted synonyms, {fewer[1]} fewer under "
        "WordNet" in index
    )
    assert f"a table that was not used: {unused[0]} and {unused[1]} fewer" in index
    how_to = read("docs/how-to/train-stable-classifier.md")
    assert (
        f"keeps {100 * four.ratio(long, 'comprehensiveness'):.0f} % of vanilla's comprehensiveness, with fewer label "
        f"flips ({four.ratio(long, 'label-flip/cf3'):.2f} of vanilla's instead of "
        f"{three.ratio(both, 'label-flip/cf3'):.2f}), in {time:.1f} times vanilla's training time"
    ) in how_to


def rows_of(page: str) -> str:
    """A section without bold marks."""
    return page.replace("**", "")


def test_the_table_of_flatness_has_the_numbers_of_the_records(records: Any) -> None:
    from synonym_table import tempered_table

    names = {SHORT: "two short teachers", "linked": "both, linked"}
    page, five, cells = section("Flatness"), records("five_seeds", THREE), {}
    for technique, groups, entropy, *values in tempered_table(five, "test")[1:]:
        control = technique.startswith("vanilla, tempered")
        shifts = [" / ".join(values[i : i + 3]) for i in (0, 3, 6)]
        row = [names.get(technique, technique), "none" if control else names.get(groups, groups), entropy, *shifts]
        cells[f"| {' | '.join([*row, *values[9:12]])} |"] = values
    shown = [row for row in cells if row in page]
    assert len(shown) == page.count("| vanilla, tempered |") * 2 == 10
    first = shown.index(next(row for row in shown if row.startswith("| two short teachers | both |")))
    student, control = (cells[row] for row in shown[first : first + 2])
    assert (
        f"Flatness explains part of the divergence: {control[0]} instead of 1, against {student[0]}. It explains "
        f"almost none of the flips ({control[1]} against {student[1]})"
    ) in page


CHEAPER = {
    "word-at": "word-at, one model",
    "fast-4-4": "word-at of 4 epochs, rate × 4, one model",
    "t1-e2": "1 teacher",
    "t2-e2": "2 teachers",
    "t2-e2-equal-entropy": "2 teachers of equal entropy",
    "t3-e2": "3 teachers",
    "t5-e2": "5 teachers",
    "2-8-t2-e2": "2 teachers of 2 epochs, rate × 8",
    "3-4-t2-e2": "2 teachers of 3 epochs, rate × 4",
    "3-4-t3-e2": "3 teachers of 3 epochs, rate × 4",
    "3-8-t2-e2": "2 teachers of 3 epochs, rate × 8",
    SHORT: "2 teachers of 4 epochs, rate × 4",
    "4-4-t2-e1": "the same, student of 1 epoch",
    "4-4-t2-e2-no-swaps": "the same, no substitutions",
    "5-2-t2-e1": "2 teachers of 5 epochs, rate × 2, student of 1 epoch",
    "snapshots-4-2-e2": "snapshots after 4 and 2 epochs",
    "snapshots-5-3-e2": "snapshots after 5 and 3 epochs",
    "snapshots-6-3-e1": "snapshots after 6 and 3 epochs, student of 1 epoch",
    "snapshots-4-2-2-e1": "snapshots after 4, 2 and 2 epochs, student of 1 epoch",
    "self-anchor": "self-anchor",
}
"""Row of the records -> row of the page."""


def test_the_table_of_cheaper_students_has_the_numbers_of_the_records(bench: None) -> None:
    from studies.tables import minus_signs
    from synonym_table import Records, main_table

    cheaper = Records([str(ROOT / "studies" / "records" / "synonym_groups.jsonl")], "validation", THREE)
    page = rows_of(section("Cheaper students"))
    heading, *table = main_table(cheaper)
    columns = ["cost", "models", *heading[3:6], "seeds", "comp.", "entropy"]
    rows = [
        [
            "vanilla, no groups" if tuple(line[:2]) == BASE else CHEAPER[line[0]],
            *(line[heading.index(c)] for c in columns),
        ]
        for line in table
        if tuple(line[:2]) == BASE or (line[1] == "both" and line[0] in CHEAPER)
    ]
    lines = [minus_signs(f"| {' | '.join(row)} |").replace("| nan |", "| – |") for row in rows]
    assert len(lines) == len(CHEAPER) + 1 == page.count(" / ") // 4
    assert [line for line in lines if line not in page] == []
    seeds = [f"{cheaper.ratio((f't{count}-e2', 'both'), 'seeds'):.2f}" for count in (1, 2, 3, 5)]
    cost = f"{cheaper.cost((SHORT, 'both')):.2f}"
    assert f"{', '.join(seeds[:3])} and {seeds[3]} with one, two, three and five." in page
    assert f"student of a quarter of the epochs cost {cost} times vanilla:" in page
    assert f"{cost} in the run of the [cheaper students](#cheaper-students)" in section("Training time")


CONFIDENCE = {
    "4-4-t2-e2-x0.5": "the same, T = 0.5",
    "4-4-t2-e1-x0.7": "student of 1 epoch, T = 0.7",
    "4-4-t2-e1-x0.5": "student of 1 epoch, T = 0.5",
    "4-4-t2-e1-x0.35": "student of 1 epoch, T = 0.35",
    "4-4-t2-e1-mean-logits": "student of 1 epoch, mean of logits",
    "scorers-4-4-e2": "4 scorers, teacher of 4 epochs",
    "scorers-4-6-e2": "4 scorers, teacher of 6 epochs",
}
FIVE_SEEDS = {"vanilla": "vanilla", "word-at": "word-at", SHORT: "two short teachers, T = 1"}


def test_the_table_of_confidence_has_the_numbers_of_the_records(records: Any) -> None:
    """Rows of the five-seed run are compared with its own vanilla models, which have no confidence."""
    from studies.tables import minus_signs
    from synonym_table import SHIFTS

    corpora, page, texts = ["sst2", "rotten_tomatoes"], rows_of(section("Comprehensiveness and confidence")), {}
    for run, names in (("tempered", {"": "vanilla, no groups", **CONFIDENCE}), ("five_seeds", FIVE_SEEDS)):
        test, validation = (records(run, corpora, split) for split in ("test", "validation"))
        for technique, name in names.items():
            row = (technique, "linked") if technique else BASE
            kept = [run.ratio(row, "comprehensiveness") for run in (validation, test)]
            excess = [test.average(c, row, "confidence") - test.average(c, row, "accuracy") for c in corpora]
            values = [f"{number:.2f}" for number in (*kept, test.equal_confidence(row))]
            values += [f"{number:+.2f}" for number in excess] + [f"{test.gain(row):+.3f}"]
            values += [
                " / ".join(f"{test.ratio(row, f'{m}/{p}'):.2f}" for m in SHIFTS) for p in ("cf3", "wn3")
            ]  # fmt: skip
            count = min(len(test.cells[c, row]) for c in corpora)
            cells = [name, str(count), *values, f"{test.ratio(row, 'seeds'):.2f}"]
            texts[name] = [cell.replace("+nan", "–").replace("nan", "–") for cell in cells]
    assert [cells for cells in texts.values() if minus_signs(f"| {' | '.join(cells)} |") not in page] == []
    logits, half, groups = texts["student of 1 epoch, mean of logits"], texts["the same, T = 0.5"], texts["vanilla"]
    sentences = [
        f"{logits[3]} of vanilla's comprehensiveness becomes {logits[4]} at equal confidence.",
        f"Groups alone cost {1 - float(groups[3]):.2f} (vanilla with `linked` has {groups[3]},",
        f"Two short teachers with T = 1 have {texts['two short teachers, T = 1'][3]};",
        f"T = 0.5 raises it to {half[3]}.",
    ]
    assert [sentence for sentence in sentences if sentence not in page] == []
