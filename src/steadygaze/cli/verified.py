"""steadygaze audit --verify: the same audit again, and what differs.  Nothing is written."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steadygaze.audit import evidence, places, signature
from steadygaze.audit.evidence import Evidence
from steadygaze.audit.manifest import MANIFEST, Altered
from steadygaze.audit.run import Given, Order, load, manifest, run
from steadygaze.audit.verification import UNVERIFIED, discrepancies
from steadygaze.cli.app import as_json, console, show
from steadygaze.cli.audited import machine, told
from steadygaze.cli.watching import line
from steadygaze.config import build
from steadygaze.errors import RequirementNotMet
from steadygaze.options import Common
from steadygaze.report.policy import Policy
from steadygaze.report.words import counted


@dataclass(frozen=True)
class Expected:
    """A bundle, and what its reader knows of it from elsewhere."""

    folder: Path
    instead: Mapping[str, Any]
    """Models and data that lie elsewhere now."""
    policy: Policy | None = None
    """What the bundle must have required; None: whatever it did."""
    signers: Path | None = None
    signer: str | None = None


def verified(expected: Expected, common: Common) -> None:
    try:
        old = evidence.read(expected.folder)
        remarks = [_signed(old, expected)]
    except Altered as error:
        _say(expected.folder, [str(error)], [], "", common)
        return
    found = []
    if expected.policy is not None and expected.policy != old.policy:
        found.append("the policy of the bundle is not the one that --require and --policy name")
    recorded = asdict(build(Order, dict(old.manifest.settings)))
    order = build(Order, places.found({**recorded, **expected.instead}, expected.folder))
    asked = json.loads(json.dumps({**asdict(order), **places.canonical(recorded, expected.folder)}))
    with machine(common, console(common)) as on:
        read, renamed = _named(load(order, on), old, expected.instead)
        report = told(run(read, on), asked, old.policy, old.manifest.date)
    made = evidence.complete(manifest(read, report, asked), report, old.policy)
    found += discrepancies(old, report, made)
    remarks += [*renamed, _gated(old)]
    remarks += [f"not verified by a rerun: {name} ({getattr(old.manifest, name) or 'unknown'})" for name in UNVERIFIED]
    _say(expected.folder, found, remarks, old.seal, common)


def _signed(old: Evidence, expected: Expected) -> str:
    """Who signed; Altered where the signature does not hold."""
    if expected.signers is not None:
        name = signature.check(old.contents[MANIFEST], old.signature, expected.signers, expected.signer)
        return f"signed by {name}"
    return "not signed" if old.signature is None else "signed, but not checked: --signers FILE checks by whom"


def _gated(old: Evidence) -> str:
    """What was required: a rerun cannot show that nothing else was."""
    if old.policy is None:
        return "the audit required nothing"
    many = counted(len(old.policy.requirements) + len(old.policy.verdicts), "requirement")
    return f"the audit had {many}, {'passed' if (old.manifest.gate or {}).get('passed') else 'not passed'}"


def _named(read: Given, old: Evidence, instead: Mapping[str, Any]) -> tuple[Given, list[str]]:
    """Under the names that the bundle has, where the reader says where things lie: a copy may be called otherwise."""
    was, names = old.manifest, []
    subject, corpus = read.subject, read.corpus
    if "model" in instead and read.model["fingerprint"] == was.model.get("fingerprint"):
        subject = dataclasses.replace(subject, name=str(was.model.get("name")))
        names.append(("model", read.subject.name, subject.name))
    if "data" in instead and read.data["fingerprint"] == was.data.get("fingerprint"):
        corpus = dataclasses.replace(corpus, name=str(was.data.get("corpus")))
        names.append(("data", read.corpus.name, corpus.name))
    said = [f"{what}: {here!r:.80} here, {there!r:.80} in the bundle" for what, here, there in names if here != there]
    return dataclasses.replace(read, subject=subject, corpus=corpus), said


def _say(folder: Path, found: list[str], remarks: list[str], seal: str, common: Common) -> None:
    if common.json:
        as_json({"evidence": str(folder), "seal": seal, "differences": found, "remarks": remarks})
    else:
        for one in found or [f"{folder} holds: run again, everything in it is the same"]:
            show(one)
        for remark in [*remarks, *([f"seal (SHA-256 of the manifest): {seal}"] if seal else [])]:
            line(console(common), remark)
    if found:
        raise RequirementNotMet(f"{folder} and the same audit now differ in {counted(len(found), 'way')}")
