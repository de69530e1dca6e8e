"""Method cards, from the docstrings, settings and results of the techniques."""

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from markdown_text import code, default, paragraphs, table
from steadygaze.core.settings import descriptions
from steadygaze.estimator.train_config import TextConfig
from steadygaze.models.classifier import Architecture
from steadygaze.techniques import TECHNIQUES
from steadygaze.training.optimizers import Training
from technique_results import result

MARKER = "<!-- generated: table of techniques -->"
SECTIONS = ("Equation", "Cost", "When to use", "Departs from the paper")
"""Sections of the docstring of a technique's module, all required."""


def pages(root: Path) -> dict[str, str]:
    index = (root / "docs" / "methods" / "index.md").read_text(encoding="utf-8")
    parts = {name: sections(str(inspect.getmodule(technique).__doc__)) for name, technique in TECHNIQUES.items()}
    rows = [
        (f"[`{name}`]({name}.md)", part["title"].partition(": ")[2] or part["title"]) for name, part in parts.items()
    ]
    return {
        "methods/index.md": index.replace(MARKER, table(("technique", "objective"), rows)),
        **{f"methods/{name}.md": card(name, TECHNIQUES[name], part, root) for name, part in parts.items()},
        "methods/settings.md": shared_settings(),
    }


def sections(docstring: str) -> dict[str, str]:
    """Title, source, the sections, and tests of a docstring."""
    title, _, rest = docstring.partition("\n")
    head, *parts = re.split(r"^([A-Z][\w ]+)\n-{3,}$", rest, flags=re.MULTILINE)
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    last, _, tests = texts[SECTIONS[-1]].partition("Tested by ")
    return {"title": title, "source": head.strip(), **texts, SECTIONS[-1]: last, "tests": tests.strip().rstrip(".")}


def card(name: str, technique: Any, part: dict[str, str], root: Path) -> str:
    module = Path(inspect.getfile(technique)).name
    files = f"Source: `src/steadygaze/techniques/{module}`. Tests: `{part['tests'].replace(' and ', '` and `')}`."
    text = [f"# {name}\n", f"{part['title']}\n", paragraphs(part["source"]) or "Ours.", ""]
    for section in SECTIONS:
        text += [f"## {section}\n", paragraphs(part[section]), ""]
    text += ["## Our result\n", result(name, root)]
    text += [
        "## Settings\n",
        settings_table(technique),
        "All techniques also have the [shared settings](settings.md).\n",
    ]
    return "\n".join([*text, files, ""])


def settings_table(cls: Any) -> str:
    about, filled = descriptions(cls), getattr(cls, "filled", ())
    rows = [(code(f.name), default(f.default), about.get(f.name, "")) for f in fields(cls) if f.name not in filled]
    if not rows:
        return "This technique has no settings of its own.\n"
    return table(("setting", "default", "meaning"), rows)


def shared_settings() -> str:
    groups = {"Architecture": Architecture, "Training": Training, "Texts": TextConfig}
    text = ["# Settings of every technique\n"]
    text.append('Pass them as `settings={"hidden": 64}` in Python or `--set hidden=64` on the command line.\n')
    for title, cls in groups.items():
        text += [f"## {title}\n", settings_table(cls)]
    return "\n".join(text)
