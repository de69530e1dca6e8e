"""Several explainers in one audit: a grid of answers and which explainer to use, wherever a report is shown."""

import re
from dataclasses import replace
from datetime import date
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from report.audited import answered, full_report, several_explainers
from report.browser import DARK, LIGHT, Outline, measure, plain_text
from steadygaze.report.terminal_tables import terminal
from steadygaze.results.formatting import ICONS
from steadygaze.results.model_card import add_audit_to_card
from steadygaze.results.recommendation import recommend
from steadygaze.results.report import Report

SENTENCE = (
    "Use integrated-gradients: 0 of its answers (without robustness) are “no”; "
    "attention, the next best explainer, has 1 (“no shortcut "
    "leakage”)."
)
GRID = [["attention", *"~✓–✗–"], ["gradient", *"✗✗–~✓"], ["integrated-gradients", *"~✓–✓✓"]]
TITLES = ["Stability under rewording", "Faithfulness", "Seed consistency", "No shortcut leakage", "Plausibility"]


@pytest.fixture(scope="module")
def report() -> Report:
    return several_explainers()


@pytest.fixture(scope="module")
def html(report: Report) -> str:
    return report.to_html()


def printed(report: Report, width: int = 80, full: bool = False) -> list[str]:
    console = Console(width=width, record=True, file=StringIO())
    console.print(terminal(report, full))
    return [line.rstrip() for line in console.export_text().splitlines()]


def grid_of(lines: list[str]) -> list[list[str]]:
    """The lines that end with three signs or more: a name, and the signs."""
    signs = "".join(ICONS.values())
    matches = (re.fullmatch(rf"(\S+(?: \S+)*)((?: +[{signs}]){{3,}}) *", line) for line in lines)
    return [[match[1], *match[2].split()] for match in matches if match]


def choose(**answers: tuple[str, ...]) -> str:
    report = full_report(other_verdicts={name: answered(*of) for name, of in answers.items() if name != "attention"})
    report = replace(report, verdicts=answered(*answers["attention"]))
    return replace(report, recommendation=recommend(report.verdicts_by)).recommendation_text


UNDECIDED = ("undecided",) * 5


@pytest.mark.parametrize(
    ("attention", "lime", "sentence"),
    [
        (
            ("yes", "yes", *UNDECIDED[:3]),
            ("yes", "no", *UNDECIDED[:3]),
            "Use attention: for all other explainers the answer is “no” for faithfulness.",
        ),
        (
            ("yes", "no", *UNDECIDED[:3]),
            ("yes", "no", *UNDECIDED[:3]),
            "Use none of these explainers: the answer is “no” for faithfulness for each of them.",
        ),
        (
            ("no", "yes", *UNDECIDED[:3]),
            ("no", "yes", "undecided", "undecided", "yes"),
            "Use lime: 2 of its answers (without robustness) are “yes”; "
            "attention, the next best explainer, has 1 (not for plausibility). "
            "Do not rely on it for stability under rewording.",
        ),
        (
            ("yes", *UNDECIDED[:4]),
            ("undecided", "yes", *UNDECIDED[:3]),
            "Use lime: attention, the next best explainer, has as many answers “yes” and “no”, but a worse one for "
            "faithfulness.",
        ),
        (
            UNDECIDED,
            UNDECIDED,
            "The answers do not tell attention and lime apart: use attention, which was named earlier. These texts do "
            "not show its faithfulness.",
        ),
    ],
)
def test_every_choice_has_its_sentence(attention, lime, sentence):
    assert choose(attention=attention, lime=lime) == sentence


def test_the_page_starts_with_the_choice_and_the_grid(html):
    head = html[html.index("<body>") : html.index("<main>")]
    assert SENTENCE in plain_text(head)
    assert plain_text(head).index(SENTENCE) < plain_text(head).index("Is it stable under rewording?")
    table = head[head.index('<div class="explainers">') : head.index("</table>")]
    assert re.findall(r"<span>([^<]+)</span></th>", table) == [verdict.title for verdict in full_report().verdicts]
    names = [plain_text(f"<body>{cell}").split() for cell in re.findall(r'<th scope="row">(.*?)</th>', table)]
    rows = [re.findall(r'aria-hidden="true">(.)</span> <span class="word">', part) for part in table.split("<tr>")[2:]]
    assert [[name[0], *signs] for name, signs in zip(names, rows, strict=True)] == GRID
    assert names[2][1:] == ["recommended"]
    assert Outline(html).open == []


def test_the_page_has_the_cards_of_all_explainers(html):
    verdicts = html[html.index('<section aria-labelledby="verdicts">') :]
    assert re.findall(r"<summary>The verdicts of ([\w-]+)</summary>", verdicts) == ["gradient", "integrated-gradients"]
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert {f"verdict-{explainer}-{i}" for explainer in (1, 2) for i in range(1, 6)} <= set(ids)
    assert set(re.findall(r'href="#([\w-]+)"', html)) <= set(ids)


@pytest.mark.parametrize("show", [Report.to_html, str, Report._repr_html_, lambda x: "\n".join(printed(x, 200))])
def test_the_choice_is_shown_for_several_explainers_and_not_for_one(report, show):
    text = show(report)
    assert SENTENCE in text
    assert "integrated-" in text
    alone = show(full_report())
    assert "Use " not in alone
    assert "integrated-" not in alone
    assert "recommended" not in alone
    assert '<div class="explainers">' not in alone


def test_the_terminal_shows_the_grid_turned_in_80_columns_and_with_all_numbers_the_verdicts_of_all(report):
    assert grid_of(printed(report, 120)) == GRID
    lines = printed(report)
    assert grid_of(lines) == [
        [title, *signs] for title, *signs in zip(TITLES, *(line[1:] for line in GRID), strict=True)
    ]
    assert max(map(len, lines[: lines.index("attention:")])) <= 80
    assert "✓ yes  ~ undecided  ✗ no  – not measured" in lines
    assert "gradient:" not in lines
    assert [line for line in printed(report, full=True) if re.fullmatch("[a-z-]+:", line)] == [
        "attention:",
        "gradient:",
        "integrated-gradients:",
    ]
    assert grid_of(printed(full_report())) == []


def test_the_notebook_and_the_card_have_the_grid(report):
    card = add_audit_to_card("", report, date(2026, 11, 16))
    assert SENTENCE in card
    assert "| `gradient` | ✗ no | ✗ no | – not measured | ~ undecided | ✓ yes |\n" in card
    assert "| explainer |" not in add_audit_to_card("", full_report(), date(2026, 11, 16))
    assert report._repr_html_().count("<table>") == 2
    assert full_report()._repr_html_().count("<table>") == 1


def test_print_lists_the_answers_about_the_other_explainers(report):
    answers = zip(TITLES, ("no", "no", "not measured", "undecided", "yes"), strict=True)
    assert f"gradient: {', '.join(' '.join(pair) for pair in answers)}" in str(report).splitlines()


QUERY = """
  doc.querySelectorAll("details").forEach(one => one.open = true);
  const parts = [...doc.querySelectorAll("body *")].filter(one => !one.closest(".scroll, .skip, svg"));
  const wide = parts.filter(one => one.getBoundingClientRect().right > view.innerWidth + 0.5);
  const color = (name, what) => view.getComputedStyle(doc.querySelector(name))[what];
  const signs = [...doc.querySelectorAll(".explainers td .icon")].map(one => one.getBoundingClientRect());
  return {
    fits: doc.documentElement.scrollWidth <= view.innerWidth, wide: wide.map(one => one.outerHTML.slice(0, 120)),
    paper: color("body", "backgroundColor"), sign: color(".explainers td.no", "color"),
    rows: new Set(signs.map(box => Math.round(box.top))).size, shown: signs.every(box => box.width > 5),
  };"""


@pytest.mark.parametrize("mode", [LIGHT, pytest.param(DARK, marks=pytest.mark.slow)])
def test_the_grid_fits_a_phone_and_a_screen_in_both_modes(html, tmp_path: Path, mode):
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    widths = measure(tmp_path / "page.html", QUERY, (320, 390, 1200), mode)
    assert [width["wide"] for width in widths] == [[], [], []]
    assert all(width["fits"] and width["shown"] and width["rows"] == 3 for width in widths)
    assert all(width["sign"] != width["paper"] for width in widths)
