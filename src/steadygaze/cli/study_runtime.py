"""What `compare` and `tune` share: options, and the runtime with progress and a message after an interruption."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadygaze.cli.application import (
    Common,
    Encoder,
    Engine,
    Epochs,
    Imports,
    KeepLabels,
    SynonymGroupsFile,
    Synonyms,
    Track,
    Vectors,
    Workers,
    stderr_console,
)
from steadygaze.cli.command_options import F, option_group, with_options
from steadygaze.cli.output_streams import interruptible, print_warnings, progress_bar, show_labels

if TYPE_CHECKING:
    from steadygaze.study.compare import StudyRuntime


@dataclass(frozen=True)
class StudyOptions:
    """How the models of a study are trained."""

    synonyms: Synonyms = None
    encoder: Encoder = "bilstm"
    vectors: Vectors = None
    synonym_groups: SynonymGroupsFile = None
    epochs: Epochs = None
    imports: Imports = None
    engine: Engine = "local"
    workers: Workers = None
    track: Track = None
    keep_labels: KeepLabels = False

    def config(self, common: Common) -> dict[str, Any]:
        """The settings of the study that these options determine."""
        files = {"synonyms": self.synonyms, "synonym_groups": self.synonym_groups}
        return {
            "encoder": self.encoder,
            "vectors": self.vectors,
            "epochs": self.epochs,
            "seed": common.seed,
            "batch_size": common.batch_size,
            **{name: None if file is None else str(file) for name, file in files.items()},
        }


def study_options(command: F) -> F:
    """Add the fields of `StudyOptions` to the options of a command, which receives them as the argument `study`."""
    return with_options(command, "study", option_group(StudyOptions), lambda own, _: StudyOptions(**own))


@contextmanager
def study_runtime(out: Path, common: Common, study: StudyOptions, parts: str) -> "Iterator[StudyRuntime]":
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
        on_corpus = partial(show_labels, keep=study.keep_labels, console=console)
        place = out, common.data_dir, common.device
        yield StudyRuntime(*place, on_progress, command, study.engine, study.workers, study.track, on_corpus)
