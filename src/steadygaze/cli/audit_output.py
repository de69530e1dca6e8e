"""An audit for the command line: asked, written where it should be, shown, and held to what was required.

steadygaze audit --verify: the same audit again, and what differs.  Nothing is written.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadygaze.audit import bundle, reproduction
from steadygaze.audit.audit_run import AuditOrder, LoadedAudit, Runtime, load, manifest, run
from steadygaze.audit.bundle import AuditBundle, sign
from steadygaze.audit.manifest import MANIFEST, Manifest, ManifestChange
from steadygaze.audit.reproduction import UNVERIFIED, discrepancies, rerun_command
from steadygaze.audit.verdict_rules import check_policy
from steadygaze.cli.application import Common, as_json, print_line, progress_bar, show, stderr_console, stdout_console
from steadygaze.core.errors import RequirementNotMet, UserError
from steadygaze.core.output_paths import check_file
from steadygaze.core.settings import build
from steadygaze.core.untrusted_files import resolve
from steadygaze.report.audited_card import write_card
from steadygaze.report.terminal_tables import terminal
from steadygaze.results.formatting import count_text
from steadygaze.results.policy import Policy, as_policy
from steadygaze.results.report import Report, now
from steadygaze.results.verdict import Gate

if TYPE_CHECKING:
    from steadygaze.core.console import Console

NO_LABELS = "the data have no column 'label': the audit goes on without labels (--label COL names another)"
INTERRUPTED = "interrupted; nothing was written"


@dataclass(frozen=True)
class AuditOutputs:
    """What an audit must find, and what is to be written of it."""

    rules: tuple[str, ...]
    policy: Path | None
    out: Path | None
    html: Path | None
    card: bool
    replace: bool
    sign: Path | None = None

    @property
    def base(self) -> Path:
        """Where paths are seen from."""
        return Path.cwd() if self.out is None else resolve(self.out).parent

    @property
    def required(self) -> Policy | None:
        """All that is required, from the command line and from a file."""
        return check_policy(as_policy(list(self.rules)), *([as_policy(self.policy)] if self.policy is not None else []))

    @property
    def signing(self) -> Callable[[bytes], bytes] | None:
        return None if self.sign is None else partial(sign, key=self.sign)


def run_audit_command(given: dict[str, Any], wanted: AuditOutputs, common: Common) -> None:
    order, say = build(AuditOrder, given), stderr_console(common)
    policy, replaced = wanted.required, _check(wanted)
    asked = reproduction.portable_settings(asdict(order), wanted.base)
    with audit_runtime(common, say) as on:
        read = load(order, on)
        if not read.labelled:
            print_line(say, NO_LABELS)
        if wanted.out is not None:
            bundle.check_same(wanted.out, read.model, read.data, wanted.replace)
        report = with_provenance(run(read, on), asked, policy, now())
    said = _write(wanted, report, manifest(read, report, asked), policy)
    if wanted.card and read.folder is not None:
        said.append(write_card(read.folder, report))
    _show(report, common)
    for place in said:
        print_line(say, place if place not in replaced else place.replace("written", "replaced", 1))
    if report.gate is not None:
        _gate(report.gate, say)


@contextmanager
def audit_runtime(common: Common, say: "Console") -> Iterator[Runtime]:
    """What computes, watched; an interruption says that it leaves nothing behind."""
    try:
        with progress_bar(say) as watch:
            yield Runtime(common.data_dir, common.device, common.batch_size, watch)
    except KeyboardInterrupt:
        print_line(say, INTERRUPTED)
        raise


def with_provenance(report: Report, asked: Mapping[str, Any], policy: Policy | None, date: str) -> Report:
    """With what made it and when, and the outcome of the policy."""
    report = replace(report, command=rerun_command(asked, policy), versions=bundle.versions(), date=date)
    return report if policy is None else report.with_gate(policy)


def _check(wanted: AuditOutputs) -> set[str]:
    """Refuse outputs that would destroy something; return the line of each output that replaces an earlier one."""
    html, out = wanted.html, wanted.out
    if wanted.sign is not None:
        if out is None:
            raise UserError("--sign signs an audit bundle: name its folder with --bundle")
        sign(b"", wanted.sign)  # a key that cannot sign is refused before the audit
    over = [html] if html is not None and check_file(html, replace=wanted.replace) else []
    return {f"written: {place}" for place in over + ([out] if out is not None and bundle.check_free(out) else [])}


def _write(wanted: AuditOutputs, report: Report, made: Manifest, policy: Policy | None) -> list[str]:
    """What was written, a line for each."""
    said = []
    if wanted.out is not None:
        sealed = bundle.write(wanted.out, report, made, policy, wanted.replace, wanted.signing)
        said += [f"written: {wanted.out}", f"seal (SHA-256 of the manifest): {sealed.seal}"]
    if wanted.html is not None:
        report.to_html(wanted.html, replace=wanted.replace)
        said.append(f"written: {wanted.html}")
    return said


def _show(report: Report, common: Common) -> None:
    if common.json:
        as_json(report.to_dict())
        return
    stdout_console().print(terminal(report, full=common.verbose))


def _gate(gate: Gate, say: "Console") -> None:
    if gate.failures:
        raise RequirementNotMet(*gate.failures)
    print_line(say, f"{count_text(len(gate.requirements), 'requirement')} met")


@dataclass(frozen=True)
class ExpectedBundle:
    """A bundle, and what its reader knows of it from elsewhere."""

    folder: Path
    instead: Mapping[str, Any]
    """Models and data that lie elsewhere now."""
    policy: Policy | None = None
    """What the bundle must have required; None: whatever it did."""
    signers: Path | None = None
    signer: str | None = None


def run_verify_command(expected: ExpectedBundle, common: Common) -> None:
    try:
        old = bundle.read(expected.folder)
        remarks = [_signed(old, expected)]
    except ManifestChange as error:
        _say(expected.folder, [str(error)], [], "", common)
        return
    found = []
    if expected.policy is not None and expected.policy != old.policy:
        found.append("the policy of the bundle is not the one that --require and --policy name")
    recorded = asdict(build(AuditOrder, dict(old.manifest.settings)))
    order = build(AuditOrder, reproduction.restored_settings({**recorded, **expected.instead}, expected.folder))
    asked = json.loads(json.dumps({**asdict(order), **reproduction.canonical(recorded, expected.folder)}))
    with audit_runtime(common, stderr_console(common)) as on:
        read, renamed = _named(load(order, on), old, expected.instead)
        report = with_provenance(run(read, on), asked, old.policy, old.manifest.date)
    made = bundle.complete(manifest(read, report, asked), report, old.policy)
    found += discrepancies(old, report, made)
    remarks += [*renamed, _gated(old)]
    remarks += [f"not verified by a rerun: {name} ({getattr(old.manifest, name) or 'unknown'})" for name in UNVERIFIED]
    _say(expected.folder, found, remarks, old.seal, common)


def _signed(old: AuditBundle, expected: ExpectedBundle) -> str:
    """Who signed; Altered where the signature does not hold."""
    if expected.signers is not None:
        name = bundle.check(old.contents[MANIFEST], old.signature, expected.signers, expected.signer)
        return f"signed by {name}"
    return "not signed" if old.signature is None else "signed, but not checked: --signers FILE checks by whom"


def _gated(old: AuditBundle) -> str:
    """What was required: a rerun cannot show that nothing else was."""
    if old.policy is None:
        return "the audit required nothing"
    many = count_text(len(old.policy.requirements) + len(old.policy.verdicts), "requirement")
    return f"the audit had {many}, {'passed' if (old.manifest.gate or {}).get('passed') else 'not passed'}"


def _named(read: LoadedAudit, old: AuditBundle, instead: Mapping[str, Any]) -> tuple[LoadedAudit, list[str]]:
    """Under the names that the bundle has, where the reader says where things lie: a copy may be called otherwise."""
    was, names = old.manifest, []
    subject, corpus = read.adapter, read.corpus
    if "model" in instead and read.model["fingerprint"] == was.model.get("fingerprint"):
        subject = dataclasses.replace(subject, name=str(was.model.get("name")))
        names.append(("model", read.adapter.name, subject.name))
    if "data" in instead and read.data["fingerprint"] == was.data.get("fingerprint"):
        corpus = dataclasses.replace(corpus, name=str(was.data.get("corpus")))
        names.append(("data", read.corpus.name, corpus.name))
    said = [f"{what}: {here!r:.80} here, {there!r:.80} in the bundle" for what, here, there in names if here != there]
    return dataclasses.replace(read, adapter=subject, corpus=corpus), said


def _say(folder: Path, found: list[str], remarks: list[str], seal: str, common: Common) -> None:
    if common.json:
        as_json({"bundle": str(folder), "seal": seal, "differences": found, "remarks": remarks})
    else:
        for one in found or [f"{folder} holds: run again, everything in it is the same"]:
            show(one)
        for remark in [*remarks, *([f"seal (SHA-256 of the manifest): {seal}"] if seal else [])]:
            print_line(stderr_console(common), remark)
    if found:
        raise RequirementNotMet(f"{folder} and the same audit now differ in {count_text(len(found), 'way')}")
