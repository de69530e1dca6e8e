"""Numbers, data and pages of all studies: what is checked in is what the records give."""

import csv
import math
from io import StringIO
from pathlib import Path

import pytest

from studies import study
from studies.numbers import Numbers, Origin, by_name, different_names, read_numbers, write_numbers
from studies.rendering import render
from studies.study import STUDIES, Study

SLOW = {"ledger", "papers", "stability", "synonyms"}
"""Studies whose numbers take more than half a second."""
PUBLISHED = [
    pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name
    for name, entry in STUDIES.items()
    if entry.numbers_file.exists()
]
TEMPLATES = [name for name, entry in STUDIES.items() if [*entry.folder.glob("*.jinja")]]
ORIGIN = Origin("abc", "python -m studies run x")


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_numbers_and_the_data_are_those_of_the_records(name: str) -> None:
    entry = STUDIES[name]
    numbers = entry.computed_numbers()
    assert numbers is not None
    assert different_names(numbers, entry.numbers) == [], f"run python -m studies page {name}"
    for file, text in entry.computed_data().items():
        assert_same_table(text, file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_page_is_its_template_over_the_numbers(name: str) -> None:
    for page, text in STUDIES[name].rendered_pages().items():
        assert text == page.read_text(encoding="utf-8"), f"run python -m studies page {name}"


def test_every_file_of_data_is_that_of_a_study() -> None:
    files = {file.name for file in study.PAGES.glob("data/*")}
    linked = {
        line for page in study.PAGES.glob("*.md") for line in page.read_text(encoding="utf-8").split("](data/")[1:]
    }
    assert files == {line.split(")")[0] for line in linked}


def assert_same_table(text: str, committed: str) -> None:
    """The same cells; numbers, which are written with four digits, may be rounded in another way."""
    ours, theirs = (list(csv.reader(StringIO(table))) for table in (text, committed))
    assert [len(row) for row in ours] == [len(row) for row in theirs]
    for row, other in zip(ours, theirs, strict=True):
        for cell, expected in zip(row, other, strict=True):
            assert cell == expected or math.isclose(float(cell), float(expected), rel_tol=2e-3), (row, other)


def numbers_of(**values: float | str) -> Numbers:
    return by_name(ORIGIN.number(name, value) for name, value in values.items())


def test_numbers_are_read_as_they_were_written(tmp_path: Path) -> None:
    numbers = by_name([ORIGIN.mean("b.c", [0.1, 0.3]), ORIGIN.number("a", "word-at"), ORIGIN.number("n", 3)])
    write_numbers(tmp_path / "numbers.json", numbers)
    read = read_numbers(tmp_path / "numbers.json")
    assert read == numbers
    assert list(read) == ["a", "b.c", "n"]
    assert (read["b.c"].value, read["b.c"].n) == (0.2, 2)
    assert read["b.c"].interval == pytest.approx((-1.0706, 1.4706), abs=1e-4)  # 12.706 · 0.1 around the mean


def test_a_name_is_unique_and_a_value_finite() -> None:
    with pytest.raises(ValueError, match="two numbers have the name 'a'"):
        by_name([ORIGIN.number("a", 1), ORIGIN.number("a", 2)])
    with pytest.raises(ValueError, match="not finite"):
        ORIGIN.number("a", math.nan)


def test_numbers_differ_by_value_interval_and_origin_but_not_by_rounding() -> None:
    base = by_name([ORIGIN.number("a", 1.0, (0.5, 1.5), 5)])

    def change(number: object) -> list[str]:
        return different_names(base, by_name([number]))  # type: ignore[list-item]

    assert change(ORIGIN.number("a", 1.0 + 1e-7, (0.5, 1.5), 5)) == []
    assert change(ORIGIN.number("a", 1.0 + 1e-5, (0.5, 1.5), 5)) == ["a"]
    assert change(ORIGIN.number("a", 1.0, (0.5, 1.51), 5)) == ["a"]
    assert change(ORIGIN.number("a", 1.0, None, 5)) == ["a"]
    assert change(ORIGIN.number("a", 1.0, (0.5, 1.5), 6)) == ["a"]
    assert change(Origin("other", ORIGIN.command).number("a", 1.0, (0.5, 1.5), 5)) == ["a"]
    assert change(ORIGIN.number("b", 1.0)) == ["a", "b"]


def test_templates_write_numbers_as_pages_do() -> None:
    studies = {
        "own": by_name(
            [
                ORIGIN.number("loss.a", -0.0351, (-0.0691, -0.0011)),
                ORIGIN.number("loss.b", -0.0002),
                ORIGIN.number("name", "word-at"),
            ]
        ),
        "other": numbers_of(f1=0.372),
    }
    expected = {
        '{{ number("loss.a") | decimals }}': "−0.035",
        '{{ number("loss", "b") | decimals }}': "0.000",
        '{{ number("loss.a") | plus_minus }}': "−0.035 ± 0.034",
        '{{ number("loss.a") | with_interval(2) }}': "−0.04 [−0.07, 0.00]",
        '{{ numbers("loss.*") | span(scale=-1) }}': "0.000 to 0.035",
        '{{ [number("loss.a")] | select("excluding_zero") | list | length }}': "1",
        '{{ numbers("loss.*") | length | in_words }} {{ number("name").value }}': "two word-at",
        '{{ number("f1", study="other") | percent(1) }}': "37.2 %",
        '{{ data_table("x.csv", "All") }}': "[All](data/x.csv){ .data-table }",
    }
    for template, text in expected.items():
        assert render(template, "own", studies.__getitem__) == text
    for template, error in {
        '{{ number("lost") }}': "the study 'own' has no number 'lost'",
        '{{ numbers("lost.*") }}': r"no number like 'lost\.\*'",
        '{{ claim(number("loss.a").value > 0, "higher") }}': "no longer true: higher",
        '{{ number("loss.b") | interval }}': "'loss.b' has no interval",
    }.items():
        with pytest.raises((KeyError, ValueError), match=error):
            render(template, "own", studies.__getitem__)


def test_writing_a_study_writes_numbers_pages_and_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `python -m studies page`; page.md.jinja has the name of the study, other templates their own."""
    folder = tmp_path / "small_trial"
    folder.mkdir()
    for name in ("page", "other-page"):
        (folder / f"{name}.md.jinja").write_text('{{ number("x").value }}')
    functions = {
        "numbers": lambda: [ORIGIN.number("x", 3)],
        "data": lambda: {"x.csv": [["row", "value"], ["a, b", "1"]]},
    }
    monkeypatch.setattr(Study, "function", lambda self, action: functions[action])
    monkeypatch.setattr(study, "PAGES", tmp_path / "docs")
    monkeypatch.setitem(STUDIES, "small_trial", Study(folder))
    files = STUDIES["small_trial"].write()
    texts = {file.name: file.read_text() for file in files}
    assert {name: text for name, text in texts.items() if name != "numbers.json"} == {
        "small-trial.md": "3",
        "other-page.md": "3",
        "x.csv": 'row,value\n"a, b",1\n',
    }
    assert read_numbers(folder / "numbers.json")["x"].value == 3
