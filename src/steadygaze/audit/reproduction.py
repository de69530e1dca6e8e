"""Where models and data lie, as bundle writes it down: seen from its own place, without the folders of a machine.

A path that is kept begins with a dot, ./model or ../data/test.csv, which no hub id and no name of a corpus does.

The command that repeats an audit, made from its settings and its policy alone: the same audit has the same command.

It is what a manifest and a page show.  What does not change the numbers (--bundle, --html, --device) is not part of it.

What of a bundle differs from the same audit run again: every field of the manifest and every byte of every file.

Numbers may differ by a relative 1e-6: another processor rounds otherwise.  Everything else is compared exactly.  The
page, the rows and the policy are then made again from what was compared, and must be the same bytes.

A rerun cannot show when an audit was made (`UNVERIFIED`), nor that no other policy was used at first.  For these a
third party needs the seal written down elsewhere, or a signature (`audit.signature`).
"""

import json
import math
import os
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from typing import Any

from steadygaze.audit.audit_run import AuditOrder
from steadygaze.audit.bundle import AuditBundle, render_files, render_manifest
from steadygaze.audit.manifest import MANIFEST, POLICY, REPORT, Manifest, changes
from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import resolve
from steadygaze.data.corpora import CORPORA, divided
from steadygaze.results.policy import Policy, Requirement
from steadygaze.results.report import Report
from steadygaze.results.report_differences import differences

PASS = {
    "model": "MODEL",
    "data": "--data DATA",
    "train": "--train DATA",
    "synonyms": "--synonyms FILE",
    "other_seeds": "--other-seed MODEL",
}
"""Setting that may be a path, or several -> how the command line takes it."""
DATA = ("data", "train")
"""Of these a name that a corpus has is that corpus, and no file."""


def portable_path(word: str, base: Path) -> str:
    """From `base` if it is there, or if both are in the folder that we work in; its name alone otherwise."""
    path, base, here = (resolve(os.path.expanduser(one)) for one in (word, base, Path.cwd()))
    if not path.is_relative_to(base) and not (path.is_relative_to(here) and base.is_relative_to(here)):
        return f"./{path.name}"
    return _dotted(Path(os.path.relpath(path, base)).as_posix())


def portable_settings(asked: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """What an audit was asked, its paths kept."""
    paths = [name for name in PASS if asked.get(name)]
    return {**asked, **{name: _each(asked[name], partial(_keep, name, base)) for name in paths}}


def _keep(name: str, base: Path, word: str) -> str:
    before, path = _parted(word)
    corpus = name in DATA and path.partition(":")[0] in CORPORA
    return before + portable_path(path, base) if not corpus and Path(os.path.expanduser(path)).exists() else word


def _parted(word: str) -> tuple[str, str]:
    """What is to be done to a corpus, with its colon, and where that lies."""
    before, path = divided(word)
    return (f"{before}:" if before else ""), path


def restored_settings(asked: Mapping[str, Any], bundle: Path) -> dict[str, Any]:
    """The same settings, their paths where the files lie now: seen from the bundle, or from where we work."""
    paths = [name for name in PASS if asked.get(name)]
    return {**asked, **{name: _each(asked[name], partial(_look, name, bundle)) for name in paths}}


def canonical(recorded: Mapping[str, Any], bundle: Path) -> dict[str, Any]:
    """The paths among recorded settings as an audit writes them: a bundle that has them otherwise was changed."""
    paths = [name for name in PASS if recorded.get(name)]
    return {name: _each(recorded[name], partial(_write, name, bundle)) for name in paths}


def _write(name: str, bundle: Path, word: str) -> str:
    before, path = _parted(word)
    if not path.startswith("."):
        return _keep(name, bundle.absolute().parent, word)
    return before + _dotted(posixpath.normpath(path))


def _dotted(path: str) -> str:
    return path if path.startswith("..") else f"./{path}"


def _look(name: str, bundle: Path, word: str) -> str:
    before, path = _parted(word)
    if not path.startswith("."):
        return word  # a hub id, or the name of a corpus
    places = [os.path.normpath(base / path) for base in (bundle.absolute().parent, Path.cwd())]
    for place in places:
        if os.path.exists(place):
            return before + place
    tried = " nor ".join(dict.fromkeys(places))
    raise UserError(
        f"{bundle}, {name}: there is nothing at {tried}; say where it lies now, with {PASS[name]} beside --verify"
    )


def _each(value: Any, change: Callable[[str], str]) -> Any:
    return change(value) if isinstance(value, str) else tuple(map(change, value))


FLAGS = {"explainers": "--explainer", "other_seeds": "--other-seed"}
"""Options whose names are not those of the settings."""


def rerun_command(settings: Mapping[str, Any], policy: Policy | None = None) -> tuple[str, ...]:
    """Words of the command line.

    >>> rerun_command({"model": "./m", "data": "sst2", "k": 5, "seed": 0, "thorough": True})
    ('steadygaze', 'audit', './m', '--data', 'sst2', '--k', '5', '--thorough')
    """
    words = ["steadygaze", "audit", str(settings["model"]), "--data", str(settings["data"])]
    for one in fields(AuditOrder):
        value = settings.get(one.name)
        usual = None if one.default is MISSING else one.default
        if one.name not in ("model", "data") and _plain(value) not in (_plain(usual), None):
            words += _option(one.name, value)
    return (*words, *_required(policy))


def _option(name: str, value: Any) -> list[str]:
    flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value is True:
        return [flag]
    if name == "classes":
        return [flag, ",".join(map(str, value))]
    return [word for one in (value if isinstance(value, list | tuple) else [value]) for word in (flag, str(one))]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _required(policy: Policy | None) -> list[str]:
    """Requirements one by one; a policy that says more is in its file."""
    if policy is None:
        return []
    if policy.verdicts or any(one.interval or one.why for one in policy.requirements):
        return ["--policy", POLICY]
    return [word for one in policy.requirements for word in ("--require", _written(one))]


def _written(one: Requirement) -> str:
    """With every digit of its limit."""
    return f"{one.measure}{f'[{one.explainer}]' if one.explainer else ''}{one.op}{one.limit!r}"


TOLERANCE = 1e-6
"""Relative, and absolute below 1."""
UNVERIFIED = ("date",)
"""Fields of the manifest that a rerun cannot make again."""
SEPARATELY = ("rows", "versions")
"""Parts of a report that `differences` compares in sentences of their own."""
MOST = 20
"""Differences of one part that are listed."""


def discrepancies(old: AuditBundle, report: Report, made: Manifest) -> list[str]:
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


def _files(old: AuditBundle, manifest: Manifest) -> list[str]:
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
