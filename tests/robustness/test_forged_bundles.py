"""Bundles of a real audit in which one value was changed and every hash is right: verification lists each of them."""

import copy
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from estimator.tiny import LABELS, TEXTS, fitted
from robustness.harness import Result, run_case
from steadygaze.bundle import bundle as bundle
from steadygaze.bundle import loaded_audit
from steadygaze.bundle.bundle import AuditBundle, discrepancies
from steadygaze.bundle.manifest import MANIFEST, Manifest
from steadygaze.cli import audit_and_verify
from steadygaze.core.errors import UserError
from steadygaze.core.settings import build
from steadygaze.results.audit_config import AuditConfig, Runtime
from steadygaze.results.report import Report
from steadygaze.results.row import Row

QUOTES = ("{} .answer: was 'no', is 'yes'", "Approved (verdicts.0.answer: was confirmed)")
"""Texts of a forger: some read like the sentences in which verification lists differences."""
ANSWERS = ("yes", "undecided", "no", "not measured")
FIRST = 1
"""Entries of each list and mapping that are changed one by one; all of them are changed together."""
TURNS = 5
"""Tests that share the values of a report."""
Leaf = tuple[tuple[str | int, ...], Any]


@dataclass(frozen=True)
class Rerun:
    """A folder with model, data and bundle; the report and the manifest of the audit that was run again."""

    place: Path
    report: Report
    manifest: Manifest

    @property
    def bundle(self) -> Path:
        return self.place / "bundle"


@pytest.fixture(scope="module")
def rerun(tmp_path_factory: pytest.TempPathFactory) -> Rerun:
    """Audit once and verify once, by the commands: a genuine bundle has no differences."""
    place = tmp_path_factory.mktemp("forged")
    fitted().save(place / "model")
    rows = [f'"{text}",{label}' for text, label in list(zip(TEXTS, LABELS, strict=True))[8:16]]
    (place / "held.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    options = ["--explainer", "attention", "--sample", "4", "--require", "accuracy>=0.99", "--quiet"]
    words = ["audit", place / "model", "--data", place / "held.csv", "--bundle", place / "bundle", "--device", "cpu"]
    assert run_case([*words, *options]).code in (0, 1)
    made: list[Any] = []

    def compare(old: AuditBundle, report: Report, manifest: Manifest) -> list[str]:
        made.extend((report, manifest))
        return discrepancies(old, report, manifest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_and_verify, "discrepancies", compare)
        result = verify(place / "bundle")
    assert result.code == 0, result.out + result.err
    return Rerun(place, *made)


def verify(bundle: Path) -> Result:
    return run_case(["audit", "--verify", bundle, "--device", "cpu", "--quiet"])


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[Leaf]:
    """Every value of a JSON document that is not a list or an object with entries, and its path."""
    if isinstance(value, dict | list) and value:
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(entry, (*path, key))
    else:
        yield path, value


def changed(values: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """A copy with another value at a path; the signature of a row is made to fit."""
    values = copy.deepcopy(values)
    inner = values
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    if path[0] == "rows" and path[-1] != "signature":
        row = values["rows"][path[1]]
        row["signature"] = Row(row["measure"], 0, row["n"], settings=row["settings"]).signature
    return values


def forgeries(value: Any) -> list[Any]:
    """Other values for a leaf, of the same type where there are such."""
    if isinstance(value, bool):
        return [not value, int(value)]
    if isinstance(value, int):
        return [value + 1, *([bool(value)] if value in (0, 1) else [])]
    if isinstance(value, float):
        return [value + 1e-4, -value - 1]
    if isinstance(value, str):
        return [
            *(text.format(value) for text in QUOTES),
            *(answer for answer in ANSWERS if value in ANSWERS and answer != value),
        ]
    return [QUOTES[1], 1, [QUOTES[1]]] if value is None else [[QUOTES[1]], {"answer: was": QUOTES[1]}]


def short(report: Report) -> Report:
    """The report with the first entries of everything in it."""
    parts: dict[str, Any] = {
        name: dict(list(getattr(report, name).items())[:FIRST])
        for name in ("facts", "measures", "probes", "sections", "plots")
    }
    parts["plots"] = {name: points[:FIRST] for name, points in parts["plots"].items()}
    interval = next(row for row in report.rows if row.interval is not None)
    for name in ("verdicts", "shifts"):
        parts[name] = getattr(report, name)[:FIRST]
    return replace(report, rows=(interval, report.rows[-1]), **parts)


def write(folder: Path, report: Any, manifest: Any) -> None:
    """JSON values as a bundle; the page and the rows are not drawn again, but their hashes are right."""
    (folder / "report.json").write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n")
    manifest = copy.deepcopy(manifest)
    for name in manifest["files"]:
        manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    manifest["settings_sha256"] = hashlib.sha256(json.dumps(manifest["settings"], sort_keys=True).encode()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n")


@pytest.fixture
def forged(rerun: Rerun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the bundle, for which page and rows count as drawn again by the forger: they hide nothing."""
    folder = Path(shutil.copytree(rerun.bundle, tmp_path / "work" / "bundle"))
    for name in ("model", "held.csv"):
        (tmp_path / "work" / name).symlink_to(rerun.place / name)
    names = ("report.html", "report.json", "rows.jsonl", "policy.toml")
    monkeypatch.setattr(bundle, "render_files", lambda *_: {file: (folder / file).read_bytes() for file in names})
    return folder


def reported(action: Callable[[], list[str]]) -> bool:
    """Whether a bundle is refused, or has differences."""
    try:
        return bool(action())
    except UserError:
        return True


@pytest.mark.slow
def test_every_leaf_of_the_report_is_listed(rerun: Rerun, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once: one sentence for each."""
    monkeypatch.setattr(bundle, "MAX_DIFFERENCES", 10**6)
    values = json.loads((rerun.bundle / "report.json").read_bytes())
    total = 0
    for path, value in leaves(values):
        inner: Any = values
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = forgeries(value)[0]
        total += 1
    result = bundle._report(json.dumps(values).encode(), rerun.report, all_parts=True)
    assert total > 1000
    assert len(result) == total


@pytest.mark.sweep(keep=0, slow=1)
@pytest.mark.parametrize("start", range(TURNS))
def test_a_report_with_one_forged_value_does_not_hold(start: int, rerun: Rerun, forged: Path) -> None:
    """Each turn takes every fifth value."""
    report = short(rerun.report)
    values, manifest = json.loads(report.to_json()), json.loads((forged / MANIFEST).read_bytes())
    write(forged, values, manifest)
    assert discrepancies(bundle.read(forged), report, rerun.manifest) == []
    hidden = []
    for path, value in islice(leaves(values), start, None, TURNS):
        for new in forgeries(value):
            write(forged, changed(values, path, new), manifest)
            if not reported(lambda: discrepancies(bundle.read(forged), report, rerun.manifest)):
                hidden.append((path, value, new))
    assert hidden == []


@pytest.mark.slow
def test_a_manifest_with_one_forged_value_does_not_hold(
    rerun: Rerun, forged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the date, which a rerun cannot show."""
    inputs, small = cache(loaded_audit.load_audit), short(rerun.report)
    genuine = bundle.read(forged).manifest.settings
    order = build(AuditConfig, loaded_audit.restored_settings(genuine, forged))
    monkeypatch.setattr(audit_and_verify, "load_audit", lambda *_: inputs(order, Runtime(device="cpu")))
    monkeypatch.setattr(audit_and_verify.LoadedAudit, "run", lambda *_: small)
    report, manifest = json.loads(small.to_json()), json.loads((forged / MANIFEST).read_bytes())
    write(forged, report, manifest)
    result = verify(forged)
    assert result.code == 0, result.out
    hidden = []
    for path, value in leaves({name: manifest[name] for name in manifest if name not in ("files", "settings_sha256")}):
        for new in forgeries(value):
            write(forged, report, changed(manifest, path, new))
            result = verify(forged)
            assert result.code in (0, 1, 2), result.err
            if result.code == 0:
                hidden.append((path, value, new))
    assert hidden == []


@pytest.mark.slow
def test_the_command_refuses_a_forged_title(rerun: Rerun, tmp_path: Path) -> None:
    """With the page drawn again, and the audit run again."""
    folder = Path(shutil.copytree(rerun.bundle, tmp_path / "bundle"))
    for name in ("model", "held.csv"):
        (tmp_path / name).symlink_to(rerun.place / name)
    old = bundle.read(folder)
    report = replace(old.report, title="Certified safe [.answer: was checked]")
    for name, content in bundle.render(report, old.manifest, old.policy).items():
        (folder / name).write_bytes(content)
    result = verify(folder)
    assert (result.code, "report, title: was 'Certified safe" in result.out) == (1, True), result.out + result.err


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("path", ["./approved/../model", "./model/.", "./model/", "approved/../model", "{}/model"])
def test_a_model_path_is_recorded_as_an_audit_records_it(
    path: str, rerun: Rerun, forged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings and commands agree, and the path leads to the model."""
    monkeypatch.setattr(audit_and_verify.LoadedAudit, "run", lambda *_: rerun.report)
    (forged.parent / "approved").mkdir()
    monkeypatch.chdir(forged.parent)
    path = path.replace("{}", str(forged.parent))
    report, manifest = (json.loads((forged / name).read_bytes()) for name in ("report.json", MANIFEST))
    manifest["settings"]["model"] = path
    for document in (report, manifest):
        document["command"] = [path if word == "./model" else word for word in document["command"]]
    write(forged, report, manifest)
    result = verify(forged)
    assert (result.code, "settings, model: was" in result.out) == (1, True), result.out + result.err


@pytest.mark.parametrize("date", ["2031 SIGNED OFF BY A REGULATOR", "\x1b[31m2031", "2026-02-31T12:00:00Z", "2026"])
def test_a_date_that_is_not_a_time_is_refused(date: str, forged: Path) -> None:
    report, manifest = (json.loads((forged / name).read_bytes()) for name in ("report.json", MANIFEST))
    write(forged, {**report, "date": date}, {**manifest, "date": date})
    result = verify(forged)
    assert (result.code, "it must be a time in UTC" in result.out) == (1, True), result.out + result.err
