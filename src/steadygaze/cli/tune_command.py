"""The command `tune`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from steadygaze.cli import app
from steadygaze.cli.application import (
    Common,
    Data,
    DropEmpty,
    LabelColumn,
    TextColumn,
    command_help,
    common_options,
    data_option,
    output_option,
    print_health,
    runtime_option,
    stderr_console,
    training_option,
)
from steadygaze.cli.output_streams import print_json, print_line, show
from steadygaze.cli.study_runtime import StudyOptions, study_options, study_runtime

if TYPE_CHECKING:
    from steadygaze.results.tuning import Tuning

Technique = Annotated[str, training_option("--technique", help="Technique; see: list techniques.")]
Out = Annotated[Path, output_option("--out", "-o", help="Folder of the search; the same command resumes it.")]
Trials = Annotated[int, training_option("--trials", min=1, metavar="N", help="Models to train.")]
ObjectiveNames = Annotated[
    str, training_option("--objective", metavar="A,B", help="Measures on validation texts; see: list measures.")
]
Settings = Annotated[
    list[str] | None,
    training_option(
        "--set",
        metavar="KEY=SPACE",
        help="Setting to vary (LOW:HIGH, LOW:HIGH:log or A,B,C) or a fixed value; repeatable.",
        show_default="the space of the technique",
    ),
]
Search = Annotated[
    list[str] | None,
    training_option("--search", metavar="KEY", help="Setting to vary in its own space; repeatable."),
]
Parallel = Annotated[int, runtime_option("--parallel", min=1, metavar="N", help="Trials that are proposed together.")]
Prune = Annotated[bool, training_option("--prune/--no-prune", help="Stop trials below the median of earlier ones.")]
VarySeed = Annotated[bool, training_option("--vary-seed", help="Train each trial with another seed.")]
Limit = Annotated[
    int | None, data_option("--limit", min=1, metavar="N", help="Validation texts to audit.", show_default="all")
]


@app.command(
    **command_help(
        "tune sst2 --technique word-at --trials 20 --out runs/epsilon",
        "tune reviews.csv --technique vanilla --set learning_rate=0.0001:0.01:log --set hidden=64,128 --out runs/t",
        "tune sst2 --technique consensus --objective macro-f1,jensen-shannon/noise --trials 30 --out runs/front",
    )
)
@common_options("verbose")
@study_options
def tune(
    data: Data,
    technique: Technique,
    out: Out,
    *,
    trials: Trials = 20,
    objective: ObjectiveNames = "macro-f1",
    text: TextColumn = None,
    label: LabelColumn = "label",
    drop_empty: DropEmpty = False,
    limit: Limit = None,
    study: StudyOptions,
    settings: Settings = None,
    search: Search = None,
    prune: Prune = True,
    vary_seed: VarySeed = False,
    parallel: Parallel = 4,
    common: Common,
) -> None:
    """Search the settings of a technique by validation scores, and save the best model."""
    from steadygaze.core.settings import build
    from steadygaze.study.tune import tune as run
    from steadygaze.study.tune_config import TuneConfig

    fixed, spaces = _parse_settings(settings or [])
    config = {
        **study.config(common),
        "data": data,
        "text": tuple(text or ("text",)),
        "label": label,
        "drop_empty": drop_empty,
        "limit": limit,
        "technique": technique,
        "trials": trials,
        "objectives": tuple(name.strip() for name in objective.split(",") if name.strip()),
        "parallel": parallel,
        "prune": prune,
        "vary_seed": vary_seed,
        "settings": fixed,
        "spaces": spaces,
        "search": tuple(search or ()),
    }
    search_config = build(TuneConfig, config)
    with study_runtime(out, common, study, "trials") as runtime:
        result = run(search_config, runtime)
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
