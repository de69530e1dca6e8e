"""Compare the bundle of an audit with a rerun.

A verification compares every field of the manifest and every byte of every file.  Numbers may differ by a relative
1e-6, because processors round differently.  The page, the rows and the policy are rendered again from the compared
content and must be the same bytes.

A rerun cannot verify the date of an audit (`UNVERIFIED`), nor that its first policy was the same.  To verify these,
a third party needs the digest of the manifest from another source, or a signature (`bundle.sign`).
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steadygaze.audit.bundle import AuditBundle, render_files, render_manifest
from steadygaze.audit.manifest import MANIFEST, REPORT, Manifest, changes
from steadygaze.results.report import Report
from steadygaze.results.report_differences import differences

TOLERANCE = 1e-6
"""Tolerance of numbers: relative above 1, absolute below."""
UNVERIFIED = ("date",)
"""Fields of the manifest that a rerun cannot verify."""
COMPARED = ("rows", "versions")
"""Parts of a report that `differences` compares."""
MAX_DIFFERENCES = 20
"""Maximum number of differences listed for each part."""


def discrepancies(old: AuditBundle, report: Report, manifest: Manifest) -> list[str]:
    """The differences between a bundle and its rerun, which has the date and the policy of the bundle."""
    sentences = changes(old.manifest, manifest)
    sentences += [item for item in differences(old.report, report, TOLERANCE) if item not in sentences]
    sentences += _report(old.contents[REPORT], report, all_parts=not sentences)
    before, after = old.manifest.to_dict(), manifest.to_dict()
    sentences += [x for name in ("gate", "command") for x in _deep(before[name], after[name], f"manifest, {name}")]
    return sentences + _files(old, old.manifest if sentences else manifest)


def _report(old: bytes, new: Report, all_parts: bool) -> list[str]:
    """Differences in the parts of a report that `differences` does not compare; with `all_parts`, in every part.

    Sentences are not filtered by their text: they quote the bundle, which may contain any text.
    """
    old_values, new_values = (json.loads(content) for content in (old, new.to_json().encode(errors="replace")))
    sentences = []
    for name in (name for name in dict.fromkeys([*old_values, *new_values]) if all_parts or name not in COMPARED):
        part = list(_deep(old_values.get(name), new_values.get(name), f"report, {name}"))
        remainder = (
            [f"report, {name}: {len(part) - MAX_DIFFERENCES} more differences"] if len(part) > MAX_DIFFERENCES else []
        )
        sentences += part[:MAX_DIFFERENCES] + remainder
    return sentences


def _files(old: AuditBundle, manifest: Manifest) -> list[str]:
    """Files that differ from a new rendering of the compared content.

    The manifest must equal that of the rerun byte for byte, unless its differences are already listed.
    """
    expected = render_files(old.report, old.policy)
    expected[REPORT] = _layout(old.contents[REPORT])  # its values are compared, numbers up to rounding
    expected[MANIFEST] = render_manifest(manifest, expected)
    changed = [name for name in expected if expected[name] != old.contents.get(name)]
    return [
        *(
            f"{name} does not match the report: it was changed, or written with other package versions"
            for name in changed
        ),
        *(f"{name} is not part of an audit bundle" for name in old.contents if name not in expected),
    ]


def _layout(content: bytes) -> bytes:
    """The JSON of a report as it is written, without duplicate keys."""
    return (json.dumps(json.loads(content), ensure_ascii=False, indent=1) + "\n").encode(errors="replace")


def _deep(before: Any, after: Any, path: str) -> Iterator[str]:
    """The differences between two JSON values, with their paths."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        if before.keys() == after.keys() and list(before) != list(after):
            yield f"{path}: the order of its parts was changed"
        for key in dict.fromkeys([*before, *after]):
            yield from _deep(before.get(key), after.get(key), f"{path}.{key}")
    elif _is_list(before) and _is_list(after) and len(before) == len(after):
        for i, (first, second) in enumerate(zip(before, after, strict=True)):
            yield from _deep(first, second, f"{path}.{i}")
    elif not _same(before, after):
        yield f"{path}: was {before!r:.200}, is {after!r:.200}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _same(before: Any, after: Any) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (before, after))
    if numbers and (isinstance(before, float) or isinstance(after, float)):
        return math.isclose(before, after, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(before) is type(after) and bool(before == after)
