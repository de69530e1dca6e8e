"""Jobs: long work in the background, one at a time, with progress, cancellation and results as files.

The jobs live in the server, so a page can be closed and opened again.  Their files are in a private temporary folder,
which is removed at shutdown, or by the next server after a kill; DELETE removes those of one job.  Names of uploaded
files are only shown: files on disk have names of the server.
"""

import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from steadygaze.core.atomic_files import NO_SPACE
from steadygaze.core.errors import UserError, one_line
from steadygaze.core.untrusted_files import reason
from steadygaze.data.user_files import EmptyCellError
from steadygaze.serve.job_folder import JobFolder, remove_dead_folders
from steadygaze.serve.server_log import LOGGER

MOST_JOBS = 20
"""Jobs that are kept, finished ones included."""
MOST_STORED = 2 << 30
"""Bytes of the files of all jobs."""
NAME = 100
"""Longest shown file name."""
FULL = "the disk of the server is full: delete a job, and start this one again"

State = Literal["waiting", "running", "done", "failed", "canceled"]
FINISHED = ("done", "failed", "canceled")


class Canceled(Exception):
    """The user has canceled the job."""


class TooManyJobs(UserError):
    """No further job is accepted."""


class UnknownJob(UserError):
    """No job has this id."""


@dataclass
class Job:
    """One job; its thread changes it, and requests read it."""

    kind: Literal["explain", "audit"]
    name: str
    """The file or the data, for the page."""
    model: str
    folder: Path
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: State = "waiting"
    activity: str = ""
    done: int = 0
    total: int = 0
    texts: int | None = None
    """Number of audited texts; None: not known yet, or not an audit."""
    message: str = ""
    """Why it failed."""
    created: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    result: Any = None
    """The result of the job; its files are in the folder."""
    stop: threading.Event = field(default_factory=threading.Event)

    def on_progress(self, activity: str, done: int, total: int) -> None:
        """Progress callback; it ends a canceled job."""
        if self.stop.is_set():
            raise Canceled
        self.activity, self.done, self.total = activity, done, total

    @property
    def facts(self) -> dict[str, Any]:
        names = "id", "kind", "name", "model", "state", "activity", "done", "total", "texts", "message", "created"
        files = sorted(path.suffix[1:] for path in self.folder.glob("result.*")) if self.state == "done" else []
        return {**{name: getattr(self, name) for name in names}, "formats": files}

    def run(self, work: "Work") -> None:
        if self.stop.is_set():
            self._end("canceled")
            return
        self.state = "running"
        try:
            self.result = work(self)
            self.state = "done"
        except BaseException as error:
            if self.stop.is_set():  # also: the files of a deleted job are missing
                self._end("canceled")
            else:
                self._end("failed", self._reason(error))

    def _reason(self, error: BaseException) -> str:
        if isinstance(error, EmptyCellError):
            return f"{self.name}: {error.problem}; fill it in, or choose Skip empty texts (drop_empty=true)"
        if isinstance(error, UserError):
            return str(error)
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            return FULL
        LOGGER.error("job %s failed", self.id, exc_info=error)
        if isinstance(error, OSError | MemoryError | pa.ArrowException):
            return f"the server could not finish the job: {one_line(reason(error))}"
        return failure(error)

    def _end(self, state: State, message: str = "") -> None:
        """End without a result."""
        remove_files(self.folder)
        self.state, self.message = state, message


def remove_files(folder: Path) -> None:
    """Empty the folder of a job that has no result; another thread may delete it."""
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def stored_bytes(folder: Path) -> int:
    """Bytes of all files; jobs may delete files and folders at the same time."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                size += os.lstat(os.path.join(place, name)).st_size
    return size


Work = Callable[[Job], Any]


def failure(error: BaseException) -> str:
    """An internal error, as a client may see it."""
    return f"the model or the server failed with {type(error).__name__}; its operator sees the details"


class Jobs:
    """The jobs of a server."""

    def __init__(self, most: int = MOST_JOBS, most_stored: int = MOST_STORED) -> None:
        remove_dead_folders()
        self._folder = JobFolder()
        self._most, self._most_stored = most, most_stored
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="job")
        self._jobs: dict[str, Job] = {}

    def create(self, kind: Literal["explain", "audit"], name: str, model: str) -> Job:
        """A job with a folder of its own; `start` or `remove` it."""
        self.check_space()
        if not self._folder.path.is_dir():  # programs that clean the folder of temporary files may delete it
            self._folder.remove()
            self._folder = JobFolder()
        job = Job(kind, one_line(name, NAME), model, Path(tempfile.mkdtemp(dir=self._folder.path)))
        self._jobs[job.id] = job
        return job

    def check_space(self) -> None:
        if len(self._jobs) >= self._most:
            raise TooManyJobs(f"the server keeps {self._most} jobs: delete one of them first")
        if stored_bytes(self._folder.path) >= self._most_stored:
            raise TooManyJobs(f"the files of the jobs exceed {self._most_stored >> 20} MiB: delete a job first")

    def start(self, job: Job, work: Work) -> None:
        self._thread.submit(job.run, work)

    def list(self) -> list[Job]:
        return list(self._jobs.values())

    def find(self, identifier: str) -> Job:
        if identifier not in self._jobs:
            raise UnknownJob("there is no such job: it was deleted, or the server was started again")
        return self._jobs[identifier]

    def cancel(self, job: Job) -> None:
        job.stop.set()
        if job.state == "waiting":
            remove_files(job.folder)
            job.state = "canceled"

    def remove(self, job: Job) -> None:
        """Cancel the job, and delete its files."""
        self.cancel(job)
        self._jobs.pop(job.id, None)
        shutil.rmtree(job.folder, ignore_errors=True)

    def close(self) -> None:
        """Cancel all jobs, wait for the running one, and delete all files."""
        for job in self.list():
            self.cancel(job)
        self._thread.shutdown(cancel_futures=True)
        self._folder.remove()
