"""Tables, defaults and links in Markdown."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import MISSING
from typing import Any

ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell(item) for item in line) + " |" for line in lines) + "\n"


def cell(value: Any) -> str:
    return re.sub(r"\s+", " ", str(value)).replace("|", "\\|").strip()


def code(value: Any) -> str:
    return f"`{value}`" if str(value) else ""


def default(value: Any) -> str:
    """A default as it is written in Python."""
    if value is MISSING:
        return "required"
    return code(value if not isinstance(value, str) else f'"{value}"')


def with_links(text: str) -> str:
    """Link arXiv numbers."""
    return ARXIV.sub(r"[arXiv:\1](https://arxiv.org/abs/\1)", text)


def paragraphs(text: str) -> str:
    """Prose of a docstring as Markdown: indented blocks become code, single line breaks are kept as spaces."""
    parts = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.split("\n")
        if all(line.startswith("    ") for line in lines):
            body = "\n".join(line[4:] for line in lines)
            if parts and parts[-1].startswith("```"):
                parts[-1] = parts[-1].removesuffix("\n```") + f"\n\n{body}\n```"
            else:
                parts.append(f"```text\n{body}\n```")
        else:
            parts.append(with_links(re.sub(r"\s+", " ", block)))
    return "\n\n".join(parts)
