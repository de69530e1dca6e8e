"""AnswerFile: the answers of hosted models in one SQLite file.

    key     SHA-256 of address, model, prompt with the text, fields of the request and number of the sample
    value   the answer as JSON: its text, and first tokens with their log-probabilities

Every answer is committed when it arrives, so that it survives a kill of the process.  The file has no texts, except
what the model repeats of them, and no keys of servers.  Several processes may share it.

STEADYGAZE_ANSWERS names the file; without it, steadygaze/answers.sqlite in the user's folder of caches.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from weakref import finalize

from steadygaze.core.errors import UserError

VARIABLE = "STEADYGAZE_ANSWERS"
APPLICATION, SCHEMA = 0x53474E53, 1
"""Identify the file: its application id and its user version."""
AT_A_TIME = 500
"""Keys of one query."""


def answer_path() -> Path:
    """The file of answers."""
    if path := os.environ.get(VARIABLE):
        return Path(os.path.expanduser(path))
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(caches) / "steadygaze" / "answers.sqlite"


class AnswerFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        with self._errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)  # for its owner alone
            self._file = sqlite3.connect(path, timeout=60, check_same_thread=False, isolation_level=None)
            self.close = finalize(self, self._file.close)
            self._prepare()

    def _prepare(self) -> None:
        application, version, tables = (
            self._file.execute(query).fetchone()[0]
            for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT COUNT(*) FROM sqlite_master")
        )
        if tables and (application, version) != (APPLICATION, SCHEMA):
            raise UserError(f"{self.path} is not a file of answers of this version: name another one in {VARIABLE}")
        self._file.execute("PRAGMA journal_mode=WAL")
        self._file.execute("PRAGMA synchronous=NORMAL")
        if not tables:
            self._file.execute(f"PRAGMA application_id={APPLICATION}")
            self._file.execute(f"PRAGMA user_version={SCHEMA}")
        self._file.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, value TEXT) WITHOUT ROWID")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise UserError(
                f"the file of answers {self.path} cannot be used: {error}; name another one in {VARIABLE}"
            ) from None

    def get(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """The stored values of these keys."""
        values: dict[bytes, str] = {}
        for start in range(0, len(keys), AT_A_TIME):
            part = list(keys[start : start + AT_A_TIME])
            marks = ",".join("?" * len(part))
            with self._lock, self._errors():
                query = f"SELECT key, value FROM answers WHERE key IN ({marks})"
                values.update((bytes(key), str(value)) for key, value in self._file.execute(query, part))
        return values

    def put(self, key: bytes, value: str) -> None:
        """Store a value; the first of a key stays."""
        with self._lock, self._errors():
            self._file.execute("INSERT OR IGNORE INTO answers VALUES (?, ?)", (key, value))
