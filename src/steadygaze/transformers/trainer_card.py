"""The part of the model card that names the technique and the synonym groups of a StableTrainer."""

import re
from dataclasses import asdict
from pathlib import Path

from steadygaze.core import __version__
from steadygaze.core.atomic_files import write_text
from steadygaze.core.untrusted_files import read_text
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.techniques.technique import Technique
from steadygaze.transformers.supported_techniques import technique_name

CARD = "README.md"
BEGIN, END = "<!-- steadygaze: the next training replaces this part -->", "<!-- end of steadygaze -->"
PART = re.compile(f"{BEGIN}.*?{END}\n?", re.DOTALL)
GROUPED = """
It reads each word of {summary} as the representative of its group (synonym_groups.json).
`steadygaze.load(folder)` applies the groups.  Plain transformers does not: rewrite the texts first.
"""


def add_to_card(folder: Path, technique: Technique, groups: SynonymGroups | None) -> None:
    """Add the part to the card in a folder, or write a card."""
    file = folder / CARD
    text = PART.sub("", read_text(file)) if file.is_file() else "# A text classifier\n"
    settings = ", ".join(f"{name} {value}" for name, value in asdict(technique).items())
    name = technique_name(technique) + (f" ({settings})" if settings else "")
    grouped = "" if groups is None else GROUPED.format(summary=groups.summary)
    part = f"{BEGIN}\nTrained with StableTrainer of steadygaze {__version__}, technique {name}.\n{grouped}{END}\n"
    write_text(file, f"{text.rstrip()}\n\n{part}")
