"""A report: read back from its JSON, searched for its numbers, shown in a terminal and a notebook."""

import dataclasses
import json
import math
import re
from io import StringIO

import pytest
from rich.console import Console

from report.audited import FAITHFULNESS_TITLE, KNOWN, ROWS, STABILITY_TITLE, VERDICTS, full_report, row
from report.browser import plain_text
from steadygaze.core.errors import UserError
from steadygaze.report.terminal_tables import terminal
from steadygaze.results.explanation import Explanation
from steadygaze.results.formatting import SHIFT_SCALE
from steadygaze.results.note import NoteCode, note, text_note
from steadygaze.results.report import Report
from steadygaze.results.row import Fact, Row, Shift, Verdict


def written(report: Report) -> dict:
    return json.loads(report.to_json())


def same(row: Row, other: Row) -> bool:
    """NaN is not equal to itself; the rest must be."""
    return all(
        a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))
        for a, b in zip(dataclasses.astuple(row), dataclasses.astuple(other), strict=True)
    )


def test_a_report_comes_back_from_its_json_as_it_was(tmp_path):
    report = full_report()
    report.to_json(tmp_path / "report.json")
    again = Report.from_json(tmp_path / "report.json")
    assert again.to_dict() == report.to_dict()
    assert all(map(same, again.rows, report.rows))
    for name in ("verdicts", "shifts", "measures", "probes", "sections", "facts", "notes", "command", "versions"):
        assert getattr(again, name) == getattr(report, name), name
    assert again.plots == report.plots
    assert again.to_html() == report.to_html()


def test_numbers_that_json_does_not_know_come_back_too():
    rows = (Row("a", math.inf, 1, (-math.inf, math.nan), {"epsilon": math.inf}),)
    facts = {"a": Fact("How much.", -math.inf, math.inf)}
    report = Report("t", rows, plots={"moves": [{"probe": "x", "distance": math.nan}]}, measures=facts)
    assert not re.search("NaN|Infinity", report.to_json())
    again = Report.from_dict(written(report))
    (got,) = again.rows
    assert (got.value, got.interval[0]) == (math.inf, -math.inf)
    assert math.isnan(got.interval[1])
    assert got.signature == rows[0].signature == "a|epsilon:inf|n:1"
    assert again.measures == facts


def test_labels_that_are_numbers_stay_numbers():
    e = Explanation("good", ("good",), ((0, 4),), (1.0,), 1, {0: 0.25, 1: 0.75})
    again = Report.from_dict(written(Report("t", (), shifts=(Shift("noise", 0.1, e, e),))))
    assert again.shifts[0].before == e


def replaced(path: str, value) -> dict:
    values = written(full_report())
    *parts, last = path.split(".")
    inner = values
    for part in parts:
        inner = inner[int(part) if part.isdecimal() else part]
    if value is KeyError:
        del inner[last]
    else:
        inner[int(last) if last.isdecimal() else last] = value
    return values


@pytest.mark.sweep(keep=8)
@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("schema", 1, "schema 1, written by steadygaze 0.1.0; steadygaze .* reads schema 6: run the audit again"),
        (
            "schema",
            7,
            "schema 7, written by .*; steadygaze .* reads schema 6: upgrade steadygaze to read it",
        ),
        ("schema", KeyError, "not a steadygaze report: it has no schema number"),
        ("schema", True, "no schema number"),
        ("rows", KeyError, "the key 'rows' is missing"),
        ("extra", 1, "the key 'extra' is unknown"),
        ("rows", {}, "rows: found {}; it must be a list"),
        ("rows.0.value", "0.9", "row 'accuracy': found '0.9' instead of a number"),
        ("rows.0.value", True, "found True instead of a number"),
        ("rows.0.n", "400", "n must be a whole number"),
        ("rows.0.interval", [0.1], r"an interval has two ends, found \[0.1\]"),
        ("rows.0.note", KeyError, "row 'accuracy': the key 'note' is missing"),
        ("rows.0.more", 1, "row 'accuracy': the key 'more' is unknown"),
        ("rows.0.settings", {"seed": [0]}, "settings must be words and numbers"),
        ("rows.0.settings", {**KNOWN, "seed": 7}, "its signature is .* and should be .*seed:7"),
        ("rows.0", "accuracy=0.9", "a row has a measure, a value and n"),
        ("verdicts.0.answer", "maybe", r"verdicts.0.answer: found 'maybe'; should be 'yes', 'undecided', 'no'"),
        ("verdicts.0.strange", 1, "verdicts.0 is not as steadygaze writes it"),
        ("shifts.0.before.tokens", ["a"], "1 tokens, .* there must be as many of each"),
        ("shifts.0.before.text", 5, "shifts.0.before.text: found 5"),
        ("shifts.0.before.html", "x", "shifts.0.before is not as steadygaze writes it"),
        ("shifts.0.distance", "0.1", "shifts.0.distance is not as steadygaze writes it"),
        ("plots.moves.0.distance", {"deep": 1}, "plots.moves.0.distance"),
        ("measures.auprc.direction", "up", "measures.auprc.direction: found 'up'"),
        ("command", "rm -rf", "command: found 'rm -rf'"),
    ],
)
def test_what_we_did_not_write_is_refused_and_the_place_is_named(path, value, message):
    with pytest.raises(UserError, match=message):
        Report.from_dict(replaced(path, value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"schema": NaN}', "NaN is not a JSON number"),
        ("[]", "schema"),
    ],
)
def test_a_file_that_is_no_report_is_refused_with_its_name(tmp_path, text, message):
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(UserError, match=f"report.json.*{message}"):
        Report.from_json(tmp_path / "report.json")
    with pytest.raises(UserError, match=r"there is no file .*nowhere\.json"):
        Report.from_json(tmp_path / "nowhere.json")


def test_a_number_is_found_of_the_audited_explanation_and_of_no_other_by_accident():
    report = full_report()
    assert report.find("comprehensiveness").value == 0.412
    assert report.find("comprehensiveness", "random").value == 0.111
    assert report.find("comprehensiveness", "lime") is None
    assert report.find("accuracy", "lime").value == 0.9125  # of no explanation: everybody's
    assert report.find("nothing") is None
    assert Report("t", ROWS).find("jensen-shannon/noise").value == 0.0031
    two = full_report(rows=(row("x", 0.1, radius=0.1), row("x", 0.2, radius=0.2)))
    assert [result.value for result in two.find_all("x")] == [0.1, 0.2]


def test_the_good_direction_is_the_verdicts_and_else_the_measures():
    report = full_report()
    assert report.better("position-leak") == "lower"
    assert report.better("weight-correlation/reworded") == "higher"
    assert report.better("comprehensiveness/above-random") == "higher"
    swapped = dataclasses.replace(VERDICTS[0], thresholds={"weight-correlation/reworded": (0.65, 0.7)})
    assert full_report(verdicts=(swapped,)).better("weight-correlation/reworded") == "lower"
    assert report.better("jensen-shannon/noise") == "neither", "no verdict rests on it"
    assert report.better("jensen-shannon/anything") == "neither"
    assert report.better("sufficiency/anything") == "lower"
    assert report.better("unheard-of") == "neither"


def printed(report: Report, full: bool = False) -> list[str]:
    console = Console(width=120, record=True, file=StringIO())
    console.print(terminal(report, full))
    return console.export_text().splitlines()


def test_the_terminal_shows_the_summary_first_then_every_answer_in_words_with_its_numbers():
    lines = printed(full_report())
    assert lines[0] == "Audit of the explanations"
    assert lines[1] == "Explanation: attention · Model: reviews-model, a steadygaze classifier · 400 texts"
    assert lines[2] == "! Four texts were longer than the model reads."
    assert lines[3].startswith(f"~ undecided    {STABILITY_TITLE}. With the highlighted words")
    assert any(line.startswith("✗ no           No shortcut leakage. ") for line in lines)
    table = lines[lines.index("") + 1 :]
    assert [line.split()[0] for line in table[1:6]] == [
        "accuracy",
        "weight-correlation/reworded",
        "weight-correlation/reworded-top",
        "comprehensiveness/above-random",
        "position-leak",
    ]
    assert " ".join(table[4].split()) == "comprehensiveness/above-random 0.301 0.271 to 0.331 400 ↑"
    assert table[6] == "11 more numbers: -v, the page or the JSON; 3 not applicable."
    assert lines[-1] == "all names: steadygaze list measures"


def test_the_terminal_shows_every_number_on_request():
    lines = printed(full_report(), full=True)
    measured = [row.measure for row in ROWS if row.n]
    start = lines.index("") + 2
    assert [line.split()[0] for line in lines[start : start + len(measured)]] == measured
    assert lines[start + len(measured)] == "3 not applicable."


def test_the_table_of_one_explainer_fits_80_columns():
    console = Console(width=80, record=True, file=StringIO())
    small = Row("comprehensiveness/above-random", -2.4e-5, 12_000, (-2.4e-5, -1.7e-5), {"explainer": "attention"})
    rows = [item for item in ROWS if item.settings.get("explainer", "attention") == "attention"]
    console.print(terminal(full_report(rows=(small, *rows)), True))
    lines = console.export_text().splitlines()
    start = lines.index("") + 1
    assert lines[start].split() == ["measure", "value", "95", "%", "interval", "n", "better"]
    assert all(line[0].strip() for line in lines[start : start + 12]), "no cell is wrapped"
    assert "−2.4e-05 to −1.7e-05" in lines[start + 1]


def test_the_range_of_a_shift_is_described_in_one_way():
    page, lines = full_report().to_html(), printed(full_report(), full=True)
    described = re.findall(r"0: [^()<>]*?0\.69: [^()<>,;]+", " ".join([*plain_text(page).split(), *lines]))
    assert len(described) == 3
    assert set(described) == {SHIFT_SCALE}


def test_technical_names_have_a_legend():
    rows = [Row(name, 0.5, 9, (0.4, 0.6)) for name in ("jensen-shannon/fgm-label", "kendall/randomized")]
    legend = printed(full_report(rows=tuple(rows)), full=True)[-4:]
    assert [line.split(":")[0] for line in legend] == [
        "jensen-shannon",
        "fgm-label, pgd-attention",
        "kendall",
        "all names",
    ]
    assert all(len(line) <= 80 for line in legend)


def test_one_number_is_no_numbers():
    assert printed(full_report(verdicts=(), rows=ROWS[1:2]))[-1] == "1 more number: -v, the page or the JSON."


def test_answers_are_colored():
    console = Console(width=200, force_terminal=True, color_system="standard", file=StringIO())
    with console.capture() as got:
        console.print(full_report())
    assert "\x1b[1;32m✓ yes" in got.get()
    assert "\x1b[1;31m✗ no" in got.get()


def test_what_moves_a_cursor_does_not_reach_the_terminal():
    bad = "\x1b[2J[red]"
    report = full_report(
        title=bad,
        notes=(text_note(bad),),
        verdicts=(Verdict(bad, "no", (text_note(bad),)),),
        rows=(Row(bad, 0.5, 1, None, {"explainer": bad}),),
    )
    text = "\n".join(printed(report, full=True))
    assert "\x1b" not in text
    assert text.count("[2J[red]") == 5


def test_a_notebook_shows_the_verdicts_and_folds_the_numbers():
    html = full_report(title="<script>")._repr_html_()
    assert "<script>" not in html
    assert "✗ no</strong> <strong>No shortcut leakage.</strong>" in html
    assert "<summary>16 numbers</summary>" in html
    assert html.count("<tr>") == 17
    assert len(html) < 10_000
    assert "<li><strong>! Mind &lt;b&gt;</strong></li>" in full_report(notes=(text_note("Mind <b>"),))._repr_html_()


def test_the_repr_of_a_report_is_one_line():
    assert repr(full_report()).startswith(
        f"<Report: 19 numbers; {STABILITY_TITLE}: undecided, {FAITHFULNESS_TITLE}: yes, "
    )


def test_print_shows_the_summary_the_answers_and_the_available_numbers():
    lines = str(full_report()).splitlines()
    assert [lines[0], lines[2]] == [full_report().title, "! Four texts were longer than the model reads."]
    assert lines[1].endswith("· 400 texts")
    assert lines[3].startswith(f"{STABILITY_TITLE}: undecided. With the highlighted words")
    assert lines[8:-1] == [str(row) for row in ROWS if row.n]
    assert lines[-1].startswith("3 numbers could not be measured: the notes in report.rows")
    assert str(full_report(rows=ROWS[:1])).splitlines()[-1] == str(ROWS[0]), "nothing is missing"


def test_a_note_that_is_an_answer_has_the_sign_and_the_color_of_it():
    """A good answer is no warning."""
    shared = {"training": "skewed", "elsewhere": "rationale", "texts": 5, "least": 8, "share": None, "guessed": 0.5}
    findings = [note(NoteCode.INTERLOCKING, **shared, accuracy=(1, 1, 1), answer=x) for x in ("yes", "undecided", "no")]
    answers = [note(NoteCode.INTERLOCKING_ANSWER, answer=x.fields["answer"], finding=x) for x in findings]
    report = full_report(notes=(*answers, text_note("Mind the gap.")))
    lines = [*map(str, answers), "! Mind the gap."]
    assert [line[0] for line in lines] == ["✓", "~", "✗", "!"]
    assert str(report).splitlines()[2:6] == lines
    console = Console(width=400, force_terminal=True, color_system="standard", file=StringIO())
    with console.capture() as got:
        console.print(report)
    assert all(f"\x1b[1;{color}m{line}" in got.get() for color, line in zip((32, 33, 31, 33), lines, strict=True))


def test_what_fails_a_requirement_is_named():
    (failure,) = full_report().failing(["jensen-shannon/3-synonyms<=0.05", "accuracy>=0.9"])
    assert failure.sentence == "jensen-shannon/3-synonyms of attention is 0.0712; at most 0.05 was required."
    assert full_report().failing("accuracy>=0.9") == []
