"""Pages from the notebooks in docs/notebooks, with the outputs that they contain."""

import json
import re
from pathlib import Path
from typing import Any


def pages(root: Path) -> dict[str, str]:
    return {f"notebooks/{path.stem}.md": page(path) for path in sorted((root / "docs" / "notebooks").glob("*.ipynb"))}


def page(path: Path) -> str:
    """A notebook as Markdown; a link to its file follows the title."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = [part for cell in cells for part in _parts(cell)]
    title, *rest = parts
    return "\n\n".join([title, f"[Download this notebook]({path.name})", *rest]) + "\n"


def _parts(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source.replace(".ipynb)", ".md)")]
    return [f"```python\n{source}\n```", *(part for output in cell["outputs"] for part in _output(output))]


def _output(output: dict[str, Any]) -> list[str]:
    if output["output_type"] == "stream":
        return [_text("".join(output["text"]))]
    data = output["data"]
    html = re.sub(r"\s*\n\s*", " ", "".join(data.get("text/html", [])))
    if not html or "<pre" in html:  # line breaks matter
        return [_text("".join(data["text/plain"]))]
    return [f'<div class="output">{html}</div>']


def _text(text: str) -> str:
    lines = (line.rstrip() for line in text.strip("\n").splitlines())
    return "```text\n" + "\n".join(lines) + "\n```"
