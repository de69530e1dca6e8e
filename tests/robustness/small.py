"""A small trained model and its data, for commands on hostile input."""

from dataclasses import dataclass
from pathlib import Path

import steadygaze as sg

ROWS = [("A fine and witty film", "good"), ("Dull and far too long", "bad")] * 12
TEXTS, LABELS = [text for text, _ in ROWS], [label for _, label in ROWS]
SETTINGS = {"dimension": 4}


@dataclass(frozen=True)
class Small:
    model: Path
    data: Path


def small(folder: Path) -> Small:
    """Train in less than a second, and save model and data in the folder."""
    classifier().fit(TEXTS, LABELS).save(folder / "model")
    write_csv(folder / "data.csv", ROWS)
    return Small(folder / "model", folder / "data.csv")


def classifier(**changes: object) -> sg.TextClassifier:
    return sg.TextClassifier("average", epochs=1, device="cpu", verbose=False, settings=SETTINGS, **changes)


def write_csv(path: Path, rows: list[tuple[str, str]], header: tuple[str, str] = ("text", "label")) -> Path:
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in (header, *rows)]
    path.write_text("\n".join(quoted) + "\n", encoding="utf-8", newline="")
    return path
