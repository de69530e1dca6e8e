"""Manifest: the inputs, settings and versions of an audit, stored as manifest.json.  Does not import torch."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import MissingFile, digest_json, parse_json, read_bytes
from steadygaze.results.policy import POLICY_FILE
from steadygaze.results.report import is_time, versions

SCHEMA = 1
MANIFEST, REPORT = "manifest.json", "report.json"
SIGNATURE = "manifest.json.sig"
FILES = ("report.html", REPORT, "rows.jsonl", POLICY_FILE, MANIFEST)
NEEDED = {"report.html", REPORT, "rows.jsonl"}


class ManifestChange(UserError):
    """The bundle was changed after it was written."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The inputs, settings and versions of an audit."""

    model: Mapping[str, str]
    """name, kind and fingerprint (SHA-256 of the weights; '' of a black box)."""
    data: Mapping[str, str | int]
    """corpus, split, fingerprint (SHA-256 of texts and labels) and n.

    train: the fingerprint of the retraining texts; `corpus` in the model's config.json starts with the same digits.
    """
    settings: Mapping[str, Any] = field(default_factory=dict)
    """All settings needed to repeat the audit, with portable paths (`loaded_audit.py`)."""
    seeds: tuple[str | int, ...] = ()
    command: tuple[str, ...] = ()
    """The command that repeats the audit (`commands.rerun_command`)."""
    gate: Mapping[str, Any] | None = None
    """The result of the policy, with its failures; None: no policy."""
    date: str = ""
    """The time of the audit, in UTC.  A rerun cannot verify it; a signature with a trusted time can."""
    versions: Mapping[str, str] = field(default_factory=versions)
    files: Mapping[str, str] = field(default_factory=dict)
    """File -> SHA-256; `write` fills it in."""

    def to_dict(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **json.loads(json.dumps(asdict(self))), "settings_sha256": _settings(self)}


def changes(old: Manifest, new: Manifest) -> list[str]:
    """The differences of two audits in model, data, settings, seeds, versions and gate, as sentences."""
    sentences = []
    for part in ("model", "data", "settings", "versions"):
        old_value, new_value = old.to_dict()[part], new.to_dict()[part]
        for name in (
            name for name in dict.fromkeys([*old_value, *new_value]) if old_value.get(name) != new_value.get(name)
        ):
            sentences.append(f"{part}, {name}: was {old_value.get(name)!r}, is {new_value.get(name)!r}")
    sentences += [f"seeds: were {list(old.seeds)}, are {list(new.seeds)}"] if old.seeds != new.seeds else []
    old_value, new_value = _passed(old), _passed(new)
    return sentences + ([f"the gate: was {old_value}, is {new_value}"] if old_value != new_value else [])


def _passed(manifest: Manifest) -> str:
    gate = manifest.gate
    return "not set" if gate is None else "passed" if gate.get("passed") else "not passed"


def read_manifest(folder: Path) -> tuple[Manifest, str]:
    """A folder's manifest and its SHA-256."""
    file = folder / MANIFEST
    content = content_of(file)
    try:
        values = parse_json(content, file)
        schema = values.pop("schema")
        stated = values.pop("settings_sha256")
    except (KeyError, AttributeError, TypeError) as error:
        raise UserError(f"{file} is not a manifest of an audit: {error!r:.200}") from None
    if schema != SCHEMA:
        raise UserError(f"{file} has schema {schema!r}; this version of steadygaze reads schema {SCHEMA}")
    try:
        manifest = _adapter().validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{file}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    if not NEEDED <= manifest.files.keys() <= {*NEEDED, POLICY_FILE}:
        raise UserError(f"{file} names the files {', '.join(manifest.files) or 'none'}; bundle has {', '.join(FILES)}")
    if manifest.date and not is_time(manifest.date):
        raise ManifestChange(
            f"{file}: date is {manifest.date!r:.80}; it must be a time in UTC such as 2026-01-31T12:00:00Z"
        )
    if stated != _settings(manifest):
        raise ManifestChange(f"{file}: the settings were changed after it was written: their SHA-256 is another")
    return manifest, hashlib.sha256(content).hexdigest()


@cache
def _adapter() -> TypeAdapter[Manifest]:
    return TypeAdapter(Manifest)


def _settings(manifest: Manifest) -> str:
    return digest_json([manifest.settings], sort_keys=True)


def content_of(file: Path) -> bytes:
    try:
        return read_bytes(file)
    except MissingFile:
        raise UserError(f"{file.parent} is not a whole audit bundle: it has no {file.name}") from None
