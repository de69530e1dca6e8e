"""Options and runtime of `compare` and `tune`, with progress and a message after an interruption."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import Common
from steadygaze.cli.printing import show_labels, stderr_console
from steadygaze.cli.progress_bars import interruptible, print_warnings, progress_bar

if TYPE_CHECKING:
    from steadygaze.study.compare import StudyRuntime


@dataclass(frozen=True)
class RuntimeOptions:
    """The engine of a study, and its output."""

    imports: shared.Imports = None
    engine: shared.Engine = "local"
    workers: shared.Workers = None
    track: shared.Track = None
    keep_labels: shared.KeepLabels = False


@contextmanager
def study_runtime(out: Path, common: Common, study: RuntimeOptions, parts: str) -> "Iterator[StudyRuntime]":
    """`parts`: what a finished part of the study is called."""
    from steadygaze.study.compare import StudyRuntime

    console = stderr_console(common)
    resume = f"{out} keeps the finished {parts}: run the same command again to continue"
    with (
        interruptible(console, lambda: resume if (out / "settings.json").is_file() else ""),
        progress_bar(console, each=True) as on_progress,
        print_warnings(console),
    ):
        command = ("steadygaze", *sys.argv[1:])
        on_corpus = partial(show_labels, keep=study.keep_labels, console=console)
        place = out, common.data_dir, common.device
        yield StudyRuntime(*place, on_progress, command, study.engine, study.workers, study.track, on_corpus)
