"""Run `steadygaze audit`: write and show the report, check the requirements, or verify a bundle."""

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadygaze.auditing.audit import AuditInterrupted
from steadygaze.bundle import bundle
from steadygaze.bundle.bundle import UNVERIFIED, AuditBundle, discrepancies, sign
from steadygaze.bundle.loaded_audit import (
    LoadedAudit,
    canonical,
    load_audit,
    portable_settings,
    restored_settings,
)
from steadygaze.bundle.manifest import MANIFEST, Manifest, ManifestChange
from steadygaze.cli.command_options import Common
from steadygaze.cli.printing import (
    print_health,
    print_json,
    print_line,
    print_omissions,
    show,
    stderr_console,
    stdout_console,
)
from steadygaze.cli.progress_bars import progress_bar
from steadygaze.core.atomic_files import exclusive_output
from steadygaze.core.errors import RequirementNotMet, UserError
from steadygaze.core.output_paths import check_file
from steadygaze.core.settings import build
from steadygaze.core.untrusted_files import resolve
from steadygaze.properties import check_policy
from steadygaze.properties.commands import complete_commands, rerun_command
from steadygaze.report.terminal_tables import terminal
from steadygaze.results.audit_config import AuditConfig, Runtime
from steadygaze.results.evaluation import exchanged_classes, written_labels
from steadygaze.results.formatting import count_text
from steadygaze.results.health import without_health
from steadygaze.results.model_card import write_card
from steadygaze.results.policy import Policy, as_policy
from steadygaze.results.report import Report, now
from steadygaze.results.row import Gate

if TYPE_CHECKING:
    from steadygaze.core.errors import Console

NO_LABELS = "the data have no column 'label': the audit runs without labels (--label COL names another column)"


@dataclass(frozen=True)
class AuditOutputs:
    """The requirements and the outputs of an audit."""

    rules: tuple[str, ...]
    policy: Path | None
    out: Path | None
    html: Path | None
    card: bool
    replace: bool
    sign: Path | None = None

    @property
    def base(self) -> Path:
        """Folder that recorded paths are relative to."""
        return Path.cwd() if self.out is None else resolve(self.out).parent

    @property
    def required(self) -> Policy | None:
        """Requirements from the command line and from a file."""
        rules = [self.rules and list(self.rules), self.policy]
        policies = [as_policy(item) for item in rules if item]
        return check_policy(*policies) if policies else None

    @property
    def signing(self) -> Callable[[bytes], bytes] | None:
        return None if self.sign is None else partial(sign, key=self.sign)


def run_audit_command(config: AuditConfig, outputs: AuditOutputs, common: Common) -> None:
    console, policy, replaced = stderr_console(common), outputs.required, _check(outputs)
    with nullcontext() if outputs.out is None else exclusive_output(outputs.out, "auditing"):
        with audit_runtime(common, console, (config.model, *config.other_seeds)) as runtime:
            loaded = load_audit(config, runtime)
            settings = portable_settings(asdict(loaded.config), outputs.base)
            if outputs.card and not loaded.request.adapter.is_classifier:
                raise UserError(f"--card writes into the card of a model of train, which {config.model} is not")
            if outputs.out is not None and loaded.has_fitted:
                raise UserError(
                    "--bundle does not hold fitted explainers: leave out --bundle, or name other explainers"
                )
            if not loaded.labeled:
                print_line(console, NO_LABELS)
            print_omissions(loaded.corpus.name, loaded.corpus.dropped, common)
            if outputs.out is not None:
                bundle.check_same(outputs.out, loaded.model, loaded.data, outputs.replace)
            try:
                report = with_provenance(loaded.run(settings), settings, policy, now())
            except AuditInterrupted as interruption:
                partial_report = with_provenance(interruption.findings.report(), settings, None, now())
                raise KeyboardInterrupt(_keep_finished(partial_report, outputs)) from None
        lines = _write(outputs, report, loaded.manifest(report, settings), policy, replaced)
    if outputs.card:
        lines.append(write_card(Path(os.path.expanduser(config.model)), report))
    print_health(report.health)
    if common.json:
        print_json(report.to_dict())
    else:
        stdout_console().print(terminal(without_health(report), full=common.verbose))
    for line in lines:
        print_line(console, line)
    if not common.json and outputs.base == Path.cwd():
        for line in complete_commands(report, settings):
            print_line(console, f"next:  {line}")
    if not common.json and (names := _exchanged(loaded, report)):
        command = rerun_command(portable_settings(asdict(replace(config, classes=names)), Path.cwd()), policy)
        print_line(console, f"try:  {shlex.join(command)}")
    if report.gate is not None:
        _gate(report.gate, console)


@contextmanager
def audit_runtime(common: Common, console: "Console", importable: Iterable[str]) -> Iterator[Runtime]:
    """Yield the runtime with a progress bar; on an interruption, print what was written."""
    size = Runtime.batch_size if common.batch_size is None else common.batch_size
    try:
        with progress_bar(console, percent=True) as on_progress:
            announce = partial(print_line, console)
            yield Runtime(
                common.data_dir,
                common.device,
                size,
                on_progress=on_progress,
                announce=announce,
                importable=frozenset(importable),
            )
    except KeyboardInterrupt as interruption:
        print_line(console, f"interrupted; {next(iter(interruption.args), 'nothing was written')}")
        raise


def _keep_finished(report: Report, outputs: AuditOutputs) -> str:
    """Write the page of an interrupted audit; a bundle is written only of a complete one."""
    finished = sum(row.n > 0 for row in report.rows)
    if not finished:
        return "nothing was written"
    numbers = count_text(finished, "number")
    if outputs.html is None:
        return f"nothing was written; with --html PATH, an incomplete page keeps the finished measures ({numbers})"
    report.to_html(outputs.html, replace=outputs.replace)
    return f"written: {outputs.html}, an incomplete page with {numbers}"


def with_provenance(report: Report, settings: Mapping[str, Any], policy: Policy | None, date: str) -> Report:
    """Add the command, versions, date and the result of the policy."""
    report = replace(report, command=rerun_command(settings, policy), versions=bundle.versions(), date=date)
    return report if policy is None else report.with_gate(policy)


def _exchanged(loaded: LoadedAudit, report: Report) -> tuple[str, ...]:
    """Labels in the order of the outputs, if the model is worse than a constant without it; else empty."""
    adapter = loaded.request.adapter
    if report.evaluation is None or adapter.classifier is not None or "output" in adapter.facts:
        return ()
    labels = [example.label for example in loaded.request.examples if example.label is not None]
    written = written_labels(labels, adapter.label_codes(labels), adapter.classes)
    exchanged = exchanged_classes(report.evaluation.confusion, written)
    return () if exchanged is None else tuple(map(str, exchanged[0]))


def _check(outputs: AuditOutputs) -> set[Path]:
    """Refuse outputs that would destroy something; return those that replace an earlier one."""
    html, out = outputs.html, outputs.out
    if outputs.sign is not None:
        if out is None:
            raise UserError("--sign signs an audit bundle: name its folder with --bundle")
        sign(b"", outputs.sign)  # a key that cannot sign is refused before the audit
    over = [html] if html is not None and check_file(html, replace=outputs.replace) else []
    return {*over, *([out] if out is not None and bundle.check_free(out) else [])}


def _write(
    outputs: AuditOutputs, report: Report, contents: Manifest, policy: Policy | None, replaced: set[Path]
) -> list[str]:
    """Write the outputs; return a line for each.  `replaced`: those that exist."""

    def line(path: Path) -> str:
        return f"{'replaced' if path in replaced else 'written'}: {path}"

    lines = []
    if outputs.out is not None:
        written = bundle.write(outputs.out, report, contents, policy, outputs.replace, outputs.signing)
        lines += [line(outputs.out), f"SHA-256 of the manifest: {written.digest}"]
    if outputs.html is not None:
        report.to_html(outputs.html, replace=outputs.replace)
        lines.append(line(outputs.html))
    return lines


def _gate(gate: Gate, console: "Console") -> None:
    if gate.failures:
        raise RequirementNotMet(*(f"requirement not met: {failure}" for failure in gate.failures))
    print_line(console, f"{count_text(len(gate.requirements), 'requirement')} met")


@dataclass(frozen=True)
class ExpectedBundle:
    """A bundle to verify, and what the caller expects of it."""

    folder: Path
    instead: Mapping[str, Any]
    """Models and data that have moved."""
    policy: Policy | None = None
    """The expected policy; None: any."""
    signers: Path | None = None
    signer: str | None = None


def run_verify_command(expected: ExpectedBundle, common: Common) -> None:
    try:
        old = bundle.read(expected.folder)
        remarks = [_check_signature(old, expected)]
    except ManifestChange as error:
        _show_differences(expected.folder, [str(error)], [], "", common)
        return
    differences = []
    if expected.policy is not None and expected.policy != old.policy:
        differences.append("the policy of the bundle is not the one that --require and --policy name")
    recorded = asdict(build(AuditConfig, dict(old.manifest.settings)))
    config = build(AuditConfig, restored_settings({**recorded, **expected.instead}, expected.folder, expected.instead))
    settings = json.loads(json.dumps({**asdict(config), **canonical(recorded, expected.folder)}))
    typed = {str(expected.instead.get("model")), *expected.instead.get("other_seeds", ())}
    with audit_runtime(common, stderr_console(common), typed) as runtime:
        loaded, renames = _with_bundle_names(load_audit(config, runtime), old, expected.instead)
        report = with_provenance(loaded.run(settings), settings, old.policy, old.manifest.date)
    rerun = bundle.complete(loaded.manifest(report, settings), report, old.policy)
    differences += discrepancies(old, report, rerun)
    remarks += [*renames, _describe_gate(old)]
    remarks += [f"not verified by a rerun: {name} ({getattr(old.manifest, name) or 'unknown'})" for name in UNVERIFIED]
    _show_differences(expected.folder, differences, remarks, old.digest, common)


def _check_signature(old: AuditBundle, expected: ExpectedBundle) -> str:
    """Return the signer; raise ManifestChange if the signature is not valid."""
    if expected.signers is not None:
        name = bundle.check(old.contents[MANIFEST], old.signature, expected.signers, expected.signer)
        return f"signed by {name}"
    return "not signed" if old.signature is None else "signed, but not checked: --signers FILE checks by whom"


def _describe_gate(old: AuditBundle) -> str:
    """Describe the requirements; a rerun cannot show that there were no others."""
    if old.policy is None:
        return "the audit had no requirements"
    many = count_text(len(old.policy.requirements) + len(old.policy.verdicts), "requirement")
    return f"the audit had {many}, {'passed' if (old.manifest.gate or {}).get('passed') else 'not passed'}"


def _with_bundle_names(
    loaded: LoadedAudit, old: AuditBundle, instead: Mapping[str, Any]
) -> tuple[LoadedAudit, list[str]]:
    """Use the names in the bundle for models and data that have moved; return the changed names."""
    recorded, names = old.manifest, []
    adapter, corpus = loaded.request.adapter, loaded.corpus
    if "model" in instead and loaded.model["fingerprint"] == recorded.model.get("fingerprint"):
        adapter = replace(adapter, name=str(recorded.model.get("name")))
        names.append(("model", loaded.request.adapter.name, adapter.name))
    if "data" in instead and loaded.data["fingerprint"] == recorded.data.get("fingerprint"):
        corpus = replace(corpus, name=str(recorded.data.get("corpus")))
        names.append(("data", loaded.corpus.name, corpus.name))
    remarks = [
        f"{kind}: {here!r:.80} here, {there!r:.80} in the bundle" for kind, here, there in names if here != there
    ]
    return replace(loaded, request=replace(loaded.request, adapter=adapter), corpus=corpus), remarks


def _show_differences(folder: Path, differences: list[str], remarks: list[str], digest: str, common: Common) -> None:
    if common.json:
        print_json({"bundle": str(folder), "manifest_sha256": digest, "differences": differences, "remarks": remarks})
    else:
        for line in differences or [f"{folder} is reproduced: the rerun gives the same results"]:
            show(line)
        for remark in [*remarks, *([f"SHA-256 of the manifest: {digest}"] if digest else [])]:
            print_line(stderr_console(common), remark)
    if differences:
        raise RequirementNotMet(f"{folder} and its rerun differ in {count_text(len(differences), 'way')}")
