"""An audit for the command line: asked, written where it should be, shown, and held to what was required."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadygaze.audit import evidence, places
from steadygaze.audit.manifest import Manifest
from steadygaze.audit.model_card import write_card
from steadygaze.audit.repeating import command
from steadygaze.audit.required import checked
from steadygaze.audit.run import Machine, Order, load, manifest, run
from steadygaze.audit.signature import sign
from steadygaze.cli.app import as_json, console, screen
from steadygaze.cli.watching import line, watching
from steadygaze.config import build
from steadygaze.errors import RequirementNotMet, UserError
from steadygaze.foreign_files import resolve
from steadygaze.options import Common
from steadygaze.outputs import check_file
from steadygaze.report.policy import Policy, as_policy
from steadygaze.report.report import Gate, Report, now
from steadygaze.report.shown import terminal
from steadygaze.report.words import counted

if TYPE_CHECKING:
    from steadygaze.terminal import Console

NO_LABELS = "the data have no column 'label': the audit goes on without labels (--label COL names another)"
INTERRUPTED = "interrupted; nothing was written"


@dataclass(frozen=True)
class Wanted:
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
        return checked(as_policy(list(self.rules)), *([as_policy(self.policy)] if self.policy is not None else []))

    @property
    def signing(self) -> Callable[[bytes], bytes] | None:
        return None if self.sign is None else partial(sign, key=self.sign)


def audited(given: dict[str, Any], wanted: Wanted, common: Common) -> None:
    order, say = build(Order, given), console(common)
    policy, replaced = wanted.required, _check(wanted)
    asked = places.settings(asdict(order), wanted.base)
    with machine(common, say) as on:
        read = load(order, on)
        if not read.labelled:
            line(say, NO_LABELS)
        if wanted.out is not None:
            evidence.check_same(wanted.out, read.model, read.data, wanted.replace)
        report = told(run(read, on), asked, policy, now())
    said = _write(wanted, report, manifest(read, report, asked), policy)
    if wanted.card and read.folder is not None:
        said.append(write_card(read.folder, report))
    _show(report, common)
    for place in said:
        line(say, place if place not in replaced else place.replace("written", "replaced", 1))
    if report.gate is not None:
        _gate(report.gate, say)


@contextmanager
def machine(common: Common, say: "Console") -> Iterator[Machine]:
    """What computes, watched; an interruption says that it leaves nothing behind."""
    try:
        with watching(say) as watch:
            yield Machine(common.data_dir, common.device, common.batch_size, watch)
    except KeyboardInterrupt:
        line(say, INTERRUPTED)
        raise


def told(report: Report, asked: Mapping[str, Any], policy: Policy | None, date: str) -> Report:
    """With what made it and when, and the outcome of the policy."""
    report = replace(report, command=command(asked, policy), versions=evidence.versions(), date=date)
    return report if policy is None else report.gated(policy)


def _check(wanted: Wanted) -> set[str]:
    """Refuse outputs that would destroy something; return the line of each output that replaces an earlier one."""
    html, out = wanted.html, wanted.out
    if wanted.sign is not None:
        if out is None:
            raise UserError("--sign signs an audit bundle: name its folder with --out")
        sign(b"", wanted.sign)  # a key that cannot sign is refused before the audit
    over = [html] if html is not None and check_file(html, replace=wanted.replace) else []
    return {f"written: {place}" for place in over + ([out] if out is not None and evidence.check_free(out) else [])}


def _write(wanted: Wanted, report: Report, made: Manifest, policy: Policy | None) -> list[str]:
    """What was written, a line for each."""
    said = []
    if wanted.out is not None:
        sealed = evidence.write(wanted.out, report, made, policy, wanted.replace, wanted.signing)
        said += [f"written: {wanted.out}", f"seal (SHA-256 of the manifest): {sealed.seal}"]
    if wanted.html is not None:
        report.to_html(wanted.html, replace=wanted.replace)
        said.append(f"written: {wanted.html}")
    return said


def _show(report: Report, common: Common) -> None:
    if common.json:
        as_json(report.to_dict())
        return
    screen().print(terminal(report, full=common.verbose))


def _gate(gate: Gate, say: "Console") -> None:
    if gate.failures:
        raise RequirementNotMet(*gate.failures)
    line(say, f"{counted(len(gate.requirements), 'requirement')} met")
