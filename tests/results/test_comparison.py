"""The page, the file and the terminal's table of a comparison: their content, and that text is escaped."""

import dataclasses
import json
import math
import re
from pathlib import Path

import pytest
from rich.console import Console

from report.browser import Outline, browse, measure, plain_text
from steadygaze.report.study_pages import KEY, MARKS, card, scale, summary_paragraph
from steadygaze.report.terminal_tables import ComparisonTable
from steadygaze.results.comparison import Column, Comparison, ComparisonCell, Difference, TechniqueResult
from steadygaze.results.health import Health, HealthProblem, ProblemKind
from steadygaze.results.note import text_note
from steadygaze.results.row import Row

SCRIPT = "<script>document.title = 'ran'</script>"
NOISE, F1, EVEN = "jensen-shannon/noise", "macro-f1", "normalized-entropy"


def entry(measure, value, mark="", gap=None, bad="", absent=None):
    interval = None if math.isnan(value) else (value - 0.01, value + 0.01)
    against = None if gap is None else Difference(gap, (gap - 0.005, gap + 0.005), 2, 0.0001, 0.0004)
    row = Row(measure, value, 400, interval, {"corpus": f"tiny{bad}", "seeds": "0+1"}, absent=absent)
    return ComparisonCell(row, (value - 0.001, value + 0.001), against, mark)


def full(bad: str = "", **changes) -> Comparison:
    columns = (
        Column(F1, "macro-F1", "F1 of each class", "higher"),
        Column(NOISE, "JSD noise", "how far the weights move", "lower", stability=True),
        Column(EVEN, "normalized-entropy", "1: all words weigh alike", "neither", brief=False),
    )
    standings = (
        TechniqueResult(
            "vanilla",
            {F1: entry(F1, 0.9, bad=bad), NOISE: entry(NOISE, 0.1, bad=bad), EVEN: entry(EVEN, 0.5)},
            (False, False),
            {"Stability": ("undecided", "no"), "Plausibility": ("not measured", "not measured")},
        ),
        TechniqueResult(
            f"steady{bad}",
            {
                F1: ComparisonCell(
                    Row(F1, 0.88, 400, (0.87, 0.89)), (0.87, 0.89), Difference(-0.02, (-0.03, -0.01), 2)
                ),
                NOISE: entry(NOISE, 0.04, "better", -0.06, bad),
                EVEN: entry(EVEN, 0.6, "differs", 0.1, bad),
            },
            (False, False),
            {"Stability": ("yes", "yes")},
            {f"epsilon{bad}": f"0.2{bad}"},
        ),
        TechniqueResult(
            f"silent{bad}",
            {
                F1: entry(F1, 0.7, "worse", -0.2, bad),
                NOISE: entry(NOISE, 0.0, "bought", -0.1, bad),
                EVEN: entry(EVEN, math.nan, absent=text_note(f"it rained {bad}")),
            },
            (True, False),
            {"Stability": ("no", "no")},
            health=Health((HealthProblem(ProblemKind.COLLAPSED, f"silent{bad}, in 1 of 2 seeds,", detail="Flat."),)),
        ),
    )
    parts = {
        "facts": {f"data{bad}": f"tiny{bad}"},
        "settings": {f"epochs{bad}": 8},
        "notes": (f"Mind {bad}",),
        "command": ("steadygaze", "compare", "my data.csv", f"--out={bad}"),
        "versions": {"steadygaze": f"0.1.0{bad}"},
        "title": f"Which holds up?{bad}",
    }
    return Comparison(**{"columns": columns, "standings": standings, "seeds": (0, 1), **parts, **changes})


def test_every_element_is_closed_and_there_is_no_script_and_no_link_but_to_its_own_parts():
    page = full().to_html()
    outline = Outline(page)
    assert outline.open == []
    assert not {"script", "img", "iframe", "link"} & {tag for tag, _ in outline.tags}
    assert re.search(r"""(src|srcset)\s*=|href="[^#]|url\(|@import|https?:""", page) is None
    assert set(re.findall(r'href="#(\w+)"', page)) <= set(re.findall(r'id="(\w+)"', page))
    assert "default-src 'none'; style-src 'unsafe-inline'" in page


@pytest.mark.parametrize("bad", [SCRIPT, '" onload="x', "</style><b>", "{{ 7 * 7 }}", "\ud800"])
def test_no_name_breaks_out_of_the_page(bad):
    outline, usual = Outline(full(bad).to_html()), Outline(full().to_html())
    assert [tag for tag, _ in outline.tags if tag != "wbr"] == [tag for tag, _ in usual.tags if tag != "wbr"]
    assert not any("onload" in attributes for _, attributes in outline.tags)
    assert outline.text.count(bad.encode(errors="replace").decode()) >= 12


def test_a_number_stands_with_its_interval_its_difference_and_how_sure_that_is():
    text = " ".join(Outline(full().to_html()).text.split())
    assert "0.040 0.030 to 0.050 ✓ better −0.060 (−0.065 to −0.055) p < 0.001, 2 of 2 seeds" in text
    assert "0.880 0.870 to 0.890 −0.020 (−0.030 to −0.010) not tested, 2 of 2 seeds" in text
    assert "corrected for the 4 comparisons of this table" in text
    assert "not applicable, because it rained" in text
    assert "jensen-shannon/noise|corpus:tiny|seeds:0+1|n:400" in text


def test_the_exact_command_the_settings_and_the_notes_are_there():
    text = Outline(full().to_html()).text
    assert "steadygaze compare 'my data.csv' --out=" in text
    assert "epsilon" in text
    assert "Mind" in text
    assert "made in Python" in Outline(full(command=()).to_html()).text


def test_verdicts_in_plain_words_and_collapse_first():
    result = full()
    vanilla, stable, silent = (card(result, standing) for standing in result.standings)
    assert (vanilla.answer, stable.answer, silent.answer) == ("baseline", "better and worse", "collapsed")
    assert stable.sentences == (
        "Better: JSD noise.",
        "Difference in macro-F1: −0.020 (−0.030 to −0.010); not tested, 2 of 2 seeds.",
    )
    assert silent.sentences == (
        "In 1 of 2 seeds its weights do not depend on the text: collapsed.",
        "Worse: macro-F1.",
        "Better only by collapse: JSD noise.",
    )
    text = " ".join(Outline(result.to_html()).text.split())
    assert "⚠ 1 of 2" in text
    assert "Stability 1 × undecided, 1 × no 2 × yes 2 × no" in text
    assert "Plausibility" not in text, "nobody was asked"


def test_a_technique_at_chance_is_not_recommended_and_the_page_begins_with_it():
    """Without a lower macro-F1, it would be better."""
    result = full()
    entries = result.standings[1].entries
    same_f1 = dataclasses.replace(entries[F1], against=Difference(-0.02, (-0.06, 0.02), 2))
    stable = dataclasses.replace(result.standings[1], entries={**entries, F1: same_f1}, at_chance=(False, False))
    assert card(result, stable).answer == "better"
    guessing = dataclasses.replace(stable, at_chance=(True, False))
    summary = card(result, guessing)
    assert (summary.tone, summary.answer) == ("no", "at chance")
    assert summary.sentences[0] == "In 1 of 2 seeds its predictions are not significantly better than chance."
    vanilla = dataclasses.replace(result.standings[0], at_chance=(True, True))
    changed = dataclasses.replace(result, standings=(vanilla, guessing))
    paragraph = summary_paragraph(changed)
    assert paragraph.startswith("Not significantly better than chance in at least one seed: vanilla, steady.")
    assert "Better than vanilla" not in paragraph
    assert "vanilla: In 2 of 2 seeds its predictions are not" in " ".join(str(changed).split())
    assert changed.to_dict()["techniques"][1]["at_chance"] == [True, False]


def test_one_seed_is_not_called_seeds():
    assert card(full(), TechniqueResult("alone", {}, (True,))).sentences[0].startswith("In 1 of 1 seed its weights")


def test_a_card_without_significant_differences_reports_none():
    plain = TechniqueResult("same", {}, (False, False))
    assert card(full(), plain).sentences == ("No significant difference from vanilla.",)
    unsure = TechniqueResult("unsure", {NOISE: entry(NOISE, 0.04, "", -0.06)}, (False, False))
    assert card(full(), unsure).sentences[1:] == ("Significant over texts, but not over seeds: JSD noise.",)


def test_dots_lie_where_their_numbers_are():
    """From the lowest end, 0 − 0.01, to the highest, 0.1 + 0.01, in round numbers: −0.02 to 0.12."""
    result = scale(full(), NOISE)
    assert result.ends == ("−0.02", "0.12")
    assert result.baseline == pytest.approx(100 * 0.12 / 0.14, abs=0.05)
    row = full().find("steady").entries[NOISE].row
    assert result.bar(row) == tuple(pytest.approx(100 * (v + 0.02) / 0.14, abs=0.05) for v in (0.04, 0.03, 0.05))
    alone = full(standings=full().standings[2:])
    assert scale(alone, EVEN) is None, "no number, no scale"
    assert "not applicable, because it rained" in alone.to_html()
    turned = full(standings=full().standings[::-1])
    assert scale(turned, EVEN).baseline is None, "the first has no number, and no line"
    assert turned.to_html().count('class="baseline"') == 6


def test_marks_and_their_grounds_are_explained_in_words():
    text = plain_text(full().to_html())
    for mark, means in KEY.items():
        assert f"{MARKS[mark]} {means}" in text
    assert "Significant: p is under 0.05, and the whole interval of the difference lies on one side of 0." in text
    assert "how far the weights move; ↓ lower is better (bars from −0.02 to 0.12)" in text
    second = TechniqueResult("one", {NOISE: entry(NOISE, 0.04, "better", -0.06)}, (False, False))
    first = TechniqueResult("vanilla", {NOISE: entry(NOISE, 0.1)}, (False, False))
    few = full(columns=full().columns[1:2], standings=(first, second))
    assert "corrected for the 1 comparison of this table" in plain_text(few.to_html())


def test_json_holds_everything_and_no_nan(tmp_path: Path):
    full().to_json(tmp_path / "c.json")
    result = json.loads((tmp_path / "c.json").read_text())
    assert (result["schema"], result["baseline"], result["seeds"]) == (1, "vanilla", [0, 1])
    numbers = result["techniques"][2]["numbers"]
    assert numbers[EVEN]["value"] is None
    assert numbers[NOISE]["mark"] == "bought"
    assert numbers[NOISE]["against"]["holm"] == 0.0004
    assert result["techniques"][2]["collapsed"] == [True, False]


def shown(width: int, bad: str = "") -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(ComparisonTable(full(bad)))
    console.file.close()
    return console.export_text()


def test_a_wide_terminal_has_a_row_for_each_technique():
    warning, *lines = shown(120).splitlines()
    assert lines[0].split() == ["technique", "macro-F1", "↑", "JSD", "noise", "↓", "collapsed"]
    (stable,) = [line for line in lines if line.startswith("steady")]
    assert stable.split() == ["steady", "0.880", "0.040", "✓", "no,", "0", "of", "2"]
    (silent,) = [line for line in lines if line.startswith("silent")]
    assert silent.split() == ["silent", "0.700", "✗", "0.000", "⚠", "yes,", "1", "of", "2"]
    assert warning.startswith("! silent, in 1 of 2 seeds, has collapsed attention: Flat.")


def test_a_narrow_one_has_a_row_for_each_measure():
    lines = shown(44).splitlines()
    assert ["vanilla", "steady", "silent"] in [line.split() for line in lines]
    assert any(line.startswith("JSD noise ↓") for line in lines)


@pytest.mark.slow
def test_a_browser_runs_nothing_and_has_nothing_to_complain_of(tmp_path: Path):
    full(SCRIPT + "<img src=http://192.0.2.1/x>").to_html(tmp_path / "page.html")
    drawn, log = browse(tmp_path / "page.html")
    assert "<script" not in drawn
    assert "<img" not in drawn
    assert "CONSOLE" not in log
    assert "192.0.2.1" not in log


PAGE_QUERY = """
  const table = doc.querySelector(".across"), head = table.querySelector("thead th:nth-child(2)");
  table.scrollTop = 200;
  const stays = Math.abs(head.getBoundingClientRect().top - table.getBoundingClientRect().top) < 1;
  return {scrolled: table.scrollTop, stays, fits: doc.documentElement.scrollWidth <= view.innerWidth};"""


@pytest.mark.slow
def test_the_head_of_a_long_table_stays_in_sight_and_a_narrow_page_is_not_wider_than_the_screen(tmp_path: Path):
    columns = tuple(Column(f"{NOISE}{i}", f"JSD {i}", "how far", "lower") for i in range(20))
    standings = tuple(
        TechniqueResult(name, {column.measure: entry(column.measure, 0.1) for column in columns}, (False, False))
        for name in ("vanilla", "steady", "third")
    )
    full(columns=columns, standings=standings).to_html(tmp_path / "page.html")
    for result in measure(tmp_path / "page.html", PAGE_QUERY, (390, 1200)):
        assert result == {"scrolled": 200, "stays": True, "fits": True}


def test_the_page_has_a_summary_in_words_and_can_show_significant_differences_only():
    page = full().to_html()
    text = " ".join(Outline(page).text.split())
    assert (
        "Every technique was compared with vanilla, in 3 measures. Better in some measures and worse in others: "
        "steady. With weights that do not depend on the text in at least one seed: silent."
    ) in text
    assert page.count('<tr class="row marked">') == 3  # each measure has a mark
    alone = full(standings=full().standings[:1]).to_html()
    assert alone.count('<tr class="row">') == 3
    assert ".table:has(#measures-marked:checked) .row:not(.marked) { display: none; }" in page


def test_a_comparison_prints_as_its_table_and_its_repr_is_one_line():
    comparison = full()
    printed = str(comparison)
    assert re.search(r"technique +macro-F1 ↑ +JSD noise ↓ +collapsed\nvanilla +0\.900 +0\.100 +no, 0 of 2\n", printed)
    assert "! silent, in 1 of 2 seeds, has collapsed attention: Flat." in printed
    assert max(map(len, printed.splitlines())) <= 100
    assert repr(comparison) == "<Comparison of vanilla, steady, silent: 2 seeds, 3 measures>"
    assert "<pre>" in comparison._repr_html_()
    assert "\x1b" not in printed


def test_a_comparison_as_a_data_frame_has_a_row_per_technique_and_measure():
    frame = full().to_pandas().set_index(["technique", "measure"])
    assert len(frame) == 9
    assert math.isnan(frame.loc[("vanilla", F1), "difference"])
    entry = frame.loc[("steady", NOISE)]
    assert (entry["value"], entry["difference"], entry["p"], entry["mark"]) == (0.04, -0.06, 0.0004, "better")
    assert (entry["difference_low"], entry["difference_high"]) == pytest.approx((-0.065, -0.055))
