"""The documentation site: generated pages are complete, links resolve, and nothing is loaded from a network."""

import html
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from printed_pages import ROOT

pytest.importorskip("mkdocs", reason="the extra docs is not installed")
pytest.importorskip("latex2mathml", reason="the extra docs is not installed")
import api_pages
import cli_pages
import data_tables
import metric_pages
import plot_svg
import site_pages
import steadygaze
import technique_cards
from markdown_text import paragraphs, table, with_links
from steadygaze.cli import COMMANDS
from steadygaze.core.settings import field_names
from steadygaze.properties import all_measures
from steadygaze.techniques import TECHNIQUES
from studies.study import STUDIES


@cache
def cards() -> dict[str, str]:
    return technique_cards.pages(ROOT)


@pytest.mark.parametrize("name", TECHNIQUES)
def test_the_card_of_a_technique_is_complete(name: str) -> None:
    text = cards()[f"methods/{name}.md"]
    parts = dict(re.findall(r"^## (.+?)\n\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    assert list(parts) == [*technique_cards.SECTIONS, "Our result", "Settings"]
    assert all(part.strip() for part in parts.values())
    assert "https://arxiv.org/abs/" in text or "ours" in text
    assert (ROOT / re.search(r"Tests: `([^`]+)`", text)[1]).is_file()
    for setting in field_names(TECHNIQUES[name]):
        assert f"| `{setting}` |" in parts["Settings"] or setting in getattr(TECHNIQUES[name], "filled", ())


def test_the_result_of_a_card_is_that_of_the_study() -> None:
    """The study has −29…−35; −18…−23 for top-7 words that consensus loses.  Flips come first, shifts last."""
    text = cards()["methods/consensus.md"]
    assert "| top-7 words lost, training table | −29 to −35 % | −45 to −51 % |" in text
    assert "| −29…−35; −18…−23; −16…−33 |" in (ROOT / "docs" / "results" / "stability.md").read_text(encoding="utf-8")
    places = [
        text.index(f"\n| {effect}") for effect in ("label flips", "top-7 words lost", "Kendall's τ", "shift (JSD)")
    ]
    assert places == sorted(places)
    text = cards()["methods/seat.md"]
    assert "| shift (JSD), training table | 0 % | −1 to −3 % |" in text
    assert "under synonyms attention shifts at most 2 % less" in " ".join(text.split())
    assert "10 %" not in text.partition("## Our result")[2].partition("## Settings")[0]
    f1 = STUDIES["movies"].numbers["f1.a2r"]
    assert f1.interval is not None
    low, high = (100 * end for end in f1.interval)
    assert f"| A2R | {100 * float(f1):.1f} ({low:.1f} to {high:.1f}) |" in cards()["methods/a2r.md"]


def test_every_command_and_option_has_a_place() -> None:
    pages = cli_pages.pages(ROOT)
    for name in COMMANDS:
        text = "\n".join(text for path, text in pages.items() if path.startswith(f"cli/{name}"))
        assert re.search(r"\| `--\w", text) or name in ("list", "demo"), name
        assert "## Exit codes" in text
    assert "| `--technique <str>` |" in pages["cli/train.md"]
    assert "| 1 | a requirement is not met, or --verify finds a difference |" in pages["cli/audit.md"]
    assert "| `--seed N` | Random seed. | 0 (x ≥ 0) |" in pages["cli/certify.md"]


def test_every_measure_has_a_card() -> None:
    text = "\n".join(metric_pages.pages(ROOT).values())
    for name in all_measures():
        assert f"\n## {name} {{ #" in text
    assert "| bounds | 0 to ln 2 |" in text
    assert "q = 1 − Π (1 − d_t)" in text


def test_every_page_of_measures_has_their_definitions() -> None:
    pages = {path: text for path, text in metric_pages.pages(ROOT).items() if "## Definitions" in text}
    formulas = {path: text.partition("## Definitions")[2].count("```text") for path, text in pages.items()}
    assert len(formulas) > 3
    assert {path: count for path, count in formulas.items() if not count} == {}
    assert "encode-meter       mean of   ln q(c | shown)" in pages["metrics/shortcut-leakage.md"]


def test_every_public_name_has_a_page() -> None:
    pages = api_pages.pages(ROOT)
    assert {f"api/{name}.md" for name in steadygaze.__all__ if name != "__version__"} <= set(pages)


IMPORT = re.compile(r"^(?:from (steadygaze[\w.]*) import ([\w, ]+)|import (steadygaze\.[\w.]+))", re.MULTILINE)


def imports(text: str) -> set[str]:
    """The paths of the names that a page imports from steadygaze."""
    matches = IMPORT.findall(text)
    named = {f"{module}.{name.strip()}" for module, names, _ in matches for name in names.split(",") if module}
    return named | {module for _, _, module in matches if module}


def test_every_name_that_a_page_imports_is_in_the_api_reference() -> None:
    reference = {f"steadygaze.{name}" for name in api_pages.public_names()} | set(api_pages.IMPORTED)
    reference |= {*api_pages.RETURNED.values(), *api_pages.EXTENSIONS.values()}
    texts = {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]}
    for path in (ROOT / "docs" / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts[path] = "\n".join("".join(cell["source"]) for cell in cells)
    found = {path: imports(text) for path, text in texts.items()}
    assert "steadygaze.techniques.technique.Stage" in found[ROOT / "docs" / "how-to" / "own-technique.md"]
    assert {path.name: names - reference for path, names in found.items() if names - reference} == {}


def test_names_for_extensions_are_listed_with_their_module() -> None:
    pages = api_pages.pages(ROOT)
    assert (
        "| [`Stage`](Stage.md) | `steadygaze.techniques.technique` | One run of the training loop. |"
        in (pages["api/index.md"])
    )
    assert all("(../how-to/own-technique.md)" in pages[f"api/{name}.md"] for name in ("index", "TextClassifier"))
    assert "from steadygaze.techniques.technique import Stage\n" in pages["api/Stage.md"]


def test_docstrings_become_markdown() -> None:
    assert paragraphs("a\nb\n\n    x = 1\n\n    y\n\nc") == "a b\n\n```text\nx = 1\n\ny\n```\n\nc"
    assert with_links("(arXiv:2211.12290)") == "([arXiv:2211.12290](https://arxiv.org/abs/2211.12290))"
    assert table(("a",), [("x|y\nz",)]) == "| a |\n| --- |\n| x\\|y z |\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # a notice of the theme
    ended = subprocess.run(build, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return folder


@pytest.mark.slow
def test_every_link_and_anchor_of_the_site_resolves(site: Path) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(texts) > 100
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in texts.items()}
    for path, text in texts.items():
        for link in map(html.unescape, re.findall(r'\b(?:href|src)="([^"]+)"', text)):
            parts = urlsplit(link)
            if parts.scheme or link in ("#", "."):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{path}: {link}"
            if parts.fragment and target in anchors and not parts.fragment.startswith("__"):
                assert unquote(parts.fragment) in anchors[target], f"{path}: {link}"


@pytest.mark.slow
def test_the_site_loads_nothing_from_a_network(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r'\bsrc="(?:https?:)?//[^"]+', text), path
        assert not re.findall(r'<link[^>]+href="(?:https?:)?//[^"]+', text), path
    for path in site.rglob("*.css"):
        assert not re.findall(r"url\((?:\"|')?https?:", path.read_text(encoding="utf-8")), path


@pytest.mark.slow
def test_equations_are_mathml(site: Path) -> None:
    text = (site / "concepts" / "stability.html").read_text(encoding="utf-8")
    assert text.count("<math") >= 3
    assert "arithmatex" not in text


def test_a_plot_becomes_part_of_the_page_in_the_colors_of_the_theme() -> None:
    element = plot_svg.inline('<p><img alt="A &amp; b" src="../figures/results/image-fills.svg" /></p>', ROOT / "docs")
    assert element.startswith('<p><span class="plot"')
    assert '<svg role="img" aria-label="A &amp; b" ' in element
    assert 'fill="currentColor"' in element
    assert 'fill="#1a2027"' not in element
    assert 'fill="#ffffff"' not in element
    assert 'id="image-fills-gradient_0"' in element
    assert "url(#image-fills-gradient_0)" in element
    assert plot_svg.inline('<img alt="x" src="figures/flow.svg" />', ROOT) == '<img alt="x" src="figures/flow.svg" />'


def test_a_link_to_a_csv_file_becomes_a_table(tmp_path: Path) -> None:
    (tmp_path / "all.csv").write_text('row,shift\n"a, <b>",-0.5\nc,\n', encoding="utf-8")
    page = '<p><a class="data-table" href="all.csv">All</a></p><p><a href="all.csv">file</a></p>'
    html = data_tables.with_tables(page, tmp_path)
    assert html.startswith('<p><a class="data-table" href="all.csv">All</a> (CSV)</p><div class="data-table"')
    assert '<th scope="col">row</th><th scope="col">shift</th>' in html
    assert '<tr><td>a, &lt;b&gt;</td><td class="number">−0.5</td></tr>' in html
    assert html.count("<table") == 1


def test_a_picture_of_texts_has_columns_in_the_colors_of_the_theme() -> None:
    element = plot_svg.inline('<img alt="A" src="figures/synonym-shift.svg" />', ROOT / "docs")
    assert element.startswith('<span class="plot columns" role="img" aria-label="A"><svg aria-hidden="true" ')
    assert (element.count("<svg "), element.count("</svg>")) == (2, 2)
    assert 'fill="var(--plot-highlight)"' in element
    assert not set(re.findall(r"#[0-9a-f]{6}|<style>", element)), "colors of the page, not of the system"


def test_pictures_write_percentages_as_the_pages_do() -> None:
    for path in (ROOT / "docs" / "figures").rglob("*.svg"):
        assert not re.findall(r">[^<]*\d%[^<]*<", path.read_text(encoding="utf-8")), path
    assert ">vanilla: positive 99.1 %<" in (ROOT / "docs" / "figures" / "synonym-shift.svg").read_text(encoding="utf-8")


def test_lines_do_not_break_before_a_percent_sign_or_in_an_option() -> None:
    page = "<p>77 % <code>audit --other-seed M</code></p><pre>5 % <code>--limit</code></pre><img alt='5 %'>"
    changed = '<p>77&nbsp;% <code>audit <span class="option">--other-seed</span> M</code></p>'
    assert site_pages.unbroken(page) == f"{changed}<pre>5 % <code>--limit</code></pre><img alt='5 %'>"
