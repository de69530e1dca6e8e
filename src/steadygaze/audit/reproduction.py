"""Repeat an audit from its bundle: portable paths, the command, and the differences between bundle and rerun.

A bundle stores paths relative to the folder that contains it.  A stored path starts with a dot: ./model or
../data/test.csv.  Hub ids and names of corpora do not start with a dot.

A manifest and a page show the command that repeats the audit.  It depends only on the settings and the policy; options
that do not change the numbers (--bundle, --html, --device) are left out.

A verification compares every field of the manifest and every byte of every file.  Numbers may differ by a relative
1e-6, because processors round differently.  The page, the rows and the policy are rendered again from the compared
content and must be the same bytes.

A rerun cannot verify the date of an audit (`UNVERIFIED`), nor that its first policy was the same.  To verify these,
a third party needs the digest of the manifest from another source, or a signature (`bundle.sign`).
"""

import json
import math
import os
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from steadygaze.audit.bundle import AuditBundle, render_files, render_manifest
from steadygaze.audit.manifest import MANIFEST, POLICY, REPORT, Manifest, changes
from steadygaze.core.arguments import option_name, options
from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import resolve
from steadygaze.data.corpora import CORPORA, divided
from steadygaze.results.audit_config import AuditConfig
from steadygaze.results.policy import Policy, Requirement
from steadygaze.results.report import Report
from steadygaze.results.report_differences import differences

PATHS = ("model", "data", "train", "synonyms", "other_seeds")
"""Settings that may be a path, or several."""
DATA = ("data", "train")
"""Settings for which the name of a corpus takes precedence over a file."""
TOLERANCE = 1e-6
"""Tolerance of numbers: relative above 1, absolute below."""
UNVERIFIED = ("date",)
"""Fields of the manifest that a rerun cannot verify."""
COMPARED = ("rows", "versions")
"""Parts of a report that `differences` compares."""
MAX_DIFFERENCES = 20
"""Maximum number of differences listed for each part."""


def portable_path(name: str, base: Path) -> str:
    """The path relative to `base`, if it is below `base` or both are below the working folder; else its name alone."""
    path, base, working_folder = (resolve(os.path.expanduser(item)) for item in (name, base, Path.cwd()))
    if not path.is_relative_to(base) and not (
        path.is_relative_to(working_folder) and base.is_relative_to(working_folder)
    ):
        return f"./{path.name}"
    return _dotted(Path(os.path.relpath(path, base)).as_posix())


def portable_settings(settings: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """The settings of an audit with portable paths."""
    return {**settings, **_with_paths(settings, partial(_portable, base))}


def restored_settings(settings: Mapping[str, Any], bundle: Path) -> dict[str, Any]:
    """The settings with paths of existing files, next to the bundle or in the working folder."""
    return {**settings, **_with_paths(settings, partial(_restored, bundle))}


def canonical(recorded: Mapping[str, Any], bundle: Path) -> dict[str, Any]:
    """The recorded paths as an audit writes them; a bundle with other paths was changed."""
    return _with_paths(recorded, partial(_canonical, bundle))


def _with_paths(settings: Mapping[str, Any], change: Callable[[str, str], str]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name in PATHS:
        if value := settings.get(name):
            is_list = not isinstance(value, str)
            changed[name] = tuple(change(name, item) for item in value) if is_list else change(name, value)
    return changed


def _portable(base: Path, name: str, value: str) -> str:
    prefix, path = _divided(value)
    corpus = name in DATA and path.partition(":")[0] in CORPORA
    exists = not corpus and Path(os.path.expanduser(path)).exists()
    return prefix + portable_path(path, base) if exists else value


def _restored(bundle: Path, name: str, value: str) -> str:
    prefix, path = _divided(value)
    if not path.startswith("."):
        return value
    candidates = [os.path.normpath(base / path) for base in (bundle.absolute().parent, Path.cwd())]
    for candidate in candidates:
        if os.path.exists(candidate):
            return prefix + candidate
    locations = " nor ".join(dict.fromkeys(candidates))
    raise UserError(
        f"{bundle}, {name}: no file exists at {locations}; pass its new path with {_usage(name)} and --verify"
    )


def _canonical(bundle: Path, name: str, value: str) -> str:
    prefix, path = _divided(value)
    if not path.startswith("."):
        return _portable(bundle.absolute().parent, name, value)
    return prefix + _dotted(posixpath.normpath(path))


def _divided(value: str) -> tuple[str, str]:
    """The prefix of a corpus, with its colon, and the path: biased=0.8:reviews.csv."""
    prefix, path = divided(value)
    return (f"{prefix}:" if prefix else ""), path


def _dotted(path: str) -> str:
    return path if path.startswith("..") else f"./{path}"


def _usage(name: str) -> str:
    """
    >>> _usage("model"), _usage("data"), _usage("other_seeds")
    ('MODEL', '--data DATA', '--other-seed MODEL')
    """
    listed = options(AuditConfig)
    metavar = str(listed[name][1].metavar) if name in listed else name.upper()
    return metavar if name == "model" else f"{option_name(AuditConfig, name)} {metavar}"


def rerun_command(settings: Mapping[str, Any], policy: Policy | None = None) -> tuple[str, ...]:
    """The arguments of the command line.

    >>> rerun_command({"model": "./m", "data": "sst2", "k": 5, "seed": 0, "thorough": True})
    ('steadygaze', 'audit', './m', '--data', 'sst2', '--k', '5', '--thorough')
    """
    words = ["steadygaze", "audit", str(settings["model"]), "--data", str(settings["data"])]
    for field in fields(AuditConfig):
        value, default = (
            list(item) if isinstance(item, tuple) else item for item in (settings.get(field.name), field.default)
        )
        if field.name not in ("model", "data") and value not in (default, None):
            words += _arguments(field.name, value)
    return (*words, *_requirements(policy))


def _arguments(name: str, value: Any) -> list[str]:
    flag, listed = option_name(AuditConfig, name), options(AuditConfig)
    if value is True:
        return [flag]
    if name in listed and listed[name][1].comma:
        return [flag, ",".join(map(str, value))]
    return [word for item in (value if isinstance(value, list) else [value]) for word in (flag, str(item))]


def _requirements(policy: Policy | None) -> list[str]:
    """One option for each requirement; --policy if an option cannot express them."""
    if policy is None:
        return []
    if policy.verdicts or any(item.interval or item.why for item in policy.requirements):
        return ["--policy", POLICY]
    return [word for item in policy.requirements for word in ("--require", _rule(item))]


def _rule(item: Requirement) -> str:
    """The requirement, with all digits of its limit."""
    return f"{item.measure}{f'[{item.explainer}]' if item.explainer else ''}{item.op}{item.limit!r}"


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
