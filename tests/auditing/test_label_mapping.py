"""Labels of the data and classes of the model: `--classes` orders them, and a wrong order is reported."""

import json
from pathlib import Path

import numpy as np
import pytest

import steadygaze as sg
from adapters.folders import WORDS, save
from commands import run
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.models import inference
from steadygaze.results.report import Report

FEW = {"sample": 2}
WRONG = "the labels may be mapped to wrong classes; check --classes"


def mentions_hate(texts: list[str]) -> np.ndarray:
    """Outputs (hate, normal)."""
    hate = np.array(["bad" in text for text in texts])
    return np.where(hate[:, None], [0.9, 0.1], [0.2, 0.8])


TEXTS = ["a bad film", "the bad cast", "bad and not good", "a good film", "the cast was good"]
HATE_IS_1 = [1, 1, 1, 0, 0]


def accuracy(report: Report) -> float:
    result = report.find("accuracy")
    assert result is not None
    return float(result.value)


@pytest.mark.sweep(keep=2)
@pytest.mark.usefixtures("fewer_protocols")
@pytest.mark.parametrize("labels", [HATE_IS_1, list(map(str, HATE_IS_1)), np.array(HATE_IS_1, float)], ids=repr)
@pytest.mark.parametrize("classes", [[1, 0], ["1", "0"]], ids=repr)
def test_whole_number_labels_follow_the_declared_classes(labels, classes):
    report = sg.audit(mentions_hate, TEXTS, labels, classes=classes, **FEW)
    assert accuracy(report) == 1.0
    assert not any(WRONG in str(note) for note in report.notes)


def test_accuracy_below_the_commonest_label_is_reported_with_the_mapping():
    report = sg.audit(mentions_hate, TEXTS, HATE_IS_1, classes=["hate", "normal"], **FEW)
    assert accuracy(report) == 0.0
    (note,) = [note for note in map(str, report.notes) if WRONG in note]
    assert note.startswith("Accuracy 0.000 is below 0.600, the share of the most frequent label")
    assert "label 0 is class 'hate', label 1 is class 'normal'" in note


@pytest.mark.sweep(keep=1)
@pytest.mark.usefixtures("fewer_protocols")
@pytest.mark.parametrize(
    ("labels", "classes", "option"),
    [
        (HATE_IS_1, ["hate", "normal"], "1,0"),  # by position: other names of the same order would change nothing
        (["hate"] * 3 + ["normal"] * 2, ["normal", "hate"], "hate,normal"),
    ],
    ids=["by position", "by name"],
)
def test_exchanged_classes_are_reported_with_the_option_that_mends_them(labels, classes, option):
    report = sg.audit(mentions_hate, TEXTS, labels, classes=classes, **FEW)
    assert any(str(note).endswith(f"; with --classes {option} it would be 1.000.") for note in report.notes)
    mended = sg.audit(mentions_hate, TEXTS, labels, classes=option.split(","), **FEW)
    assert accuracy(mended) == 1.0
    assert not any("--classes" in str(note) for note in mended.notes)


def test_accuracy_equal_to_the_share_of_the_commonest_label_is_not_reported():
    always = sg.audit(lambda texts: [[0.2, 0.8]] * len(texts), TEXTS, HATE_IS_1, classes=[0, 1], **FEW)
    assert accuracy(always) == 0.6
    assert not any(WRONG in str(note) for note in always.notes)


@pytest.fixture(scope="module")
def hugging_face(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A classifier {0: hate, 1: normal}, and texts whose label is 1 where it predicts hate."""
    folder = tmp_path_factory.mktemp("mapping")
    names = {"num_labels": 2, "id2label": {0: "hate", 1: "normal"}, "label2id": {"hate": 0, "normal": 1}}
    model = save("bert", folder / "model", **names)
    adapter = as_adapter(model, device="cpu").for_pairs(False)
    texts = [f"{word} {other}" for word in WORDS[:9] for other in ("good", "film")]
    outputs = inference.logits(adapter.model, adapter.data(adapter.tokens.place(texts), None)).argmax(-1).tolist()
    assert set(outputs) == {0, 1}
    rows = [f"{text},{1 - output}" for text, output in zip(texts, outputs, strict=True)]
    (folder / "data.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    return model, folder / "data.csv"


@pytest.mark.sweep(keep=1)
@pytest.mark.usefixtures("fewer_protocols")
@pytest.mark.parametrize(
    ("more", "accuracy"), [([], 0.0), (["--classes", "1, 0"], 1.0)], ids=["positions", "--classes"]
)
def test_the_command_maps_whole_number_labels_of_a_file_by_its_classes(capsys, hugging_face, more, accuracy):
    model, data = hugging_face
    ended = run(capsys, "audit", model, "--data", data, "--sample", "2", "--device", "cpu", "--json", *more)
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)
    assert [row["value"] for row in report["rows"] if row["measure"] == "accuracy"] == [accuracy]
    assert any(WRONG in note["message"] for note in report["notes"]) == (accuracy == 0.0)


def test_an_empty_name_among_the_classes_is_refused(capsys, hugging_face):
    model, data = hugging_face
    for classes in ("", "1,", "1,0,2"):
        ended = run(capsys, "audit", model, "--data", data, "--classes", classes, "--device", "cpu")
        assert ended.code == 2, classes
        assert "class" in ended.err


@pytest.mark.slow
def test_evaluate_prints_the_command_with_exchanged_classes(capsys, hugging_face):
    model, data = hugging_face
    words = ["evaluate", str(model), "--data", str(data), "--device", "cpu"]
    ended = run(capsys, *words)
    assert "may be in the wrong order; with --classes 1,0 it would be 1.000\n" in ended.err
    assert f"\ntry:  steadygaze evaluate {model} --data {data} --classes 1,0\n" in ended.err
    assert "try:" not in run(capsys, *words, "--classes", "1,0").err


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_protocols")
def test_an_audit_prints_the_command_with_exchanged_classes(capsys, hugging_face, monkeypatch):
    _, data = hugging_face
    monkeypatch.chdir(data.parent)
    words = ["audit", "model", "--data", "data.csv", "--sample", "2", "--device", "cpu"]
    (line,) = [line for line in run(capsys, *words).err.splitlines() if line.startswith("try:")]
    assert line.startswith("try:  steadygaze audit ./model --data ./data.csv")
    assert "--classes 1,0" in line
    mended = run(capsys, *words, "--classes", "1,0")
    assert (mended.code, "try:" in mended.err) == (0, False), mended.err
