"""The audit bundle: a folder with the report, its manifest and an optional signature.  Does not import torch.

report.html         the page
report.json         the report as JSON
rows.jsonl          one number per line
policy.toml         the requirements, if any
manifest.json       command, model, data, settings, seeds, time, versions, gate, and the SHA-256 of every other file
manifest.json.sig   an optional signature of the manifest

The folder is written atomically, and reading it does not execute its content.

`steadygaze audit --verify BUNDLE` compares it with a rerun: every field of the manifest and every byte of every file.
Numbers may differ by a relative 1e-6, because processors round differently.  The page, the rows and the policy are
rendered again from the compared content and must be the same bytes.  A rerun cannot verify the date of an audit
(`UNVERIFIED`), nor that its first policy was the same.  To verify these, a third party needs the digest of the
manifest from another source, or a signature.

Signatures use OpenSSH: `ssh-keygen -Y sign` and `-Y verify` with the namespace `steadygaze`.  A signature covers the
manifest, and through its hashes every other file.  https://man.openbsd.org/ssh-keygen.1 describes the formats.
"""

import hashlib
import json
import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath
from typing import Any

from steadygaze.bundle.manifest import (
    FILES,
    MANIFEST,
    REPORT,
    SIGNATURE,
    Manifest,
    ManifestChange,
    content_of,
    read_manifest,
)
from steadygaze.bundle.manifest import changes as changes
from steadygaze.core.atomic_files import new_folder, recover_folder, unknown_entries
from steadygaze.core.errors import UserError
from steadygaze.core.output_paths import check_new_folder
from steadygaze.core.untrusted_files import decode
from steadygaze.results.policy import POLICY_FILE, Policy, parse_policy, to_toml
from steadygaze.results.report import Report
from steadygaze.results.report import versions as versions
from steadygaze.results.report_differences import differences as differences
from steadygaze.results.report_file import parse
from steadygaze.results.row import to_jsonl

TOLERANCE = 1e-6
"""Tolerance of numbers: relative above 1, absolute below."""
UNVERIFIED = ("date",)
"""Fields of the manifest that a rerun cannot verify."""
COMPARED = ("rows", "versions")
"""Parts of a report that `differences` compares."""
MAX_DIFFERENCES = 20
"""Maximum number of differences listed for each part."""
NAMESPACE = "steadygaze"


def sign(content: bytes, key: Path) -> bytes:
    """Sign a manifest with a private key, or through ssh-agent with a public key."""
    if not key.is_file():
        raise UserError(f"--sign {key} is not a file: it takes an SSH key, as ssh-keygen -t ed25519 makes one")
    ended = _run(["-Y", "sign", "-f", str(key), "-n", NAMESPACE], content)
    if ended.returncode or b"BEGIN SSH SIGNATURE" not in ended.stdout:
        raise UserError(f"ssh-keygen could not sign with {key}: {_said(ended)}")
    return ended.stdout


def check(content: bytes, signature: bytes | None, signers: Path, signer: str | None = None) -> str:
    """The signer of a manifest among the allowed signers; `signer`: the required one."""
    if not signers.is_file():
        raise UserError(
            f"--signers {signers} is not a file: it lists allowed signers, a name and a public key per line"
        )
    if signature is None:
        raise ManifestChange("the bundle is not signed: it has no manifest.json.sig")
    with tempfile.NamedTemporaryFile(prefix="steadygaze-", suffix=".sig") as file:
        file.write(signature)
        file.flush()
        signature_options = ["-f", str(signers), "-s", file.name]
        if signer is None:
            principals = _run(["-Y", "find-principals", *signature_options], b"")
            names = [name for name in principals.stdout.decode(errors="replace").split("\n") if name]  # may hold spaces
            if principals.returncode or not names:
                raise ManifestChange(f"manifest.json.sig is by nobody that {signers} allows: {_said(principals)}")
            signer = names[0]
        verification = _run(["-Y", "verify", "-n", NAMESPACE, "-I", signer, *signature_options], content)
    if verification.returncode:
        raise ManifestChange(
            f"manifest.json.sig is not a signature of this manifest by {signer!r}: {_said(verification)}"
        )
    return signer


def _run(arguments: list[str], content: bytes) -> "subprocess.CompletedProcess[bytes]":
    program = shutil.which("ssh-keygen")
    if program is None:
        raise UserError("signatures need ssh-keygen, which is not installed: it is part of OpenSSH (openssh-client)")
    return subprocess.run([program, *arguments], input=content, capture_output=True, check=False)


def _said(ended: "subprocess.CompletedProcess[bytes]") -> str:
    lines = (ended.stderr or ended.stdout).decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {ended.returncode}")


@dataclass(frozen=True, slots=True)
class AuditBundle:
    report: Report
    manifest: Manifest
    policy: Policy | None
    contents: Mapping[str, bytes]
    """The content of the files, without the signature."""
    signature: bytes | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest, which covers all files."""
        return hashlib.sha256(self.contents[MANIFEST]).hexdigest()


def complete(manifest: Manifest, report: Report, policy: Policy | None) -> Manifest:
    """The manifest with all fields except the file hashes."""
    return replace(
        manifest,
        model={**manifest.model, "name": _last(str(manifest.model.get("name", "")))},
        data={**manifest.data, "corpus": _last(str(manifest.data.get("corpus", "")))},
        command=manifest.command or report.command,
        gate=gate(report, policy),
    )


def render(report: Report, manifest: Manifest, policy: Policy | None) -> dict[str, bytes]:
    """The files of a bundle: the same arguments give the same bytes."""
    contents = render_files(report, policy)
    return {**contents, MANIFEST: render_manifest(manifest, contents)}


def render_files(report: Report, policy: Policy | None) -> dict[str, bytes]:
    """All files but the manifest."""
    texts = {"report.html": report.to_html(), REPORT: report.to_json(), "rows.jsonl": to_jsonl(report.rows)}
    if policy is not None:
        texts[POLICY_FILE] = to_toml(policy)
    return {name: text.encode(errors="replace") for name, text in texts.items()}


def render_manifest(manifest: Manifest, contents: Mapping[str, bytes]) -> bytes:
    """The manifest file, with the hashes of the other files."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    values = replace(manifest, files=hashes).to_dict()
    return (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode(errors="replace")


def write(
    folder: str | Path,
    report: Report,
    manifest: Manifest,
    policy: Policy | None = None,
    replace_other: bool = False,
    sign: Callable[[bytes], bytes] | None = None,
) -> AuditBundle:
    """Write a bundle.  It may replace one of the same model and texts, or any bundle with `replace_other`."""
    folder = Path(folder)
    check_same(folder, manifest.model, manifest.data, replace_other)
    completed = complete(manifest, report, policy)
    contents = render(report, completed, policy)
    signature = None if sign is None else sign(contents[MANIFEST])
    try:
        with new_folder(folder) as new:
            for name, content in contents.items():
                (new / name).write_bytes(content)
            if signature is not None:
                (new / SIGNATURE).write_bytes(signature)
    except OSError as error:
        raise UserError(f"could not write {folder}: {error}; what stood there before is untouched") from None
    return AuditBundle(report, completed, policy, contents, signature)


def gate(report: Report, policy: Policy | None) -> dict[str, Any] | None:
    """The gate's result, for the manifest."""
    if policy is None:
        return None
    failures = [str(failure) for failure in report.failing(policy)]
    return {"passed": not failures, "failures": failures}


def check_free(folder: Path) -> bool:
    """True if the folder is an audit bundle; raises an error if it is neither new, empty nor a bundle."""
    check_new_folder(folder)
    recover_folder(folder)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if foreign_files := unknown_entries(folder, (*FILES, SIGNATURE)):
        raise UserError(f"{folder} holds {foreign_files[0]!r}, which would be lost; name another folder")
    try:
        read_manifest(folder)
    except UserError as error:
        raise UserError(f"{folder} is not an audit bundle, and is left alone: {error}; name another folder") from None
    return True


def check_same(folder: Path, model: Mapping[str, Any], data: Mapping[str, Any], replace_other: bool = False) -> None:
    """Raise an error if the folder is a bundle of another model or other texts."""
    if not check_free(folder) or replace_other:
        return
    old = read_manifest(folder)[0]
    for difference, name, old_facts, new_facts in (
        ("another model", "name", old.model, model),
        ("other texts", "corpus", old.data, data),
    ):
        if old_facts.get("fingerprint") != new_facts.get("fingerprint"):
            raise UserError(
                f"{folder} is an audit bundle of {difference} ({old_facts.get(name)!r:.80}) and is left alone; "
                "name another folder, or replace it with --replace"
            )


def read(folder: str | Path) -> AuditBundle:
    """Read a bundle and check every file against the manifest."""
    folder = Path(folder)
    recover_folder(folder)
    manifest, _ = read_manifest(folder)
    if missing_files := [name for name in manifest.files if not (folder / name).exists()]:
        raise ManifestChange(f"{folder} is not a whole audit bundle: it has no {missing_files[0]}")
    contents = {name: content_of(folder / name) for name in (*manifest.files, MANIFEST)}
    changed = [name for name, right in manifest.files.items() if hashlib.sha256(contents[name]).hexdigest() != right]
    if changed:
        raise ManifestChange(f"{folder}: {', '.join(changed)} was changed after it was written: its SHA-256 is another")
    policy = (
        parse_policy(decode(contents[POLICY_FILE], folder / POLICY_FILE), POLICY_FILE)
        if POLICY_FILE in contents
        else None
    )
    report = parse(Report, contents[REPORT], folder / REPORT)  # the content that was hashed, not the file again
    signature = content_of(folder / SIGNATURE) if (folder / SIGNATURE).exists() else None
    contents |= dict.fromkeys(unknown_entries(folder, (*contents, SIGNATURE)), b"")
    return AuditBundle(report, manifest, policy, contents, signature)


def _last(name: str) -> str:
    """A name without the folders of this machine."""
    return Path(name).name if Path(name).is_absolute() else PureWindowsPath(name).name if ":\\" in name else name


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
