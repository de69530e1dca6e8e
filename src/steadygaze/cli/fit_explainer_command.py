"""The command `fit-explainer`."""

import shlex
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import (
    Common,
    command_help,
    common_options,
    model_option,
    model_options,
    option_words,
    options_of,
    output_option,
    training_option,
)
from steadygaze.cli.load_models import load_adapter
from steadygaze.cli.printing import print_health, print_json, print_line, show, stderr_console, stdout_console
from steadygaze.cli.progress_bars import interruptible, progress_bar
from steadygaze.core.errors import HealthWarning, LeakageWarning, UserError, one_line
from steadygaze.core.types import OnProgress
from steadygaze.results.model_options import ModelOptions

if TYPE_CHECKING:
    from steadygaze.adapters.model_adapter import ModelAdapter
    from steadygaze.adapters.text_explainer import TextExplainer
    from steadygaze.core.errors import Console


NO_SENTENCES = (
    "fit-explainer does not take --sentences: it measures predictions with erased words, whose sentences are not "
    "given.  Leave it out; a rationalizer then finds the sentences by rules"
)


@dataclass(frozen=True)
class FitOptions:
    """The explainer, its training and its folder."""

    out: shared.Out
    explainer: Annotated[
        str, model_option("--explainer", help="l2x, vibi, ail (about ten times as slow) or cxplain.")
    ] = "l2x"
    k: Annotated[int | None, model_option("--k", min=1, metavar="N", help="Words to select.", show_default="10")] = None
    conditioned: Annotated[
        bool | None, model_option("--conditioned/--unconditioned", help="Condition the selector on the prediction.")
    ] = None
    mitigation: Annotated[
        str | None,
        training_option(
            "--mitigation",
            help="Against label leakage: none, random-pretraining, mask-neutral or random-query.",
            show_default="none; random-pretraining with --conditioned",
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        training_option("--set", metavar="KEY=VALUE", help="Other setting; repeatable; see: list explainers."),
    ] = None
    replace: Annotated[bool, output_option("--replace", help="Replace the explainer in --out.")] = False
    sentences: Annotated[str | None, model_option("--sentences", metavar="COL", hidden=True)] = None

    @property
    def method(self) -> dict[str, Any]:
        """The explainer and its settings, as arguments of `fit_explainer`."""
        from steadygaze.core.settings import parse

        names = ("explainer", "k", "mitigation", "conditioned")
        return {**{name: getattr(self, name) for name in names}, "settings": parse(self.settings or [])}


@app.command(
    "fit-explainer",
    **command_help(
        "fit-explainer model/ --data reviews.csv --out l2x/",
        "fit-explainer model/ --data sst2 --explainer vibi --k 5 --out vibi/",
        "fit-explainer model/ --data reviews.csv --k 10 --conditioned --mitigation mask-neutral --out l2x-conditioned/",
    ),
)
@common_options("verbose")
@options_of("corpus", shared.CorpusOptions)
@model_options("target")
@options_of("fit", FitOptions)
def fit_explainer(
    black_box: Annotated[str, typer.Argument(metavar="BLACKBOX", help=shared.CLASSIFIER)],
    corpus: shared.CorpusOptions,
    fit: FitOptions,
    *,
    options: ModelOptions,
    common: Common,
) -> None:
    """Fit an explainer to the predictions of a model; use it with `explain MODEL --explainer DIR`."""
    if fit.sentences is not None:
        raise UserError(NO_SENTENCES)
    corpus.check()
    from steadygaze.adapters import resumable_fit
    from steadygaze.estimator import resumable_training
    from steadygaze.explainers.learned.fit_config import COSTS

    out, method = fit.out, fit.method
    resumable_fit.check_fit_explainer(out, fit.replace, method, common.seed)
    model = load_adapter(black_box, options, common)
    adapter = _two_classes(model, options.target)
    loaded = corpus.load(common, task=model.task)
    console = stderr_console(common)
    print_line(console, resumable_training.describe(loaded))
    if fit.explainer in COSTS:
        print_line(console, f"{fit.explainer} {COSTS[fit.explainer]}")
    folder = resumable_training.unfinished_folder(out)
    resume = f"{folder} keeps the predictions of the black box: run the same command again to continue"
    interruption = interruptible(console, lambda: resume if folder.exists() else "nothing is kept")
    with interruption, _progress(console) as on_progress:
        run: dict[str, Any] = {
            "seed": common.seed,
            "device": common.device,
            "batch_size": common.batch,
            "on_progress": on_progress,
            "watcher": FitProgress(console, on_progress),
        }
        fitted = resumable_fit.fit_explainer_resumable(adapter, loaded, out, replace=fit.replace, **method, **run)
    _show(fitted, [black_box, *option_words(ModelOptions, options.changed)], out, common)


def _two_classes(adapter: "ModelAdapter", target: str | None) -> "ModelAdapter":
    """The model, or one output of a multi-label model."""
    if adapter.task == "multi-label":
        return adapter.for_output(target)
    if target is not None:
        raise UserError(f"--target names an output of a multi-label model, and {adapter.name} has none: remove it")
    return adapter


class FitProgress:
    """A Watcher that shows training on one progress bar and prints a line per epoch."""

    def __init__(self, console: "Console", on_progress: OnProgress) -> None:
        self.console, self.on_progress, self.done, self.drawn = console, on_progress, 0, 0.0

    def start(self, stages: int, epochs: int, steps: int) -> None:
        self.several, self.steps, self.total = stages > 1, steps, epochs * steps
        self.on_progress("training", 0, self.total)

    def step(self, stage: str, epoch: int, terms: Mapping[str, Any]) -> None:
        from steadygaze.training.progress import REDRAW, loss_line

        self.done += 1
        if time.monotonic() - self.drawn > REDRAW:
            self.drawn = time.monotonic()
            losses = ((name, value.mean().item()) for name, value in terms.items())
            position = f"{self._stage(stage)}epoch {epoch + 1}"
            self.on_progress(loss_line(position, losses, "", self.console.width - 55), self.done, self.total)

    def epoch(self, record: Mapping[str, Any]) -> None:
        from steadygaze.training.progress import SCORES, loss_line

        start = f"{self._stage(record['stage'])}epoch {record['epoch']:>2}"
        scores = "  ".join(f"held-out {name} {record[key]:.3f}" for key, name in SCORES.items() if key in record)
        self.say(loss_line(start, record["terms"].items(), scores, self.console.width))

    def skip(self, epochs: int) -> None:
        self.done += epochs * self.steps

    def say(self, message: str | Warning) -> None:
        _line(self.console, message)

    warn = say

    def detail(self, message: str) -> None: ...

    def stop(self) -> None:
        self.on_progress("measuring", self.total, self.total)

    def _stage(self, stage: str) -> str:
        return f"{stage}, " if self.several else ""


def _line(console: "Console", message: str | Warning) -> None:
    """Print a line; only a terminal wraps it."""
    console.print(one_line(message), soft_wrap=not console.is_terminal)


@contextmanager
def _progress(console: "Console") -> Iterator[OnProgress]:
    """Show one progress bar; print each warning as a line, except the warnings that the scores repeat."""
    with progress_bar(console) as on_progress, warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", LeakageWarning)
        warnings.simplefilter("ignore", HealthWarning)  # printed with the scores
        warnings.showwarning = lambda message, *_, **__: _line(console, message)
        yield on_progress


def _show(fitted: "TextExplainer", black_box: Sequence[str], out: Path, common: Common) -> None:
    from steadygaze.report.terminal_tables import explainer_scores

    print_health(fitted.health - fitted.black_box.health)
    if common.json:
        rows = [row.to_dict() for row in fitted.rows]
        print_json(
            {"health": fitted.health.to_list(), "explainer": str(out), "rows": rows, "warnings": fitted.warnings}
        )
        return
    stdout_console().print(explainer_scores(fitted.rows))
    show(f"saved in {out}")
    words = ["explain", *black_box, "--explainer", str(out)]
    inputs = '--pair "a text of your own" "a question"' if fitted.black_box.pair else '"a text of your own"'
    print_line(stderr_console(common), f"next:  steadygaze {shlex.join(words)} {inputs}")
