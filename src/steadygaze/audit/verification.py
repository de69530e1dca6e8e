"""What of a bundle differs from the same audit run again: every field of the manifest and every byte of every file.

Numbers may differ by a relative 1e-6: another processor rounds otherwise.  Everything else is compared exactly.  The
page, the rows and the policy are then made again from what was compared, and must be the same bytes.

A rerun cannot show when an audit was made (`UNVERIFIED`), nor that no other policy was used at first.  For these a
third party needs the seal written down elsewhere, or a signature (`audit.signature`).
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steadygaze.audit.evidence import Evidence, render_files, render_manifest
from steadygaze.audit.manifest import MANIFEST, REPORT, Manifest, changes
from steadygaze.report.differences import differences
from steadygaze.report.report import Report

TOLERANCE = 1e-6
"""Relative, and absolute below 1."""
UNVERIFIED = ("date",)
"""Fields of the manifest that a rerun cannot make again."""
SEPARATELY = ("rows", "versions")
"""Parts of a report that `differences` compares in sentences of their own."""
MOST = 20
"""Differences of one part that are listed."""


def discrepancies(old: Evidence, report: Report, made: Manifest) -> list[str]:
    """In plain sentences.  `report` and `made`: the same audit run again, with the recorded time and policy."""
    found = changes(old.manifest, made)
    found += [one for one in differences(old.report, report, TOLERANCE) if one not in found]
    found += _report(old.contents[REPORT], report, whole=not found)
    found += _fields(old.manifest, made)
    return found + _files(old, old.manifest if found else made)


def _report(old: bytes, new: Report, whole: bool) -> list[str]:
    """Parts that `differences` does not compare in full; where it finds nothing, every part.

    Nothing is left out by what a sentence says: a sentence quotes the bundle, which may hold any text.
    """
    was, now = (json.loads(one) for one in (old, new.to_json().encode(errors="replace")))
    found = []
    for name in (name for name in dict.fromkeys([*was, *now]) if whole or name not in SEPARATELY):
        some = list(_deep(was.get(name), now.get(name), f"report, {name}"))
        found += some[:MOST] + ([f"report, {name}: {len(some) - MOST} more differences"] if len(some) > MOST else [])
    return found


def _fields(old: Manifest, new: Manifest) -> list[str]:
    """Fields of the manifest of which `changes` says nothing, or not everything."""
    was, now = old.to_dict(), new.to_dict()
    return [one for name in ("gate", "command") for one in _deep(was[name], now[name], f"manifest, {name}")]


def _files(old: Evidence, manifest: Manifest) -> list[str]:
    """Files that differ from what their own content makes: whatever is compared above is all that they hold.

    The manifest must be, byte for byte, the one of the rerun, unless differences in it are listed already.
    """
    right = render_files(old.report, old.policy)
    right[REPORT] = _layout(old.contents[REPORT])  # its values are compared, numbers up to rounding
    right[MANIFEST] = render_manifest(manifest, right)
    changed = [name for name in right if right[name] != old.contents.get(name)]
    return [
        *(f"{name} is not what the report makes: it was changed, or made with other packages" for name in changed),
        *(f"{name} is not part of an audit bundle" for name in old.contents if name not in right),
    ]


def _layout(content: bytes) -> bytes:
    """JSON as a report is written, without a second value of any key."""
    return (json.dumps(json.loads(content), ensure_ascii=False, indent=1) + "\n").encode(errors="replace")


def _deep(was: Any, now: Any, place: str) -> Iterator[str]:
    """Where two values of JSON differ, each with its path."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        if was.keys() == now.keys() and list(was) != list(now):
            yield f"{place}: the order of its parts was changed"
        for key in dict.fromkeys([*was, *now]):
            yield from _deep(was.get(key), now.get(key), f"{place}.{key}")
    elif _listed(was) and _listed(now) and len(was) == len(now):
        for i, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from _deep(one, other, f"{place}.{i}")
    elif not _same(was, now):
        yield f"{place}: was {was!r:.200}, is {now!r:.200}"


def _listed(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _same(was: Any, now: Any) -> bool:
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (was, now))
    if numbers and (isinstance(was, float) or isinstance(now, float)):
        return math.isclose(was, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(was) is type(now) and bool(was == now)
