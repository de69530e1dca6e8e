"""steadygaze audit --train: a model trained again, from the command line."""

import json
import os
import re
from functools import partial
from pathlib import Path

import pytest

import commands
import steadygaze as sg
from adapters.folders import save
from estimator.test_rationalizers import LABELS, TEXTS, fitted
from estimator.tiny import tiny
from steadygaze.audit import audit_run
from steadygaze.audit.audit_config import ProbeConfig
from steadygaze.audit.manifest import Manifest, changes
from steadygaze.audit.protocols.interlocking import interlocking
from steadygaze.core.types import Example
from steadygaze.results.report import Report

QUICK = ("--sample", "2", "--device", "cpu", "--no-card")
EXAMPLES = [Example(text, label) for text, label in zip(TEXTS, LABELS, strict=True)]
UNREAD = "no/such/file.csv"


def table(file: Path, labels=LABELS) -> Path:
    rows = "".join(f'"{text}",{label}\n' for text, label in zip(TEXTS, labels, strict=True))
    file.write_text("review,verdict\n" + rows, encoding="utf-8")
    return file


def loaded(folder: Path, data: Path, train: Path | None = None) -> audit_run.LoadedAudit:
    asked = {"text": ("review",), "label": "verdict", "train": None if train is None else str(train), "sample": 2}
    return audit_run.load(
        audit_run.AuditOrder(model=str(folder / "model"), data=str(data), **asked), audit_run.Runtime(device="cpu")
    )


@pytest.fixture
def audit(capsys, tmp_path):
    data = table(tmp_path / "held.csv")
    return partial(
        commands.run,
        capsys,
        "audit",
        tmp_path / "model",
        "--data",
        data,
        "--text",
        "review",
        "--label",
        "verdict",
        *QUICK,
    )


def test_it_says_what_python_says_and_the_evidence_holds(audit, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    fitted("a2r").save(tmp_path / "model")
    ended = audit("--train", table(tmp_path / "train.csv"), "--bundle", tmp_path / "rationales")
    assert ended.code == 0, ended.err
    report = Report.from_json(tmp_path / "rationales" / "report.json")
    for one in interlocking(
        sg.load(tmp_path / "model", device="cpu"), (TEXTS, LABELS), EXAMPLES, ProbeConfig().skewed_epochs
    ):
        row = report.find(one.measure)
        assert (row.value, row.n, row.note) == (float(one.values.mean()), 24, one.note)
        assert re.search(f"(?m)^[✓~✗] T{re.escape(one.note[1:])}\\.", ended.out)
    again = commands.run(capsys, "audit", "--verify", tmp_path / "rationales", "--device", "cpu")
    assert again.code == 0, again.out + again.err


def test_the_manifest_knows_the_texts_it_was_trained_on_by_the_fingerprint_that_the_model_has_of_them(tmp_path):
    """And that they are others now; an audit that trains nothing has none to know."""
    fitted("a2r").save(tmp_path / "model")
    known = json.loads((tmp_path / "model" / "config.json").read_text())["corpus"]
    held, train = table(tmp_path / "held.csv"), table(tmp_path / "train.csv")
    plain, old = loaded(tmp_path, held).data, loaded(tmp_path, held, train).data
    assert old == {**plain, "train": known}
    train.write_text(train.read_text().replace("film", "play", 1), encoding="utf-8")
    (said,) = changes(Manifest({}, old), Manifest({}, loaded(tmp_path, held, train).data))
    assert said.startswith(f"data, train: was '{known}', is '")


def test_whoever_watches_is_told_of_every_epoch(tmp_path):
    """One of the model with a token in front, ten and one of the skewed one; and that all are done."""
    fitted("a2r").save(tmp_path / "model")
    data, heard = table(tmp_path / "train.csv"), []
    audit_run.run(loaded(tmp_path, data, data), audit_run.Runtime(watch=lambda *told: heard.append(told)))
    for what, epochs in (("biased training, epochs", 1), ("skewed training, epochs", 11)):
        told = [(done, total) for name, done, total in heard if name == what]
        assert list(dict.fromkeys(told)) == [(done, epochs) for done in range(epochs + 1)]


def test_what_it_was_trained_on_is_found_from_the_evidence_wherever_we_work(audit, capsys, tmp_path, monkeypatch):
    """And has no folder of this machine in it; where it lies elsewhere, it is asked for by its option."""
    monkeypatch.setattr(audit_run, "retrain_protocols", lambda found, *_: found)
    fitted("a2r").save(tmp_path / "model")
    (tmp_path / "texts").mkdir()
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    train, verify = table(tmp_path / "texts" / "train.csv"), ("audit", "--verify", tmp_path / "runs" / "rationales")
    assert audit("--train", train, "--bundle", tmp_path / "runs" / "rationales").code == 0
    for file in (tmp_path / "runs" / "rationales").iterdir():
        assert os.fsencode(tmp_path) not in file.read_bytes()
    monkeypatch.chdir(tmp_path / "texts")
    assert commands.run(capsys, *verify, "--device", "cpu").code == 0
    moved = train.rename(tmp_path / "moved.csv")
    ended = commands.run(capsys, *verify, "--device", "cpu")
    assert ended.code == 2
    assert "say where it lies now, with --train DATA beside --verify" in " ".join(ended.err.split())
    assert commands.run(capsys, *verify, "--train", moved, "--device", "cpu").code == 0


def test_unasked_it_is_not_trained(audit, tmp_path, monkeypatch):
    monkeypatch.setattr(audit_run, "retrain_protocols", lambda *_: pytest.fail("it was trained"))
    fitted("a2r").save(tmp_path / "model")
    assert audit("--limit", 2).code == 0


def test_what_cannot_lock_is_refused_before_the_data_are_read(capsys, tmp_path):
    fitted("rnp tokens").save(tmp_path / "model")
    tiny().fit(TEXTS, LABELS).save(tmp_path / "plain")
    asked = ("--data", UNREAD, "--train", UNREAD, *QUICK)
    for model, why in (
        (tmp_path / "model", "the model selects words, not sentences"),
        (tmp_path / "plain", "the model is not a rationalizer"),
        (save("bert", tmp_path / "theirs"), "the model is not a rationalizer"),
    ):
        ended = commands.run(capsys, "audit", model, *asked)
        assert ended.code == 2
        assert ended.err.endswith(f"error: --train needs a rationalizer that selects sentences: {why}\n")


def test_data_to_train_on_need_labels_and_those_of_the_model(audit, tmp_path, monkeypatch):
    monkeypatch.setattr(audit_run, "run_protocols", lambda *_: pytest.fail("it was too late"))
    fitted("a2r").save(tmp_path / "model")
    (tmp_path / "bare.csv").write_text("review\n" + "\n".join(TEXTS), encoding="utf-8")
    ended = audit("--train", tmp_path / "bare.csv")
    assert ended.code == 2
    assert "verdict" in ended.err
    ended = audit("--train", table(tmp_path / "other.csv", ["good"] * 12 + ["bad"] * 12))
    assert ended.code == 2
    assert "the training texts have the labels ['bad', 'good'], the model has ['neg', 'pos']" in ended.err
