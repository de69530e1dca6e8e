"""JSON of requests.  A large body is read by a process of its own.

A parser keeps the lock of the interpreter until it ends: millions of small values stop every other request for seconds,
in a thread as well.  A process therefore checks a body of more than LARGEST_INLINE bytes or MOST_BRACKETS brackets, and
returns it without escapes.  Such a body has at most MOST_VALUES values, which are read within milliseconds.

    python -m steadygaze.serve.json_bodies < BODY
"""

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import limit_memory, reason
from steadygaze.serve.untrusted_process import run_module

MOST_KEYS = 100
"""Of one object of a request: each unknown key costs a message."""
LARGEST_INLINE = 256 << 10
"""Bytes of a body that is parsed in the thread of the server."""
MOST_BRACKETS = 2_000
"""Opening brackets of such a body: lists and objects cost much more time than texts."""
MOST_VALUES = 50_000
"""Of a larger body; an audit has at most 5,000 pairs with labels."""
MOST_MEMORY = 2 << 30
"""Address space of the process."""
SECONDS = 20
WRONG, TOO_LARGE = 3, 4
"""Exit statuses of the process; with WRONG, its standard error has the reason."""

_readers = ThreadPoolExecutor(2, thread_name_prefix="body")
"""Wait for the processes; further large bodies wait for these."""


async def read_json(body: bytes) -> Any:
    """The value of a body; a UserError says what is wrong."""
    if is_small(body):
        return parse(body)
    return await asyncio.get_running_loop().run_in_executor(_readers, lambda: orjson.loads(_checked(body)))


def is_small(body: bytes) -> bool:
    """Whether the thread of the server can parse it within a few milliseconds."""
    return len(body) <= LARGEST_INLINE and body.count(b"[") + body.count(b"{") <= MOST_BRACKETS


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


def _checked(body: bytes) -> bytes:
    """The same JSON without escapes and white space, from a process."""
    try:
        run = run_module(__name__, body=body, seconds=SECONDS)
    except subprocess.TimeoutExpired:
        raise UserError(f"reading the body takes longer than {SECONDS} seconds: send fewer texts") from None
    if run.returncode == WRONG:
        raise UserError(run.stderr.decode(errors="replace").strip())
    if run.returncode == TOO_LARGE or run.returncode < 0:  # a signal: the process had too little memory
        raise UserError(f"the body has more than {MOST_VALUES:,} values: send fewer texts")
    run.check_returncode()
    return run.stdout


def plain(body: bytes) -> bytes:
    """The body as the shortest JSON; a UserError if it has too many values."""
    value = parse(body)
    count, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        items = [*item, *item.values()] if isinstance(item, dict) else item if isinstance(item, list) else ()
        count += len(items)
        if count > MOST_VALUES:
            raise UserError(f"the body has more than {MOST_VALUES:,} values: send fewer texts")
        waiting.extend(items)
    try:
        return orjson.dumps(value)
    except TypeError as error:  # half of a surrogate pair, or an integer of more than 64 bits
        raise UserError(f"the body has a value that is not standard JSON: {reason(error)}") from None


if __name__ == "__main__":
    limit_memory(MOST_MEMORY)
    try:
        sys.stdout.buffer.write(plain(sys.stdin.buffer.read()))
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(WRONG)
    except MemoryError:
        sys.exit(TOO_LARGE)
