"""The command `compare`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import (
    Common,
    command_help,
    common_options,
    config_options,
    options_of,
    output_option,
    training_option,
)
from steadygaze.cli.printing import print_health, print_json, print_line, stderr_console
from steadygaze.cli.study_runtime import RuntimeOptions, study_runtime
from steadygaze.data.splits import DataConfig
from steadygaze.study.study_options import CompareOptions

if TYPE_CHECKING:
    from steadygaze.results.comparison import Comparison

WIDTH = 240
"""Columns of a table that is written to a file or a pipe."""


@app.command(
    **command_help(
        "compare reviews.csv --techniques vanilla,word-at --out runs/c",
        "compare sst2 --techniques vanilla,consensus --seeds 5 --set synonyms=table.jsonl --out runs/sst2",
        "compare reviews.csv --techniques vanilla,word-at --set-for word-at:epsilon=0.1 --limit 200 --out runs/d",
    )
)
@common_options("verbose")
@options_of("study", RuntimeOptions)
@config_options(DataConfig, "texts", split="test, or a held-out fifth of the texts", label="label")
@config_options(CompareOptions)
def compare(
    data: shared.Data,
    settings: dict[str, Any],
    texts: dict[str, Any],
    out: Annotated[Path, output_option("--out", "-o", help="Folder of the comparison; the same command resumes it.")],
    *,
    study: RuntimeOptions,
    settings_of_all: shared.SettingsOfAll = None,
    settings_for: Annotated[
        list[str] | None,
        training_option("--set-for", metavar="TECHNIQUE:KEY=VALUE", help="Setting of one technique; repeatable."),
    ] = None,
    common: Common,
) -> None:
    """Train techniques with several seeds, audit every model and test the differences."""
    from steadygaze.core.settings import build, parse
    from steadygaze.study.compare import compare as run
    from steadygaze.study.compare_config import CompareConfig

    of_all, of_some = parse(settings_of_all or []), _parse_settings_for(settings_for or [])
    shared_values = {"data": data, "seed": common.seed, "batch_size": common.batch_size}
    config = build(CompareConfig, {**texts, **settings, **shared_values, "settings": of_all, "settings_for": of_some})
    with study_runtime(out, common, study, "models") as runtime:
        result = run(config, runtime)
    _show(result, out, common)


def _parse_settings_for(pairs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """word-at:epsilon=0.1 -> {"word-at": {"epsilon": 0.1}}"""
    from steadygaze.core.errors import UserError
    from steadygaze.core.settings import parse

    settings: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        technique, colon, setting = pair.partition(":")
        if not colon or not technique.strip() or "=" not in setting:
            raise UserError(f"--set-for takes technique:key=value, found {pair!r}; for example: word-at:epsilon=0.1")
        settings.setdefault(technique.strip(), {}).update(parse([setting]))
    return settings


def _show(comparison: "Comparison", out: Path, common: Common) -> None:
    print_health(comparison.health)
    if common.json:
        print_json(comparison.to_dict())
        return
    from steadygaze.core.errors import Console
    from steadygaze.report.terminal_tables import ComparisonTable

    console = Console()
    Console(width=console.width if console.is_terminal else WIDTH).print(ComparisonTable(comparison, with_health=False))
    page = out / "comparison.html"
    print_line(stderr_console(common), f"open {page} in a browser")
