"""What `compare` and `tune` share: the runtime of a study, with progress and a message after an interruption."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from steadygaze.cli.application import Common, stderr_console
from steadygaze.cli.output_streams import interruptible, print_warnings, progress_bar, show_labels

if TYPE_CHECKING:
    from steadygaze.study.compare import StudyRuntime


@contextmanager
def study_runtime(
    out: Path, common: Common, engine: str, workers: int | None, track: str | None, keep_labels: bool, parts: str
) -> "Iterator[StudyRuntime]":
    """`parts`: what a finished part of the study is called."""
    from steadygaze.study.compare import StudyRuntime

    console = stderr_console(common)
    resume = f"{out} keeps the finished {parts}: run the same command again to continue"
    with (
        interruptible(console, lambda: resume if (out / "settings.json").is_file() else ""),
        progress_bar(console, each=True) as bar,
        print_warnings(console, bar) as on_progress,
    ):
        command = ("steadygaze", *sys.argv[1:])
        on_corpus = partial(show_labels, keep=keep_labels, console=console)
        yield StudyRuntime(out, common.data_dir, common.device, on_progress, command, engine, workers, track, on_corpus)
