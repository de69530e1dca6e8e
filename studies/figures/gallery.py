"""Make the pictures and highlights of docs/gallery.md from real output.

Run `make demo`, then a comparison and this script:

    steadygaze compare "planted-reviews:sizes=[600,100,80],negation=0,own=40,agreement=0.9" --encoder average \\
        --techniques vanilla,word-at,attention-at --seeds 5 --epochs 5 --set hidden=32 --set dimension=32 \\
        --set learning_rate=0.005 --synonyms runs/demo/synonyms.jsonl --out runs/compare
    python -m studies.figures gallery runs/demo runs/compare

Pictures are screenshots by Chromium of parts of the pages, with 64 colors.  Highlights are the HTML that a notebook
shows, in docs/figures/highlights.html.  What the comparison shows is a sentence of
studies/records/gallery_comparison.json.
"""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

import steadygaze as sg
from steadygaze.cli.demo import CORPUS

ROOT = Path(__file__).parents[2]
PAGE, FOLDER = ROOT / "docs" / "gallery.md", ROOT / "docs" / "figures" / "gallery"
HIGHLIGHTS = ROOT / "docs" / "figures" / "highlights.html"
COMPARISON = "<!-- comparison -->", "<!-- end of comparison -->"
MARK_NAMES = {
    "better": "better",
    "bought": "better by collapse",
    "worse": "worse",
    "differs": "different",
    "": "no significant difference",
    "not tested": "not tested",
}
"""Mark of a cell -> its name in the summary."""
RECORD = ROOT / "studies" / "records" / "gallery_comparison.json"
COLORS = 64
LIGHT, DARK = "--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0"


class Shot(NamedTuple):
    page: str
    size: tuple[int, int]
    only: str = ""
    """The part of the page to show: the label of a section; empty: from the top."""
    dark: bool = False


SHOTS = {
    "audit": Shot("demo/report.html", (900, 860)),
    "audit-failed": Shot("demo/vanilla.html", (900, 860)),
    "verdicts": Shot("demo/report.html", (900, 900), "verdicts"),
    "shifts": Shot("demo/vanilla.html", (900, 820), "texts"),
    "errors-dark": Shot("demo/vanilla.html", (900, 900), "predictions", dark=True),
    "phone": Shot("demo/report.html", (500, 900)),
    "comparison": Shot("compare/comparison.html", (900, 900)),
    "comparison-table": Shot("compare/comparison.html", (900, 900), "table"),
}


def take(shot: Shot, page: Path, out: Path) -> None:
    """A screenshot of a page or of one of its sections."""
    html = page.read_text(encoding="utf-8")
    if shot.only:
        hidden = f'.page > header, footer, main > section:not([aria-labelledby="{shot.only}"])'
        style = f"{hidden} {{ display: none }} main > section {{ border: 0; margin: 0; padding: 0 }}"
        html = html.replace("</style>", f"{style}</style>", 1)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("Chromium is not installed: apt install chromium")
    with tempfile.TemporaryDirectory() as folder:
        copy, picture = Path(folder) / "page.html", Path(folder) / "page.png"
        copy.write_text(html, encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", DARK if shot.dark else LIGHT]
        place = [f"--user-data-dir={folder}/profile", f"--window-size={shot.size[0]},{shot.size[1]}"]
        command = [chromium, *flags, *place, f"--screenshot={picture}", copy.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        Image.open(picture).convert("RGB").quantize(COLORS).save(out, optimize=True)


def highlights(demo: Path) -> str:
    """One review, explained in four ways."""
    text = sg.load_corpus(CORPUS).splits["test"][0].text
    models = {name: sg.load(demo / name, device="cpu") for name in ("vanilla", "consensus")}
    shown = {
        "Attention of `vanilla`": models["vanilla"].explain(text),
        "Attention of `consensus`": models["consensus"].explain(text),
        "Integrated gradients of `consensus`": models["consensus"].explain(text, explainer="integrated-gradients"),
        "Leave-one-out of `consensus`": models["consensus"].explain(text, explainer="leave-one-out"),
    }
    parts = []
    for title, explanation in shown.items():
        html = re.sub(r"\s*\n\s*", " ", explanation._repr_html_())
        parts.append(f'### {title}\n\n<div class="output">{html}</div>\n')
    return "\n".join(parts)


def compact(comparison: dict[str, Any]) -> dict[str, Any]:
    """Seeds, titles of the columns, and the significant differences of each technique from the first."""
    columns = {column["measure"]: column["title"] for column in comparison["columns"] if column["brief"]}
    marks = {
        technique["technique"]: {
            title: _mark(technique["numbers"][measure])
            for measure, title in columns.items()
            if measure in technique["numbers"]
        }
        for technique in comparison["techniques"]
    }
    return {"seeds": len(comparison["seeds"]), "baseline": comparison["baseline"], "marks": marks}


def _mark(number: dict[str, Any]) -> str:
    tested = (number.get("against") or {}).get("p") is not None
    return str(number.get("mark", "")) if tested else "not tested"


def summary(record: dict[str, Any]) -> str:
    """What the comparison shows."""
    sentences = []
    for technique, marks in record["marks"].items():
        if technique != record["baseline"]:
            columns = {kind: [title for title, mark in marks.items() if mark == kind] for kind in MARK_NAMES}
            parts = [f"{MARK_NAMES[kind]}: {', '.join(titles)}" for kind, titles in columns.items() if titles]
            sentences.append(
                f"`{technique}` against `{record['baseline']}` with {record['seeds']} seeds: {'; '.join(parts)}."
            )
    return "\n".join(f"- {sentence[0].upper()}{sentence[1:]}" for sentence in sentences)


def between(text: str, marks: tuple[str, str], body: str) -> str:
    """The text with another part between its two marks."""
    before, _, rest = text.partition(marks[0])
    return f"{before}{marks[0]}\n\n{body}\n{marks[1]}{rest.partition(marks[1])[2]}"


def run(demo: Path, comparison: Path) -> None:
    """The folders of the demo and of the comparison."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    folders = {"demo": demo, "compare": comparison}
    for name, shot in SHOTS.items():
        folder, _, page = shot.page.partition("/")
        take(shot, folders[folder] / page, FOLDER / f"{name}.png")
    record = compact(json.loads((comparison / "comparison.json").read_text(encoding="utf-8")))
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    page = between(PAGE.read_text(encoding="utf-8"), COMPARISON, summary(record) + "\n")
    PAGE.write_text(page, encoding="utf-8")
    HIGHLIGHTS.write_text(highlights(demo), encoding="utf-8")
