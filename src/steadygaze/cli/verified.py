"""steadygaze audit --verify: the same audit again, and what differs.  Nothing is written."""

from pathlib import Path
from typing import Any

from steadygaze.audit import evidence, places
from steadygaze.audit.manifest import Altered, Manifest
from steadygaze.audit.run import Order, load, run
from steadygaze.cli.app import as_json, console, show
from steadygaze.cli.audited import machine, told
from steadygaze.cli.watching import line
from steadygaze.config import build
from steadygaze.errors import RequirementNotMet
from steadygaze.options import Common
from steadygaze.record import to_jsonl
from steadygaze.report.words import counted


def verified(folder: Path, instead: dict[str, Any], common: Common) -> None:
    """`instead`: models and data that lie elsewhere now."""
    try:
        old = evidence.read(folder)
    except Altered as error:
        _say(folder, [str(error)], "", common)
        return
    order = build(Order, places.found({**old.manifest.settings, **instead}, folder))
    with machine(common, console(common)) as on:
        read = load(order, on)
        report = told(run(read, on), folder.resolve().parent)
    now = Manifest(
        read.model, read.data, old.manifest.settings, old.manifest.seeds, gate=evidence.gate(report, old.policy)
    )
    found = evidence.changes(old.manifest, now)
    found += [one for one in evidence.differences(old.report, report) if one not in found]
    _say(folder, [*found, *_remade(folder, old)], old.seal, common)


def _remade(folder: Path, old: evidence.Evidence) -> list[str]:
    """Files that report.json alone makes again, and makes otherwise."""
    made = {"report.html": old.report.to_html(), "rows.jsonl": to_jsonl(old.report.rows)}
    return [
        f"{name} is not what report.json makes: it was changed, or made with other packages"
        for name, text in made.items()
        if (folder / name).read_bytes() != text.encode(errors="replace")
    ]


def _say(folder: Path, found: list[str], seal: str, common: Common) -> None:
    if common.json:
        as_json({"evidence": str(folder), "seal": seal, "differences": found})
    else:
        for one in found or [f"{folder} holds: run again, every number is the same"]:
            show(one)
        line(console(common), f"seal (SHA-256 of the manifest): {seal}" if seal else "")
    if found:
        raise RequirementNotMet(f"{folder} and the same audit now differ in {counted(len(found), 'way')}")
