"""The command `tune`."""

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
    data_option,
    options_of,
    output_option,
    training_option,
)
from steadygaze.cli.printing import print_health, print_json, print_line, show, stderr_console
from steadygaze.cli.study_runtime import RuntimeOptions, study_runtime
from steadygaze.study.study_options import TuneOptions

if TYPE_CHECKING:
    from steadygaze.results.tuning import Tuning


@app.command(
    **command_help(
        "tune sst2 --technique word-at --trials 20 --out runs/epsilon",
        "tune reviews.csv --technique vanilla --set learning_rate=0.0001:0.01:log --set hidden=64,128 --out runs/t",
        "tune sst2 --technique consensus --objective macro-f1,jensen-shannon/noise --trials 30 --out runs/front",
    )
)
@common_options("verbose")
@options_of("study", RuntimeOptions)
@config_options(TuneOptions, "settings")
def tune(
    data: shared.Data,
    settings: dict[str, Any],
    out: Annotated[Path, output_option("--out", "-o", help="Folder of the search; the same command resumes it.")],
    *,
    text: shared.TextColumn = None,
    label: shared.LabelColumn = "label",
    drop_empty: shared.DropEmpty = False,
    limit: Annotated[
        int | None, data_option("--limit", min=1, metavar="N", help="Validation texts to audit.", show_default="all")
    ] = None,
    study: RuntimeOptions,
    values: Annotated[
        list[str] | None,
        training_option(
            "--set",
            metavar="KEY=SPACE",
            help="Setting to vary (LOW:HIGH, LOW:HIGH:log or A,B,C) or a fixed value; repeatable.",
            show_default="the space of the technique",
        ),
    ] = None,
    common: Common,
) -> None:
    """Search the settings of a technique by validation scores, and save the best model."""
    from steadygaze.core.settings import build
    from steadygaze.study.tune import tune as run
    from steadygaze.study.tune_config import TuneConfig

    fixed, spaces = _parse_settings(values or [])
    texts = {"data": data, "text": tuple(text or ("text",)), "label": label, "drop_empty": drop_empty, "limit": limit}
    rest = {"seed": common.seed, "batch_size": common.batch_size, "settings": fixed, "spaces": spaces}
    config = build(TuneConfig, {**settings, **texts, **rest})
    with study_runtime(out, common, study, "trials") as runtime:
        result = run(config, runtime)
    _show(result, out, common)


def _parse_settings(pairs: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fixed values and search spaces, by name."""
    from steadygaze.core.search_space import parse_space
    from steadygaze.core.settings import parse

    spaces = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if equals and (space := parse_space(value)) is not None:
            spaces[name.strip()] = space
    return parse(pair for pair in pairs if pair.partition("=")[0].strip() not in spaces), spaces


def _show(tuning: "Tuning", out: Path, common: Common) -> None:
    print_health(tuning.health)
    if common.json:
        print_json(tuning.to_dict())
        return
    from steadygaze.core.errors import Console
    from steadygaze.report.terminal_tables import tuning_table

    Console().print(tuning_table(tuning))
    print_line(
        stderr_console(common), f"best model: {out / 'model'}; open {out / 'tuning.html'} in a browser; train it again:"
    )
    show(tuning.train_command)
