"""JSON of requests.  A large body is read by a process of its own.

A parser keeps the lock of the interpreter until it ends: a large body stops every other request, in a thread as well.
A process therefore checks a body of more than LARGEST_INLINE bytes, MOST_BRACKETS brackets or MOST_COMMAS commas.  It
returns a line for each item of the lists, without escapes; a thread reads these, and leaves turns to other requests.

    python -m steadygaze.serve.json_bodies MOST_VALUES < BODY
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from threading import Lock
from typing import Any

import orjson

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import limit_memory, reason
from steadygaze.serve.untrusted_process import run_module

MOST_KEYS = 100
"""Maximum keys of one object of a request: each unknown key costs a message."""
LARGEST_INLINE = 256 << 10
"""Bytes of a body that is parsed in the thread of the server."""
MOST_BRACKETS = 2_000
"""Opening brackets of such a body: lists and objects cost much more time than texts."""
MOST_COMMAS = 10_000
"""Commas of such a body; those of texts count as well."""
MOST_VALUES = 1_000
"""Maximum values of a larger body: 256 pairs, and names."""
MOST_AUDITED_VALUES = 20_100
"""Maximum values of an audit: 5,000 pairs with labels, and settings."""
MOST_MEMORY = 2 << 30
"""Address space of the process."""
SECONDS = 20
LINE = orjson.OPT_APPEND_NEWLINE
WRONG, TOO_LARGE = 3, 4
"""Exit statuses of the process; with WRONG, its standard error has the reason."""

_readers = ThreadPoolExecutor(2, thread_name_prefix="body")
"""Wait for the processes; further large bodies wait for these."""
_reading = Lock()
"""A thread holds it while it reads the result of a process: the thread of the server waits for one of them only."""


async def read_json(body: bytes, most_values: int = MOST_VALUES) -> Any:
    """The value of a body; a UserError says what is wrong."""
    if is_small(body):
        return parse(body)
    return await asyncio.get_running_loop().run_in_executor(_readers, _read, body, most_values)


def is_small(body: bytes) -> bool:
    """True if the thread of the server can parse it within a few milliseconds."""
    if len(body) > LARGEST_INLINE or body.count(b",") > MOST_COMMAS:
        return False
    return body.count(b"[") + body.count(b"{") <= MOST_BRACKETS


def parse(body: bytes) -> Any:
    try:
        return json.loads(body, object_pairs_hook=_object)
    except RecursionError:
        raise UserError("the body is nested too deeply") from None
    except ValueError as error:  # also: not UTF-8, or too many digits
        raise UserError(f"the body is not JSON: {reason(error)}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_KEYS:
        raise UserError(f"an object of the body has {len(pairs):,} keys: send the documented ones")
    return dict(pairs)


def _read(body: bytes, most_values: int) -> Any:
    lines = BytesIO(_checked(body, most_values))
    with _reading:
        value = orjson.loads(next(lines))
        for line in lines:
            name, item = orjson.loads(line)
            value[name].append(item)
    return value


def _checked(body: bytes, most_values: int) -> bytes:
    """The lines of a process."""
    try:
        run = run_module(__name__, str(most_values), body=body, seconds=SECONDS)
    except subprocess.TimeoutExpired:
        raise UserError(f"reading the body takes longer than {SECONDS} seconds: send fewer texts") from None
    if run.returncode == WRONG:
        raise UserError(run.stderr.decode(errors="replace").strip())
    if run.returncode == TOO_LARGE or run.returncode < 0:  # a signal: the process had too little memory
        raise UserError(f"the body has more than {most_values:,} values: send fewer texts")
    run.check_returncode()
    return run.stdout


def json_lines(body: bytes, most_values: int) -> Iterator[bytes]:
    """The body without the items of its lists, and then each of these with its key; a UserError says what is wrong."""
    value = parse(body)
    _check_count(value, most_values)
    lists = {key: items for key, items in value.items() if isinstance(items, list)} if isinstance(value, dict) else {}
    try:
        yield orjson.dumps({**value, **{key: [] for key in lists}} if lists else value, None, LINE)
        for key, items in lists.items():
            for item in items:
                yield orjson.dumps([key, item], None, LINE)
    except TypeError as error:  # half of a surrogate pair, or an integer of more than 64 bits
        raise UserError(f"the body has a value that is not standard JSON: {reason(error)}") from None


def _check_count(value: Any, most_values: int) -> None:
    count, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        items = [*item, *item.values()] if isinstance(item, dict) else item if isinstance(item, list) else ()
        count += len(items)
        if count > most_values:
            raise UserError(f"the body has more than {most_values:,} values: send fewer texts")
        waiting.extend(items)


if __name__ == "__main__":
    limit_memory(MOST_MEMORY)
    try:
        sys.stdout.buffer.writelines([*json_lines(sys.stdin.buffer.read(), int(sys.argv[1]))])
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(WRONG)
    except MemoryError:
        sys.exit(TOO_LARGE)
