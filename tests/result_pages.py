"""The text of pages, to compare with the numbers of records."""

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"


def text_of(page: Path) -> str:
    """A page as one line, so that line breaks do not matter."""
    return " ".join(page.read_text(encoding="utf-8").split())


def missing(sentences: Iterable[str], page: Path) -> list[str]:
    """The sentences that the page does not have; a hyphen before a number is written as a minus sign."""
    text = text_of(page)
    return [sentence for sentence in sentences if re.sub(r"(?<![\w-])-(?=\d)", "−", sentence) not in text]
