"""steadygaze fit-explainer: an explainer that learns what a black box's reasons are."""

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadygaze.cli.application import (
    DATA,
    Common,
    DropEmpty,
    LabelIfAny,
    Out,
    TextColumn,
    Watch,
    app,
    as_json,
    common_options,
    print_line,
    progress_bar,
    show,
    stderr_console,
    stdout_console,
)
from steadygaze.core.errors import one_line

if TYPE_CHECKING:
    from steadygaze.adapters.text_explainer import TextExplainer
    from steadygaze.core.console import Console

BOX = "A folder made by train, or a Hugging Face sequence classifier: a folder or a hub id."
CODE = "Against label leakage: plain, random-pretraining (default with --query), mask-neutral or random-query."
SETTING = "Any other setting; see: list explainers."
LOOK = "Example: steadygaze fit-explainer model/ --data reviews.csv --explainer l2x --k 10 --query --out l2x/"


@app.command("fit-explainer", epilog=LOOK)
@common_options
def fit_explainer(
    black_box: Annotated[str, typer.Argument(metavar="BLACKBOX", help=BOX)],
    data: Annotated[str, typer.Option("--data", metavar="DATA", help=DATA)],
    out: Out,
    explainer: Annotated[str, typer.Option(help="l2x, vibi, ail or cxplain.")] = "l2x",
    k: Annotated[int | None, typer.Option("--k", min=1, help="How many words are selected.  Default: 10.")] = None,
    technique: Annotated[str | None, typer.Option(help=CODE)] = None,
    query: Annotated[
        bool | None, typer.Option("--query/--no-query", help="Condition the selector on the prediction.")
    ] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=SETTING)] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Put the new one in the place of one in --out.")] = False,
    text: TextColumn = None,
    label: LabelIfAny = None,
    drop_empty: DropEmpty = False,
    *,
    common: Common,
) -> None:
    """Fit an explainer to what a model says of many texts.  `explain MODEL --explainer DIR` then uses it."""
    from steadygaze.adapters import resumable_fit
    from steadygaze.core.settings import parse
    from steadygaze.data.corpora import load_corpus
    from steadygaze.estimator import resumable_training

    asked: dict[str, Any] = {
        "explainer": explainer,
        "k": k,
        "technique": technique,
        "query": query,
        "settings": parse(settings or []),
    }
    resumable_fit.check_fit_explainer(out, replace, asked, common.seed)
    columns = tuple(text or ("text",))
    corpus = load_corpus(data, text=columns, label=label, data_dir=common.data_dir, drop_empty=drop_empty)
    say = stderr_console(common)
    print_line(say, resumable_training.describe(corpus))
    with _kept(say, out), _told(say) as watch:
        run: dict[str, Any] = {
            "seed": common.seed,
            "device": common.device,
            "watch": watch,
            "watcher": FitProgress(say, watch),
        }
        fitted = resumable_fit.fit_explainer_resumable(black_box, corpus, out, replace=replace, **asked, **run)
    _show(fitted, black_box, out, common)


class FitProgress:
    """A Watcher: training is told on the bar that has told of the questions, an epoch is a line."""

    def __init__(self, say: "Console", watch: Watch) -> None:
        self.say_, self.watch, self.done, self.drawn = say, watch, 0, 0.0

    def start(self, stages: int, epochs: int, steps: int) -> None:
        self.several, self.steps, self.total = stages > 1, steps, epochs * steps
        self.watch("learning", 0, self.total)

    def step(self, stage: str, epoch: int, terms: Mapping[str, Any]) -> None:
        from steadygaze.training.progress import REDRAW

        self.done += 1
        if time.monotonic() - self.drawn > REDRAW:
            self.drawn = time.monotonic()
            losses = "  ".join(f"{name} {value.mean().item():.3f}" for name, value in terms.items())
            self.watch(f"learning: {self._stage(stage)}epoch {epoch + 1}  {losses}", self.done, self.total)

    def epoch(self, record: Mapping[str, Any]) -> None:
        from steadygaze.training.progress import SCORES

        numbers = [f"{name} {value:.3f}" for name, value in record["terms"].items()]
        numbers += [f"held-out {name} {record[key]:.3f}" for key, name in SCORES.items() if key in record]
        self.say(f"{self._stage(record['stage'])}epoch {record['epoch']:>2}  {'  '.join(numbers)}")

    def skip(self, epochs: int) -> None:
        self.done += epochs * self.steps

    def say(self, message: str) -> None:
        _line(self.say_, message)

    warn = say

    def stop(self) -> None:
        self.watch("measuring", self.total, self.total)

    def _stage(self, stage: str) -> str:
        return f"{stage}, " if self.several else ""


def _line(say: "Console", message: str) -> None:
    """A log is not cut; in a terminal lines are broken between words."""
    say.print(one_line(message), soft_wrap=not say.is_terminal)


@contextmanager
def _told(say: "Console") -> Iterator[Watch]:
    """One bar for all that is done; what is warned of is a line, but for what is said beside the numbers."""
    from steadygaze.results.leakage_warnings import LEAKAGE, ONE_LABEL, UNLIKE, UNTESTED

    with progress_bar(say) as watch, warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", f"{LEAKAGE}|{UNLIKE}|{UNTESTED}|{ONE_LABEL}")
        warnings.showwarning = lambda message, *_, **__: _line(say, str(message))
        yield watch


@contextmanager
def _kept(say: "Console", out: Path) -> Iterator[None]:
    """An interruption says what is not lost."""
    from steadygaze.estimator.resumable_training import unfinished_folder as unfinished

    try:
        yield
    except KeyboardInterrupt:
        kept = unfinished(out)
        there = (
            f"{kept} keeps what the black box said: the same command goes on" if kept.exists() else "nothing is kept"
        )
        print_line(say, f"interrupted; {there}")
        raise


def _show(fitted: "TextExplainer", black_box: str, out: Path, common: Common) -> None:
    from steadygaze.report.terminal_tables import explainer_scores as shown

    if common.json:
        rows = [row.to_dict() for row in fitted.rows]
        as_json({"explainer": str(out), "rows": rows, "warnings": fitted.warnings})
        return
    stdout_console().print(shown(fitted.rows))
    show(f"saved in {out}")
    print_line(stderr_console(common), f'next:  steadygaze explain {black_box} --explainer {out} "a text of your own"')
