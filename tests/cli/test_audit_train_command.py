"""steadygaze audit --train: a model trained again, from the command line."""

import json
import math
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
from steadygaze.auditing import audit as audit_function
from steadygaze.bundle import loaded_audit
from steadygaze.bundle.manifest import Manifest, changes
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.properties.protocols.default_tokens import DEFAULT_TOKEN_MEASURES
from steadygaze.properties.protocols.interlocking import INTERLOCKING_MEASURES, interlocking
from steadygaze.properties.protocols.wiegreffe_pinter import NOT_OURS, TRAINED
from steadygaze.results.audit_config import AuditConfig, ProbeConfig, Runtime
from steadygaze.results.report import Report

QUICK = ("--sample", "2", "--device", "cpu")
EXAMPLES = [Example(text, label) for text, label in zip(TEXTS, LABELS, strict=True)]
CPU = Runtime(device="cpu")


def table(file: Path, labels=LABELS) -> Path:
    rows = "".join(f'"{text}",{label}\n' for text, label in zip(TEXTS, labels, strict=True))
    file.write_text("review,verdict\n" + rows, encoding="utf-8")
    return file


def loaded(folder: Path, data: Path, train: Path | None = None, runtime: Runtime = CPU) -> loaded_audit.LoadedAudit:
    settings = {"text": ("review",), "label": "verdict", "train": None if train is None else str(train), "sample": 2}
    return loaded_audit.load_audit(AuditConfig(model=str(folder / "model"), data=str(data), **settings), runtime)


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


@pytest.mark.slow
def test_the_command_gives_the_results_of_python_and_the_bundle_is_verified(audit, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    fitted("a2r").save(tmp_path / "model")
    ended = audit("--train", table(tmp_path / "train.csv"), "--bundle", tmp_path / "rationales")
    assert ended.code == 0, ended.err
    report = Report.from_json(tmp_path / "rationales" / "report.json")
    for finding in interlocking(
        sg.load(tmp_path / "model", device="cpu"), (TEXTS, LABELS), EXAMPLES, ProbeConfig().skewed_epochs
    ):
        row = report.find(finding.measure)
        assert (row.value, row.n, row.notes) == (float(finding.values.mean()), 24, finding.notes)
        assert re.search(f"(?m)^[✓~✗] T{re.escape(row.note[1:])}\\.", ended.out)
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
    (message,) = changes(Manifest({}, old), Manifest({}, loaded(tmp_path, held, train).data))
    assert message.startswith(f"data, train: was '{known}', is '")


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_protocols")
def test_the_progress_callback_receives_every_training_step(tmp_path):
    """One epoch of the model with a token in front, ten and one of the skewed one; and that all are done."""
    fitted("a2r").save(tmp_path / "model")
    data, calls = table(tmp_path / "train.csv"), []
    loaded(tmp_path, data, data, Runtime(device="cpu", on_progress=lambda *call: calls.append(call))).run({})
    totals = {}
    for what in ("biased training", "skewed training"):
        seen = [(done, total) for name, done, total in calls if name == what]
        totals[what] = seen[0][1]
        assert list(dict.fromkeys(seen)) == [(done, totals[what]) for done in range(totals[what] + 1)]
    assert totals["skewed training"] == 11 * totals["biased training"]


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_protocols")
def test_training_data_are_resolved_from_the_bundle_in_any_working_folder(audit, capsys, tmp_path, monkeypatch):
    """It has no folder of this machine in it; if the data have moved, the error names its option."""
    monkeypatch.setattr(audit_function, "_retrain", lambda result, *_: result)
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
    assert "steadygaze audit --train FOLDER/train.csv --verify" in " ".join(ended.err.split())
    assert commands.run(capsys, *verify, "--train", moved, "--device", "cpu").code == 0


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_protocols")
def test_unasked_it_is_not_trained(audit, tmp_path, monkeypatch):
    monkeypatch.setattr(audit_function, "_retrain", lambda *_: pytest.fail("it was trained"))
    fitted("a2r").save(tmp_path / "model")
    assert audit("--limit", 2).code == 0


@pytest.mark.slow
@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", ["attention", "rationale"])
def test_the_option_accepts_what_the_argument_accepts(name, capsys, tmp_path):
    """A classifier with attention and a rationalizer of words: the same rows from --train and from train=."""
    held, train = table(tmp_path / "held.csv"), table(tmp_path / "train.csv")
    columns = ("--data", held, "--text", "review", "--label", "verdict", "--train", train, "--json", *QUICK)
    classifier = tiny().fit(TEXTS, LABELS) if name == "attention" else fitted("rnp tokens")
    classifier.save(tmp_path / name)
    ended = commands.run(capsys, "audit", tmp_path / name, *columns)
    assert ended.code == 0, ended.err
    rows = {row["measure"]: row["value"] for row in json.loads(ended.out)["rows"]}
    report = sg.audit(sg.load(tmp_path / name, device="cpu"), TEXTS, LABELS, train=(TEXTS, LABELS), sample=2)
    for measure in (*TRAINED, *DEFAULT_TOKEN_MEASURES, *INTERLOCKING_MEASURES):
        value = report.find(measure).value
        assert rows[measure] == (None if math.isnan(value) else value), measure
        assert math.isnan(value) == (name == "rationale" or measure in INTERLOCKING_MEASURES), measure


def test_only_a_text_classifier_can_be_retrained(capsys, tmp_path):
    """The command refuses other models before it trains, the function before the audit."""
    model, data = save("bert", tmp_path / "theirs"), tmp_path / "data.csv"
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in zip(TEXTS, LABELS, strict=True)))
    ended = commands.run(capsys, "audit", model, "--data", data, "--train", data, *QUICK)
    assert ended.code == 2
    assert f"error: {NOT_OURS}, and theirs is" in ended.err
    with pytest.raises(UserError, match=str(NOT_OURS)):
        sg.audit(model, TEXTS, LABELS, train=(TEXTS, LABELS), device="cpu")


def test_data_to_train_on_need_labels_and_those_of_the_model(audit, tmp_path, monkeypatch):
    monkeypatch.setattr(loaded_audit, "run_audit", lambda *_: pytest.fail("it was too late"))
    fitted("a2r").save(tmp_path / "model")
    (tmp_path / "bare.csv").write_text("review\n" + "\n".join(TEXTS), encoding="utf-8")
    ended = audit("--train", tmp_path / "bare.csv")
    assert ended.code == 2
    assert "verdict" in ended.err
    ended = audit("--train", table(tmp_path / "other.csv", ["good"] * 12 + ["bad"] * 12))
    assert ended.code == 2
    assert (
        "the training texts have the labels ['bad', 'good'], the model has ['neg', 'pos']: pass the texts" in ended.err
    )
