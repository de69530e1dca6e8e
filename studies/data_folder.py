"""The folder of published corpora, $STEADYGAZE_DATA, with one folder <name>/<split>.parquet per corpus."""

import os
import sys
from pathlib import Path

VARIABLE = "STEADYGAZE_DATA"


def has_corpus(name: str) -> bool:
    """Whether $STEADYGAZE_DATA is set and has a folder of this corpus."""
    return bool(os.environ.get(VARIABLE)) and (Path(os.environ[VARIABLE]) / name).is_dir()


def data_folder(name: str) -> Path:
    """The folder of all corpora; end the program with a message if it lacks the named one."""
    if has_corpus(name):
        return Path(os.environ[VARIABLE])
    value = os.environ.get(VARIABLE)
    problem = f"${VARIABLE} is not set" if not value else f"{Path(value) / name} is not a folder"
    sys.exit(f"{problem}: set {VARIABLE} to a folder that contains {name}/<split>.parquet")
