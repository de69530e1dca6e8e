"""Seeded damage of files: bytes, lines, values of JSON documents and of the headers of .safetensors files.

Unlike the named damages of `damage.py`, these are drawn at random: the same seed damages a file in the same way.
"""

import json
import math
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from estimator.tiny import LABELS, TEXTS
from robustness.damage import SPECIAL

Mutation = Callable[[bytes, random.Random], bytes]

TOKENS = (
    b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n\n", b'"', b'""', b"'", b",", b"\t", b"\\", b"\\ud800",
    b"\x1b[2J", "\u202e".encode(), "\u2028".encode(), "é\u0301\U0001f3ac".encode(), b"NaN", b"-Infinity", b"1e999",
    b"-1", b"0", b"9" * 400, b"9" * 5000, b"[" * 2000, b'{"a":' * 2000, b"null", b"true", b"../../etc/passwd",
    b"/dev/zero", b"=cmd|'/c calc'!A1", b"{{ 7 * 7 }}", b"${HOME}", b"<script>alert(1)</script>", b"a" * 70_000,
    b"!!python/object/apply:os.mkdir [exploded]", b"cos\nmkdir\n(S'exploded'\ntR.", b"%s%n", b"\xc0\xaf", b"PAR1",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7, 10**9, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, -0.0, 1e-320, 1e308, math.nan,
    math.inf, -math.inf, "", " ", "\0", "nan", "-1", "\ud800", "\x1b[2J", "\u202egood", "a" * 5000, "../../etc/passwd",
    "/dev/zero", "~nouser", "=1+1", "<script>", "transformer:/", "os.mkdir", [], [[]], [None], [[], {}], {}, {"": None},
    {"a": {"a": []}}, {"__class__": "os.mkdir"}, [0] * 1000, ["good"] * 1000,
    json.loads("[" * 60 + "]" * 60), json.loads('{"a":' * 60 + "1" + "}" * 60),
)  # fmt: skip


def some_bytes(data: bytes, dice: random.Random) -> bytes:
    """Some bytes have other values."""
    changed = bytearray(data or b"\0")
    for _ in range(dice.choice((1, 1, 2, 8, 64))):
        changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def cut(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data) + 1)]


def without_part(data: bytes, dice: random.Random) -> bytes:
    start, end = sorted(dice.randrange(len(data) + 1) for _ in range(2))
    return data[:start] + data[end:]


def repeated_part(data: bytes, dice: random.Random) -> bytes:
    start, end = sorted(dice.randrange(len(data) + 1) for _ in range(2))
    return data[:end] + data[start:end] * dice.choice((1, 2, 20)) + data[end:]


def with_token(data: bytes, dice: random.Random) -> bytes:
    """A token stands between two bytes, or instead of some."""
    start = dice.randrange(len(data) + 1)
    end = start + dice.choice((0, 0, 1, 4, 20))
    return data[:start] + dice.choice(TOKENS) + data[end:]


def with_tokens(data: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.randrange(2, 6)):
        data = with_token(data, dice)
    return data


def other_lines(data: bytes, dice: random.Random) -> bytes:
    """Lines were shuffled, repeated or cut."""
    lines = data.splitlines(keepends=True) or [b""]
    place = dice.randrange(len(lines))
    changes: tuple[Callable[[], Any], ...] = (
        lambda: dice.shuffle(lines),
        lambda: lines.insert(place, dice.choice(lines)),
        lambda: lines.pop(place),
        lambda: lines.insert(place, dice.choice(TOKENS) + b"\n"),
        lambda: lines.__setitem__(place, lines[place].rstrip(b"\n")),
        lambda: lines.extend([lines[place]] * 300),
    )
    dice.choice(changes)()
    return b"".join(lines)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner for key, entry in items for inner in _paths(entry, (*path, key)))]


def changed_document(document: Any, dice: random.Random) -> Any:
    """A JSON document in which one to three values were replaced, removed, repeated or exchanged."""
    root = [document]
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        *way, last = (0, *dice.choice(_paths(root[0])))
        holder: Any = root
        for key in way:
            holder = holder[key]
        action = dice.choice(("value", "value", "value", "gone", "key", "twice", "exchange"))
        if action == "value" or holder is root:
            holder[last] = dice.choice(VALUES)
        elif action == "gone":
            del holder[last]
        elif isinstance(holder, list):
            holder.append(dice.choice(VALUES) if action == "key" else holder[dice.randrange(len(holder))])
        elif action == "key":
            holder[dice.choice(("", "\0", "\x1b[2J", "__class__", "../a", "schema", "a" * 300))] = holder[last]
        else:
            other = dice.choice(list(holder))
            holder[last], holder[other] = holder[other], holder[last]
    return root[0]


def other_values(data: bytes, dice: random.Random) -> bytes:
    """A JSON document, or a line of several, with other values."""
    try:
        return json.dumps(changed_document(json.loads(data), dice)).encode()
    except ValueError:
        lines = data.splitlines()
    place = dice.randrange(len(lines) or 1)
    try:
        lines[place] = json.dumps(changed_document(json.loads(lines[place]), dice)).encode()
    except (ValueError, IndexError):
        return with_token(data, dice)
    return b"\n".join(lines) + b"\n"


def doubled_key(data: bytes, dice: random.Random) -> bytes:
    """A key of an object stands in it twice, the second time with another value."""
    try:
        document = json.loads(data)
        key = dice.choice(list(document))
        extra = f"{json.dumps(key)}: {json.dumps(dice.choice(VALUES))}"
    except (ValueError, IndexError, TypeError):
        return repeated_part(data, dice)
    return data.rstrip()[:-1] + b", " + extra.encode() + b"}"


def other_header(data: bytes, dice: random.Random) -> bytes:
    """The header of a .safetensors file has other values, or another length."""
    if len(data) < 8 or (size := struct.unpack("<Q", data[:8])[0]) > len(data):
        return some_bytes(data, dice)
    header, rest = data[8 : 8 + size], data[8 + size :]
    new = dice.choice((other_values, doubled_key, some_bytes, with_token))(header, dice)
    length = len(new) if dice.random() < 0.8 else dice.choice((0, 1, len(new) + 1, 1 << 40, (1 << 64) - 1))
    return struct.pack("<Q", length) + new + rest


BYTES: tuple[Mutation, ...] = (some_bytes, cut, without_part, repeated_part, with_token, with_tokens)
LINES: tuple[Mutation, ...] = (*BYTES, other_lines, other_lines)
JSON_FILES: tuple[Mutation, ...] = (*BYTES, *[other_values] * 12, *[doubled_key] * 2)
JSON_LINES: tuple[Mutation, ...] = (*LINES, *[other_values] * 8)
TENSORS: tuple[Mutation, ...] = (*BYTES, *[other_header] * 10)
BY_SUFFIX = {".json": JSON_FILES, ".jsonl": JSON_LINES, ".safetensors": TENSORS, ".parquet": BYTES}


def mutate(path: Path, dice: random.Random) -> None:
    """Damage a file; one in twenty becomes something that is not a regular file."""
    if dice.random() < 0.05:
        SPECIAL[dice.choice(sorted(SPECIAL))](path)
        return
    mutation = dice.choice(BY_SUFFIX.get(path.suffix, LINES))
    path.write_bytes(mutation(path.read_bytes(), dice))


def health(path: Path, dice: random.Random) -> None:
    """A configuration with hostile known-bad states."""
    problem = {"kind": "collapsed-attention", "message": "m", "subject": "model", "value": 0.5, "limit": 0.1}
    values = json.loads(path.read_text())
    values["health"] = changed_document([problem, {**problem, "kind": "constant-label", "label": "pos"}], dice)
    path.write_text(json.dumps(values))


def classes(path: Path, dice: random.Random) -> None:
    """A configuration with hostile labels."""
    values = json.loads(path.read_text())
    values["classes"] = [dice.choice(TOKENS).decode("utf-8", "replace")[:300], "pos"]
    path.write_text(json.dumps(values))


def labels(path: Path, dice: random.Random) -> None:
    """A table with labels of control characters, white space and formulas."""
    tokens = [token.decode("utf-8", "replace")[:99].replace('"', "") for token in dice.sample(TOKENS, 2)]
    rows = [f'"{text}","{dice.choice((*tokens, label))}"' for text, label in zip(TEXTS, LABELS, strict=True)]
    path.write_text("\n".join(["text,label", *rows]) + "\n", newline="")


def columns(path: Path, dice: random.Random) -> None:
    """A Parquet file with columns of other types and strange names."""
    n, make = 4, dice.choice
    arrays: list[Any] = [
        pa.array(["a good film"] * n),
        pa.array([None, "", "\0", "a\u202eb"]),
        pa.array([b"\xff"] * n),
        pa.array([2**62] * n, make([pa.timestamp("ns"), pa.duration("s"), pa.int64(), pa.time64("ns")])),
        pa.array([2**52] * n, pa.timestamp("s")),
        pa.array([[["a"]]] * n),
        pa.array([{"a": [1]}] * n),
        pa.array([float("nan"), float("inf"), -0.0, 1e308]),
        pa.array(["a", "b"] * 2).dictionary_encode(),
        pa.nulls(n),
        pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int8())),
        pa.array([2**31 - 1] * n, pa.date32()),
    ]
    names = ["text", "label", make(["text", "", "\0", "a" * 3000, "\x1b[2J", "=1", "prediction", "../x"])]
    table = pa.Table.from_arrays([make(arrays) for _ in names], names)
    parquet.write_table(table, path, compression=make(["none", "snappy", "zstd"]))


def option(path: Path, dice: random.Random) -> None:
    """A value for the option or the name that {arg} stands for."""
    word = dice.choice((*TOKENS, b"\xff", b"./.", b"..", b"-", b"--", b"-x", b"a/b", b"nul", b"~", b"."))
    path.write_bytes(word.replace(b"\0", b"")[:3000])
