"""The gallery: every picture that its script takes is small and on the page, with a text alternative."""

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from printed_pages import DOCS

pytest.importorskip("PIL", reason="Pillow is not installed")
MOST_BYTES = 80_000


@pytest.fixture
def gallery() -> Any:
    return import_module("studies.figures.gallery")


def test_every_picture_is_on_the_page_with_words_and_small(gallery: Any) -> None:
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    shown = {name: words for words, name in re.findall(r"!\[([^]]+)\]\(figures/gallery/([\w-]+)\.png\)", text)}
    assert shown.keys() == gallery.SHOTS.keys() == {path.stem for path in gallery.FOLDER.iterdir()}
    assert all(len(words) > 40 for words in shown.values())
    sizes = {path.name: path.stat().st_size for path in gallery.FOLDER.glob("*.png")}
    assert max(sizes.values()) < MOST_BYTES, sizes


def test_the_comparison_has_five_seeds_and_the_page_states_what_it_shows(gallery: Any) -> None:
    record = json.loads(gallery.RECORD.read_text(encoding="utf-8"))
    assert record["seeds"] >= 5
    assert gallery.summary(record) in (DOCS / "gallery.md").read_text(encoding="utf-8")


def test_the_summary_of_a_comparison_names_every_column(gallery: Any) -> None:
    record = {"seeds": 5, "baseline": "a", "marks": {"a": {}, "b": {"x": "better", "y": "", "z": "differs"}}}
    assert gallery.summary(record) == (
        "- `b` against `a` with 5 seeds: better: x; different: z; no significant difference: y."
    )


def test_the_highlights_are_those_of_explanations_and_on_the_page(gallery: Any) -> None:
    text = gallery.HIGHLIGHTS.read_text(encoding="utf-8")
    assert text.count('<div class="output"><figure') == text.count("<h3>") == 4
    assert "share of the attention" in text
    assert f'--8<-- "{gallery.HIGHLIGHTS.relative_to(DOCS)}"' in (DOCS / "gallery.md").read_text(encoding="utf-8")


def test_a_picture_of_a_section_hides_the_rest(gallery: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in for Chromium keeps the page that it is given."""
    pages = []

    def run(command: list[str], **_: object) -> None:
        pages.append(Path(command[-1].removeprefix("file://")).read_text())
        target = next(word.partition("=")[2] for word in command if word.startswith("--screenshot"))
        gallery.Image.new("RGB", (4, 4)).save(target)

    monkeypatch.setattr(gallery.subprocess, "run", run)
    monkeypatch.setattr(gallery.shutil, "which", lambda name: name)
    (tmp_path / "page.html").write_text("<style></style><main></main>")
    gallery.take(gallery.Shot("x/page.html", (4, 4), "texts"), tmp_path / "page.html", tmp_path / "out.png")
    assert 'main > section:not([aria-labelledby="texts"]) { display: none }' in pages[0]
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
