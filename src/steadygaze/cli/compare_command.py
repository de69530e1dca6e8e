"""The command `compare`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from steadygaze.cli import app
from steadygaze.cli.application import (
    Common,
    Data,
    command_help,
    common_options,
    model_option,
    output_option,
    print_health,
    stderr_console,
    training_option,
)
from steadygaze.cli.command_options import config_options
from steadygaze.cli.output_streams import print_json, print_line
from steadygaze.cli.study_runtime import StudyOptions, study_options, study_runtime
from steadygaze.data.splits import DataConfig

if TYPE_CHECKING:
    from steadygaze.results.comparison import Comparison

Techniques = Annotated[
    str,
    training_option(
        "--techniques", metavar="A,B,…", help="Techniques; the first is the baseline; see: list techniques."
    ),
]
Out = Annotated[Path, output_option("--out", "-o", help="Folder of the comparison; the same command resumes it.")]
Seeds = Annotated[
    int, training_option("--seeds", min=1, metavar="N", help="Models per technique: --seed, --seed + 1, …")
]
Settings = Annotated[
    list[str] | None, training_option("--set", metavar="KEY=VALUE", help="Setting of all techniques; repeatable.")
]
SettingsFor = Annotated[
    list[str] | None,
    training_option("--set-for", metavar="TECHNIQUE:KEY=VALUE", help="Setting of one technique; repeatable."),
]
Explainer = Annotated[
    str | None, model_option("--explainer", help="Explainer; see: list explainers.", show_default="the model's")
]
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
@study_options
@config_options(DataConfig, split="test, or a held-out fifth of the texts", label="label")
def compare(
    data: Data,
    techniques: Techniques,
    out: Out,
    *,
    settings: dict[str, Any],
    study: StudyOptions,
    explainer: Explainer = None,
    seeds: Seeds = 3,
    settings_of_all: Settings = None,
    settings_for: SettingsFor = None,
    common: Common,
) -> None:
    """Train techniques with several seeds, audit every model and test the differences."""
    from steadygaze.core.settings import build, parse
    from steadygaze.study.compare import compare as run
    from steadygaze.study.compare_config import CompareConfig

    config = {
        **settings,
        **study.config(common),
        "data": data,
        "techniques": tuple(name.strip() for name in techniques.split(",") if name.strip()),
        "seeds": seeds,
        "settings": parse(settings_of_all or []),
        "settings_for": _parse_settings_for(settings_for or []),
        "explainer": explainer,
    }
    comparison = build(CompareConfig, config)
    with study_runtime(out, common, study, "models") as runtime:
        result = run(comparison, runtime)
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
