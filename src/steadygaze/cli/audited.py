"""An audit for the command line: asked, written where it should be, shown, and held to what was required."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadygaze.audit import evidence, places
from steadygaze.audit.model_card import write_card
from steadygaze.audit.required import checked
from steadygaze.audit.run import Given, Machine, Order, load, manifest, run
from steadygaze.cli.app import as_json, console, screen
from steadygaze.cli.watching import line, watching
from steadygaze.config import build
from steadygaze.errors import RequirementNotMet
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

    @property
    def base(self) -> Path:
        """Where paths are seen from."""
        return Path.cwd() if self.out is None else self.out.resolve().parent


def audited(given: dict[str, Any], wanted: Wanted, common: Common) -> None:
    order, say = build(Order, given), console(common)
    policy = checked(as_policy(list(wanted.rules)), *([as_policy(wanted.policy)] if wanted.policy is not None else []))
    replaced = _check(wanted)
    with machine(common, say) as on:
        read = load(order, on)
        if not read.labelled:
            line(say, NO_LABELS)
        if wanted.out is not None:
            evidence.check_same(wanted.out, read.model, read.data, wanted.replace)
        report = told(run(read, on), wanted.base)
    if policy is not None:
        report = report.gated(policy)
    said = _write(read, report, policy, wanted)
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


def told(report: Report, base: Path) -> Report:
    """With what made it, and when."""
    command = ("steadygaze", *places.command(sys.argv[1:], base))
    return replace(report, command=command, versions=evidence.versions(), date=now())


def _check(wanted: Wanted) -> set[str]:
    """Refuse outputs that would destroy something; return the line of each output that replaces an earlier one."""
    html, out = wanted.html, wanted.out
    over = [html] if html is not None and check_file(html, replace=wanted.replace) else []
    return {f"written: {place}" for place in over + ([out] if out is not None and evidence.check_free(out) else [])}


def _write(read: Given, report: Report, policy: Policy | None, wanted: Wanted) -> list[str]:
    """What was written, a line for each."""
    said = []
    if wanted.out is not None:
        sealed = evidence.write(wanted.out, report, manifest(read, report, wanted.base), policy, wanted.replace)
        said += [f"written: {wanted.out}", f"seal (SHA-256 of the manifest): {sealed.seal}"]
    if wanted.html is not None:
        report.to_html(wanted.html, replace=wanted.replace)
        said.append(f"written: {wanted.html}")
    if wanted.card and read.folder is not None:
        said.append(write_card(read.folder, report))
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
