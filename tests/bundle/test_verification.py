"""Forged bundles: whatever is rewritten together with the hashes, the rerun shows it."""

import dataclasses
import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from commands import Ended, run
from estimator.tiny import LABELS, TEXTS, fitted, tiny
from report.audited import full_report
from steadygaze import cli
from steadygaze.bundle import bundle
from steadygaze.bundle.bundle import AuditBundle, discrepancies, gate, read, render
from steadygaze.bundle.manifest import MANIFEST, SIGNATURE, Manifest
from steadygaze.cli import audit_and_verify
from steadygaze.properties.commands import rerun_command as repeating
from steadygaze.results.audit_config import AuditConfig
from steadygaze.results.note import text_note
from steadygaze.results.policy import Policy, as_policy
from steadygaze.results.report import Report

STRICT = "accuracy>=0.99"
Command = Callable[..., Ended]


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, data and the bundle of an audit whose gate was not passed."""
    here = tmp_path_factory.mktemp("verification")
    fitted().save(here / "model")
    rows = [f'"{text}",{label}' for text, label in zip(TEXTS, LABELS, strict=True)]
    (here / "held.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    arguments = [
        "--data",
        str(here / "held.csv"),
        "--bundle",
        str(here / "bundle"),
        "--require",
        STRICT,
        "--quiet",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_and_verify.LoadedAudit, "run", lambda *_: full_report(plots={}))
        with pytest.raises(SystemExit) as ended:
            cli.main(["audit", str(here / "model"), *arguments, "--device", "cpu"])
    assert ended.value.code == 1
    return here


@pytest.fixture
def here(genuine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(genuine, tmp_path / "work"))


@pytest.fixture
def verify(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setattr(audit_and_verify.LoadedAudit, "run", lambda *_: full_report(plots={}))
    return lambda *more: run(capsys, "audit", "--verify", here / "bundle", "--device", "cpu", *more)


def forge(folder: Path, report: Report, manifest: Manifest, policy: Policy | None) -> None:
    """Write a bundle that is consistent in itself: the page is drawn again, every hash is right."""
    shutil.rmtree(folder)
    folder.mkdir()
    for name, content in render(report, manifest, policy).items():
        (folder / name).write_bytes(content)


def test_a_genuine_bundle_holds(verify: Command) -> None:
    ended = verify()
    assert ended.code == 0, ended.out + ended.err
    assert "is reproduced" in ended.out
    assert "the audit had 1 requirement, not passed" in ended.err
    assert "not verified by a rerun: date" in ended.err


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", ["renamed", "a folder/with another name"])
def test_a_bundle_that_was_copied_or_renamed_holds(
    name: str, here: Path, verify: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(here / "bundle", here / name))
    ended = run(capsys, "audit", here / "model", "--data", here / "held.csv", "--verify", copy, "--device", "cpu")
    assert (ended.code, "is reproduced" in ended.out) == (0, True), ended.out + ended.err
    shutil.move(here / "bundle", here / "elsewhere")
    ended = run(capsys, "audit", "--verify", here / "elsewhere", "--device", "cpu")
    assert (ended.code, "is reproduced" in ended.out) == (0, True), ended.out + ended.err


@pytest.mark.slow
def test_a_bundle_that_is_replayed_on_another_model_or_other_data_does_not_hold(
    here: Path, verify: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tiny(seed=1).fit(TEXTS, LABELS)
    other.save(here / "other")
    ended = verify(here / "other")
    assert ended.code == 1
    assert "model" in ended.out
    shutil.rmtree(here / "model")
    other.save(here / "model")  # another one in its place
    ended = verify()
    assert ended.code == 1
    assert "model" in ended.out
    shutil.rmtree(here / "model")
    fitted().save(here / "model")
    assert verify().code == 0
    (here / "held.csv").write_text(
        "text,label\n" + "\n".join(f'"{t}",{k}' for t, k in zip(TEXTS[1:], LABELS[1:], strict=True))
    )
    ended = verify()
    assert ended.code == 1
    assert "data" in ended.out or "corpus" in ended.out


def test_a_bundle_cannot_name_code(here: Path, verify: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the model that the user typed is imported, not the one of another seed in the bundle."""
    monkeypatch.chdir(here)
    (here / "planted_model.py").write_text("open('imported', 'w').close()\ndef predict(texts): return [[1, 0]]\n")
    old = read(here / "bundle")
    settings = {**old.manifest.settings, "other_seeds": ["planted_model:predict"]}
    forge(here / "bundle", old.report, dataclasses.replace(old.manifest, settings=settings), old.policy)
    ended = verify(here / "model")
    assert (ended.code, "planted_model:predict" in ended.err) == (2, True), ended.err
    assert not (here / "imported").exists()


REPORT: dict[str, Callable[[dict[str, Any]], object]] = {
    "title": lambda content: content.update(title="Approved"),
    "notes": lambda content: content["notes"].append(text_note("Nothing is wrong.").to_dict()),
    "facts": lambda content: content["facts"].update(texts="9000"),
    "verdicts": lambda content: content["verdicts"][0]["reasons"].append(text_note("Every number is good.").to_data()),
    "Stability under rewording: the answer was 'yes'": lambda content: content["verdicts"][0].update(answer="yes"),
    "accuracy": lambda content: content["rows"][0].update(value=0.999),
    "rows.0.notes": lambda content: content["rows"][0].update(notes=[text_note("measured twice").to_data()]),
    "shifts.0.distance": lambda content: content["shifts"][0].update(distance=0.0),
    "shifts.0.after": lambda content: content["shifts"][0]["after"].update(
        weights=content["shifts"][0]["before"]["weights"]
    ),
    "measures": lambda content: content["measures"]["accuracy"].update(sentence="Whether the model is safe."),
    "probes": lambda content: content["probes"].update({min(content["probes"]): "nothing was done"}),
    "sections": lambda content: content["sections"].update(accuracy="Quality"),
    "command": lambda content: content.update(command=["steadygaze", "audit", "a-better-model"]),
    "report, date": lambda content: content.update(date="2020-01-01T00:00:00Z"),
    "report, gate": lambda content: content["gate"].update(unmet=0, failures=[]),
    "version of torch": lambda content: content["versions"].update(torch="9.9"),
}


FAST = {"title", "accuracy", "report, gate", "command"}
"""Parts that `make test` changes; `robustness/test_forged_bundles.py` changes every value of a report."""


def fast_and_slow(parts: Iterable[str]) -> list[Any]:
    return [part if part in FAST else pytest.param(part, marks=pytest.mark.slow) for part in parts]


@pytest.mark.parametrize("part", fast_and_slow(REPORT))
def test_a_report_that_was_rewritten_is_reported_part_by_part(part: str, here: Path, verify: Command) -> None:
    old = read(here / "bundle")
    values = old.report.to_dict()
    REPORT[part](values)
    forge(here / "bundle", Report.from_dict(json.loads(json.dumps(values))), old.manifest, old.policy)
    ended = verify()
    assert (ended.code, part in ended.out) == (1, True), ended.out + ended.err


def changed(old: Manifest, part: str, **values: Any) -> Manifest:
    return dataclasses.replace(old, **{part: {**getattr(old, part), **values}})


CHANGES: dict[str, Callable[[AuditBundle], tuple[Manifest, Policy | None]]] = {
    "model, name": lambda old: (changed(old.manifest, "model", name="approved"), old.policy),
    "model, kind": lambda old: (changed(old.manifest, "model", kind="a certified model"), old.policy),
    "model, fingerprint": lambda old: (changed(old.manifest, "model", fingerprint="0" * 64), old.policy),
    "model, auditor": lambda old: (changed(old.manifest, "model", auditor="somebody"), old.policy),
    "data, corpus": lambda old: (changed(old.manifest, "data", corpus="official.csv"), old.policy),
    "data, n": lambda old: (changed(old.manifest, "data", n=100_000), old.policy),
    "data, fingerprint": lambda old: (changed(old.manifest, "data", fingerprint="0" * 64), old.policy),
    "command": lambda old: (changed(old.manifest, "settings", k=3), old.policy),
    "versions, torch": lambda old: (changed(old.manifest, "versions", torch="9.9"), old.policy),
    "seeds": lambda old: (dataclasses.replace(old.manifest, seeds=("./other",)), old.policy),
    "manifest, command": lambda old: (dataclasses.replace(old.manifest, command=("steadygaze", "audit")), old.policy),
    "the gate: was passed": lambda old: (changed(old.manifest, "gate", passed=True, failures=[]), old.policy),
    "manifest, gate.failures": lambda old: (changed(old.manifest, "gate", failures=["accuracy is 0.99."]), old.policy),
    "the gate: was not set": lambda old: (dataclasses.replace(old.manifest, gate=None), old.policy),
}


@pytest.mark.parametrize("part", fast_and_slow(CHANGES))
def test_a_manifest_that_was_rewritten_is_reported_field_by_field(part: str, here: Path, verify: Command) -> None:
    old = read(here / "bundle")
    forge(here / "bundle", old.report, *CHANGES[part](old))
    ended = verify()
    assert (ended.code, part in ended.out) == (1, True), ended.out + ended.err


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("policy", [as_policy(["accuracy>=0.1"]), None], ids=["loosened", "removed"])
def test_a_policy_that_was_loosened_or_removed_is_reported(policy: Policy | None, here: Path, verify: Command) -> None:
    """With the gate that it would have had."""
    old = read(here / "bundle")
    forge(here / "bundle", old.report, dataclasses.replace(old.manifest, gate=gate(old.report, policy)), policy)
    ended = verify()
    assert (ended.code, "report, command" in ended.out) == (1, True), ended.out + ended.err


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("policy", [as_policy(["accuracy>=0.1"]), None], ids=["loosened", "removed"])
def test_another_policy_throughout_is_reported_if_the_expected_one_is_passed(
    policy: Policy | None, here: Path, verify: Command
) -> None:
    """The bundle is that of another honest audit: only knowledge from elsewhere distinguishes the two."""
    old = read(here / "bundle")
    words = repeating(old.manifest.settings, policy)
    made = dataclasses.replace(old.manifest, gate=gate(old.report, policy), command=words)
    report = dataclasses.replace(old.report, command=words, gate=None)
    forge(here / "bundle", report if policy is None else report.with_gate(policy), made, policy)
    assert verify().code == 0
    ended = verify("--require", STRICT)
    assert (ended.code, "the policy of the bundle is not the one" in ended.out) == (1, True)


FILES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a sentence of the page": ("report.html", lambda page: page.replace(b"</h1>", b": approved</h1>", 1)),
    "a highlighted word of the page": ("report.html", lambda page: page.replace(b"<mark", b"<u", 1) + b"<!-- -->"),
    "a row": ("rows.jsonl", lambda rows: rows.replace(b"0.9125", b"0.9999", 1)),
    "a comment in the policy": ("policy.toml", lambda policy: b"# agreed with the regulator\n" + policy),
    "the layout of the report": ("report.json", lambda report: json.dumps(json.loads(report)).encode()),
}


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("what", FILES)
def test_a_file_that_was_rewritten_with_its_hash_is_reported(what: str, here: Path, verify: Command) -> None:
    name, change = FILES[what]
    content = change((here / "bundle" / name).read_bytes())
    assert content != (here / "bundle" / name).read_bytes()
    (here / "bundle" / name).write_bytes(content)
    manifest = json.loads((here / "bundle" / MANIFEST).read_text())
    manifest["files"][name] = hashlib.sha256(content).hexdigest()
    (here / "bundle" / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n")
    ended = verify()
    assert (ended.code, f"{name} does not match the report" in ended.out) == (1, True), ended.out + ended.err


@pytest.mark.slow
def test_an_extra_file_in_a_bundle_and_another_layout_of_the_manifest_are_reported(here: Path, verify: Command) -> None:
    (here / "bundle" / "approval.pdf").write_text("approved")
    assert "approval.pdf is not part of an audit bundle" in verify().out
    (here / "bundle" / "approval.pdf").unlink()
    manifest = json.loads((here / "bundle" / MANIFEST).read_text())
    (here / "bundle" / MANIFEST).write_text(json.dumps(manifest))
    assert "manifest.json does not match the report" in verify().out


@pytest.mark.slow
def test_points_of_a_picture_are_compared_and_rounding_is_no_difference() -> None:
    report = full_report(plots={name: points[:20] for name, points in full_report().plots.items()})
    assert report.plots
    manifest = Manifest({}, {})
    old = AuditBundle(report, manifest, None, render(report, manifest, None))
    assert discrepancies(old, report, manifest) == []
    plots = json.loads(json.dumps(report.to_dict()["plots"]))

    def moved(by: float) -> Report:
        return Report.from_dict({**report.to_dict(), "plots": _nudged(plots, by)})

    assert discrepancies(old, moved(1e-9), manifest) == []
    assert any("report, plots" in discrepancy for discrepancy in discrepancies(old, moved(0.1), manifest))


def _nudged(value: Any, by: float) -> Any:
    if isinstance(value, dict):
        return {key: _nudged(entry, by) for key, entry in value.items()}
    if isinstance(value, list):
        return [_nudged(entry, by) for entry in value]
    return value + by if isinstance(value, float) else value


def test_the_command_repeats_the_audit(here: Path) -> None:
    old = read(here / "bundle").manifest
    assert old.command == ("steadygaze", "audit", "./model", "--data", "./held.csv", "--require", STRICT)
    usual = {
        field.name: getattr(AuditConfig(model="m", data="d"), field.name) for field in dataclasses.fields(AuditConfig)
    }
    every = {
        **usual,
        "classes": ["a", "b"],
        "explainers": ["lime", "random"],
        "limit": 9,
        "drop_empty": True,
        "radius": 0.5,
    }
    words = "--limit 9 --drop-empty --radius 0.5 --classes a,b --explainer lime --explainer random"
    assert repeating(every) == ("steadygaze", "audit", "m", "--data", "d", *words.split())
    assert repeating(usual, as_policy(["accuracy>=0.123456789"]))[-2:] == ("--require", "accuracy>=0.123456789")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two keys, mine and theirs; signers allows the first as auditor@example.org."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    folder = tmp_path_factory.mktemp("keys")
    for name in ("mine", "theirs"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(command, check=True, capture_output=True)
    (folder / "signers").write_text(f"auditor@example.org {(folder / 'mine.pub').read_text()}")
    return folder


@pytest.fixture
def sign(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setattr(audit_and_verify.LoadedAudit, "run", lambda *_: full_report(plots={}))
    words = [
        "audit",
        here / "model",
        "--data",
        here / "held.csv",
        "--bundle",
        here / "bundle",
        "--device",
        "cpu",
    ]
    return lambda *more: run(capsys, *words, *more)


@pytest.mark.slow
def test_a_signed_bundle_holds_for_its_signer_alone(here: Path, keys: Path, sign: Command, verify: Command) -> None:
    assert "not signed" in verify().err
    assert "the bundle is not signed" in verify("--signers", keys / "signers").out
    assert sign("--sign", keys / "mine").code == 0
    assert "signed, but not checked" in verify().err
    signed = ("--signers", keys / "signers")
    assert "signed by auditor@example.org" in verify(*signed).err
    assert verify(*signed, "--signer", "auditor@example.org").code == 0
    assert verify(*signed, "--signer", "somebody@example.org").code == 1
    old = read(here / "bundle")
    kept = (here / "bundle" / SIGNATURE).read_bytes()
    then = "2020-01-01T00:00:00Z"
    report, manifest = (dataclasses.replace(document, date=then) for document in (old.report, old.manifest))
    forge(here / "bundle", report, manifest, None)
    (here / "bundle" / SIGNATURE).write_bytes(kept)
    assert verify().code == 0, "a rerun cannot tell when an audit was made"
    ended = verify(*signed)
    assert (ended.code, "is not a signature of this manifest" in ended.out) == (1, True), ended.out
    assert sign("--sign", keys / "theirs").code == 0
    ended = verify(*signed)
    assert (ended.code, "is by nobody that" in ended.out) == (1, True), ended.out


def test_a_signer_may_have_spaces_in_the_name(keys: Path, tmp_path: Path) -> None:
    public = (keys / "mine.pub").read_text()
    (tmp_path / "signers").write_text(f'"alice smith" {public}')
    assert bundle.check(b"{}", bundle.sign(b"{}", keys / "mine"), tmp_path / "signers") == "alice smith"


def test_a_key_that_cannot_sign_is_refused_before_the_audit(
    here: Path, keys: Path, sign: Command, verify: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_and_verify, "load_audit", lambda *_: pytest.fail("audited"))
    for key, message in ((here / "nowhere", "is not a file"), (here / "held.csv", "could not sign")):
        ended = sign("--sign", key)
        assert (ended.code, message in ended.err) == (2, True), ended.err
    assert "is not a file" in verify("--signers", here / "nowhere").err
    assert "--verify runs the audit of the bundle again" in verify("--sign", keys / "mine").err
    assert "name it with --verify" in sign("--signers", keys / "signers").err
    monkeypatch.setattr(bundle.shutil, "which", lambda _: None)
    ended = sign("--sign", keys / "mine")
    assert (ended.code, "need ssh-keygen, which is not installed" in ended.err) == (2, True)
