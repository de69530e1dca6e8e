"""steadygaze audit from the command line: a page, evidence that can be run again, and a gate."""

import json
import shutil
from pathlib import Path

import pytest

import steadygaze as sg
from commands import Ended, run
from steadygaze.corpus.planted import planted_reviews


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained on a few reviews, and others in a file."""
    folder = tmp_path_factory.mktemp("audit")
    texts = planted_reviews(sizes=(160, 0, 0))["train"]
    clf = sg.TextClassifier("average", epochs=2, seed=0, device="cpu")
    clf.fit([e.text for e in texts[:120]], [e.label for e in texts[:120]])
    clf.save(folder / "model")
    rows = [f'"{e.text}",{e.label}' for e in texts[120:]]
    (folder / "held.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def command(capsys):
    """The command line, on the CPU."""
    return lambda *more: run(capsys, *more, "--device", "cpu")


@pytest.fixture
def audit(command, here):
    def asked(*more: str) -> Ended:
        return command("audit", here / "model", "--data", here / "held.csv", "--sample", "8", *more)

    return asked


def test_evidence_is_written_and_holds_when_run_again_wherever_it_lies(audit, command, here, tmp_path):
    ended = audit("--out", str(tmp_path / "evidence"), "--html", str(tmp_path / "page.html"), "--json")
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)
    assert {row["measure"] for row in report["rows"]} >= {"accuracy", "comprehensiveness", "jensen-shannon/noise"}
    assert "training split" in report["notes"][0]  # a file without splits is all of it
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert command("audit", "--verify", str(tmp_path / "evidence")).code == 0
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(here / "model", elsewhere / "renamed")
    shutil.copy(here / "held.csv", elsewhere / "other.csv")
    moved = (str(elsewhere / "renamed"), "--data", str(elsewhere / "other.csv"))
    again = command("audit", *moved, "--verify", str(tmp_path / "evidence"))
    assert again.code == 0, again.out + again.err


def test_another_model_is_told_from_the_one_of_the_evidence(audit, command, here, tmp_path):
    audit("--out", str(tmp_path / "evidence"))
    other = sg.load(here / "model", device="cpu")
    other.stored_.model.decoder.output.bias.data += 0.5
    other.save(tmp_path / "other")
    ended = command("audit", str(tmp_path / "other"), "--verify", str(tmp_path / "evidence"))
    assert ended.code == 1
    assert "the model: was" in ended.out


def test_a_gate_opens_and_shuts(audit, tmp_path):
    assert audit("--require", "accuracy>=0").code == 0
    shut = audit("--require", "accuracy>1", "--require", "jensen-shannon/seeds<=1")
    assert shut.code == 1
    assert "accuracy is" in shut.err
    assert "jensen-shannon/seeds" in shut.err  # what was not asked does not pass
    policy = tmp_path / "policy.toml"
    policy.write_text('[[verdict]]\nquestion = "retrained"\nanswer = ["yes"]\n')
    assert audit("--policy", str(policy)).code == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--require", "acuracy>=1"), "accuracy"),
        (("--require", "accuracy"), "a number"),
        (("--html", "."), "is a folder"),
        (("--explainer", "attentoin"), "attention"),
        (("--split", "test"), "no split 'test'"),
        (("--label", "verdict"), "verdict"),
        (("--seeds", "nowhere/at/all"), "nowhere/at/all"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_done(audit, more, message):
    ended = audit(*more)
    assert ended.code == 2, ended.err
    assert message in ended.err


def test_a_model_or_data_or_evidence_is_needed(command):
    ended = command("audit")
    assert ended.code == 2
    assert "audit needs a model and data" in ended.err
