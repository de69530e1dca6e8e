"""No output of a command overwrites an input, and no two outputs are the same."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadygaze.core.output_paths import check_file, check_folder, check_separate

LONGEST_PREFIX = 1000
"""Characters of an argument in which a path may begin."""


FOLDERS = ("out", "bundle", "teacher_cache")


OUTPUTS = ("html", "eraser", "out_file", "test_out", "save_config", *FOLDERS)
"""Options that name an output.  All others can name an input, except NO_INPUTS."""


NO_INPUTS = ("texts", "text", "label", "rationales", "sentences", "config")
"""Options that name no input, and `config`: `save_config` may replace its file."""


def check_outputs(values: Mapping[str, Any], data_dir: Path | None) -> None:
    """Refuse outputs that must not be written, before the command does any work."""
    others = [value for name, value in values.items() if name not in (*OUTPUTS, *NO_INPUTS)]
    inputs = [path for value in others for path in _paths(value, data_dir)]
    outputs = {name: Path(values[name]) for name in OUTPUTS if values.get(name) is not None}
    for name, path in outputs.items():
        if name in FOLDERS:
            check_folder(path, inputs)
        else:
            check_file(path, inputs, values.get("replace", False))
    check_separate({f"--{name.replace('_', '-')}": path for name, path in outputs.items()})


def _paths(value: Any, data_dir: Path | None) -> list[Path]:
    """Existing paths in an option: reviews.csv, biased=0.8:reviews.csv, synonyms=table.jsonl, sst2."""
    if isinstance(value, list | tuple):
        return [path for item in value for path in _paths(item, data_dir)]
    if not isinstance(value, str | Path):
        return []
    text = str(value)
    parts = [text, *(text[match.end() :] for match in re.finditer("[:=]", text[:LONGEST_PREFIX]))]
    base = data_dir or os.environ.get("STEADYGAZE_DATA")
    in_base = [os.path.join(base, part) for part in parts] if base else []
    return [Path(path) for part in (*parts, *in_base) if part and os.path.exists(path := os.path.expanduser(part))]
