"""The page of an audit in a real browser: no script, no request; all of it is visible and reachable."""

import re
from pathlib import Path

import pytest

from report.audited import full_report
from report.browser import DARK, LIGHT, browse, measure
from report.hostile import IMAGE, SCRIPT, hostile


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("audit") / "report.html"
    full_report().to_html(place)
    return place


@pytest.mark.slow
def test_a_browser_runs_no_script_of_a_text_makes_no_requests_and_reports_no_errors(tmp_path: Path):
    hostile(SCRIPT + IMAGE).to_html(tmp_path / "page.html")
    dom, log = browse(tmp_path / "page.html")
    assert "<title>Title &lt;script&gt;" in dom
    assert "<script" not in dom
    assert "<img" not in dom
    assert "CONSOLE" not in log
    assert "192.0.2.1" not in log


WIDTHS = (320, 390, 1200)
PAGE_QUERY = """
  const color = (name, what) => view.getComputedStyle(doc.querySelector(name))[what];
  const cards = ["no", "undecided", "yes", "not-measured"].map(answer => `.card.${answer} .answer`);
  const words = [".card h3", ".meaning", ".axis .bound", ".answers a", ".shift .verdict.wrong", "a", ...cards];
  const inks = words.map(name => color(name, "color"));
  const fills = [color(".plot text", "fill"), ...[1, 2].map(i => color(`.plot .stroke-series-${i}`, "stroke"))];
  const folds = [...doc.querySelectorAll("details")];
  folds.forEach(one => one.open = true);
  const parts = [...doc.querySelectorAll("body *")].filter(one => !one.closest(".scroll, .skip, svg"));
  const wide = parts.filter(one => one.getBoundingClientRect().right > view.innerWidth + 0.5);
  const reached = [...doc.querySelectorAll("summary, a, [tabindex]")];
  return {
    paper: color("body", "backgroundColor"), inks: [...inks, ...fills],
    answered: doc.querySelector(".answers").getBoundingClientRect().bottom,
    fits: doc.documentElement.scrollWidth <= view.innerWidth, wide: wide.map(one => one.outerHTML.slice(0, 120)),
    keyboard: reached.every(one => { one.focus(); return doc.activeElement === one; }),
    named: folds.every(one => one.firstElementChild.tagName === "SUMMARY"),
  };"""


@pytest.fixture(
    scope="module", params=[pytest.param(LIGHT, id="light"), pytest.param(DARK, id="dark", marks=pytest.mark.slow)]
)
def seen(request, page) -> tuple[bool, dict[int, dict]]:
    """Whether it is dark, and what a browser finds at each width."""
    return request.param is DARK, dict(zip(WIDTHS, measure(page, PAGE_QUERY, WIDTHS, request.param), strict=True))


@pytest.mark.parametrize("width", WIDTHS)
def test_no_part_of_the_page_is_wider_than_the_screen(seen, width):
    assert seen[1][width]["wide"] == []
    assert seen[1][width]["fits"]


@pytest.mark.parametrize("width", [390, 1200])
def test_the_first_screen_holds_all_answers(seen, width):
    assert seen[1][width]["answered"] <= 844  # of a phone


def test_all_that_is_folded_can_be_opened_from_the_keyboard(seen):
    assert all(result["keyboard"] and result["named"] for result in seen[1].values())


def luminance(color: str) -> float:
    """Relative luminance of WCAG 2."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_words_and_pictures_are_legible_in_light_and_dark(seen):
    """Contrast of WCAG 2 AA: 4.5 for text, and here for the colors of pictures too."""
    dark, result = seen
    paper = luminance(result[390]["paper"])
    assert (paper < 0.05) == dark
    for ink in map(luminance, result[390]["inks"]):
        assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) >= 4.5
