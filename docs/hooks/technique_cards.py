"""Method cards, from the docstrings, settings and results of the techniques."""

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from markdown_text import code, default, paragraphs, table, with_links
from steadygaze.core.settings import descriptions
from steadygaze.techniques import TECHNIQUES

MARKER = "<!-- generated: table of techniques -->"


def pages(root: Path) -> dict[str, str]:
    index = (root / "docs" / "methods" / "index.md").read_text(encoding="utf-8")
    rows = [(f"[`{name}`]({name}.md)", _summary(technique)) for name, technique in TECHNIQUES.items()]
    return {
        "methods/index.md": index.replace(MARKER, table(("technique", "objective"), rows)),
        **{f"methods/{name}.md": card(name, technique) for name, technique in TECHNIQUES.items()},
    }


def card(name: str, technique: Any) -> str:
    text = str(inspect.getmodule(technique).__doc__)
    title, _, rest = text.partition("\n")
    return "\n".join([f"# {name}\n", f"**{title}**\n", paragraphs(rest), "## Settings\n", settings_table(technique)])


def settings_table(technique: Any) -> str:
    about, filled = descriptions(technique), getattr(technique, "filled", ())
    rows = [
        (code(f.name), default(f.default), about.get(f.name, "")) for f in fields(technique) if f.name not in filled
    ]
    if not rows:
        return "This technique has no settings of its own.\n"
    return table(("setting", "default", "meaning"), rows)


def _summary(technique: Any) -> str:
    return with_links(re.split(r"\n", str(technique.__doc__))[0])
