"""The test part of `train`: held out before training, stratified, measured at the end, saved with the model."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import accuracy_score, f1_score

import commands
import steadygaze as sg
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.corpus import Corpus
from steadygaze.estimator.held_out_test import hold_out_test

LABELS = ["good"] * 30 + ["bad"] * 15 + ["rare"]
TEXTS = [f"{label} film named own{row}" for row, label in enumerate(LABELS)]
OPTIONS = ["--set", "min_df=1", "--encoder", "average", "--epochs", "3", "--set", "hidden=4", "--device", "cpu"]


def corpus(**splits: list[Example]) -> Corpus:
    train = [Example(text=text, label=label) for text, label in zip(TEXTS, LABELS, strict=True)]
    return Corpus("films", {"train": train, **splits})


def texts(examples: list[Example]) -> list[str]:
    return [example.text for example in examples]


def test_the_parts_are_disjoint_stratified_and_the_same_each_time():
    parts = hold_out_test(corpus(), 0.2).splits
    assert sorted(texts(parts["train"]) + texts(parts["test"])) == sorted(TEXTS)
    assert Counter(example.label for example in parts["test"]) == {"good": 7, "bad": 3}  # 10 of 46, rounded up
    assert hold_out_test(corpus(), 0.2).splits == parts
    assert len(hold_out_test(corpus(), 0.5).splits["test"]) == 23


def test_copies_of_a_text_are_in_one_part():
    """Up to case and spaces, as the count of training texts in an audit."""
    copied = corpus(
        train=[*corpus().training, *(Example(text=f" {e.text.upper()}", label=e.label) for e in corpus().training)]
    )
    parts = hold_out_test(copied, 0.2).splits
    assert {text.lower().strip() for text in texts(parts["test"])} == set(
        texts(hold_out_test(corpus(), 0.2).splits["test"])
    )
    assert not {t.lower().strip() for t in texts(parts["train"])} & {t.lower().strip() for t in texts(parts["test"])}
    assert len(parts["test"]) == 20


def test_a_corpus_with_a_test_split_or_one_text_per_class_is_refused():
    with pytest.raises(UserError, match="films already has a test split"):
        hold_out_test(corpus(test=corpus().training), 0.2)
    two = Corpus("two", {"train": [Example(text="a", label="x"), Example(text="b", label="y")]})
    with pytest.raises(UserError, match=r"two has too few texts for a test part \(2\)"):
        hold_out_test(two, 0.2)
    with pytest.raises(UserError, match="has no split to train on, only validation: add a split named train"):
        hold_out_test(Corpus("c", {"validation": []}), 0.2)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("data") / "films.csv"
    file.write_text("text,label\n" + "".join(f"{t},{y}\n" for t, y in zip(TEXTS, LABELS, strict=True)))
    return file


def config(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text())


def test_the_scores_are_those_of_the_saved_model_on_texts_that_training_did_not_read(capsys, data, tmp_path):
    command = ["train", data, "--out", tmp_path / "model", *OPTIONS, "--test-share", "0.2"]
    ended = commands.run(capsys, *command)
    assert ended.code == 0, ended.err
    test = hold_out_test(corpus(), 0.2).splits["test"]
    model, labels = sg.load(tmp_path / "model"), [example.label for example in test]
    predicted = model.predict(texts(test))
    scores = config(tmp_path / "model")["test_scores"]
    assert scores["accuracy"]["value"] == pytest.approx(accuracy_score(labels, predicted))
    assert scores["macro-f1"]["value"] == pytest.approx(f1_score(labels, predicted, average="macro"))
    evaluated = {row.measure: row for row in sg.evaluate(model, texts(test), labels)}
    for measure, score in scores.items():
        low, high = score["interval"]
        assert (low, high) == evaluated[measure].interval
        assert score["n"] == 10
    assert not {text.split()[-1] for text in texts(test)} & set(model.stored_.tokenizer.vocabulary)
    card = (tmp_path / "model" / "README.md").read_text()
    for page in (ended.out.replace(": ", " | "), card):
        assert f"test accuracy | {scores['accuracy']['value']:.3f} (95 % interval" in page
        assert "selection score" not in page
    assert commands.run(capsys, *command, "--resume", "--json").code == 0  # finished: the scores are kept
    assert config(tmp_path / "model")["test_scores"] == scores
    assert "was trained with another corpus" in commands.refused(capsys, *command[:-1], "0.3", "--resume")


def test_without_a_test_part_the_validation_score_is_a_selection_score_unless_the_last_epoch_is_kept(
    capsys, data, tmp_path
):
    ended = commands.run(capsys, "train", data, "--out", tmp_path / "best", *OPTIONS)
    assert "selection score (validation macro-F1): " in ended.out
    assert "add --test-share 0.2" in ended.err
    ended = commands.run(capsys, "train", data, "--out", tmp_path / "last", *OPTIONS, "--set", "select=last")
    assert "\nvalidation macro-F1: " in ended.out
    assert "selection" not in ended.out + ended.err
    assert config(tmp_path / "last")["test_scores"] == {}


@pytest.mark.parametrize("share", ["0", "1", "-0.2", "nan", "many"])
def test_a_share_outside_its_range_is_refused(capsys, data, tmp_path, share):
    command = ["train", data, "--out", tmp_path / "model", *OPTIONS, "--test-share", share]
    assert "--test-share" in commands.refused(capsys, *command)
    assert not (tmp_path / "model").exists()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(("suffix", "drop"), [(".csv", ()), (".jsonl", ("--drop-empty",))])
def test_the_test_part_is_written_with_all_columns_and_has_no_training_texts(capsys, tmp_path, suffix, drop):
    rows = [
        {"id": str(i), "text": text, "label": label} for i, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))
    ]
    absent = [{"id": "empty", "text": "", "label": "good"}, {"id": "unlabeled", "text": "a film", "label": None}]
    rows = [*rows[:5], *(absent if drop else []), *rows[5:]]
    file, out = tmp_path / "films.jsonl", tmp_path / f"test{suffix}"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["train", file, "--out", tmp_path / "model", *OPTIONS, *drop, "--test-out", out]
    assert "add --test-share 0.2" in commands.refused(capsys, *command)
    ended = commands.run(capsys, *command, "--test-share", "0.2")
    assert ended.code == 0, ended.err
    assert f"steadygaze audit {tmp_path / 'model'} --data {out} --html audit.html" in ended.err
    assert ("; empty text: 1 left out; no label: 1 left out" in ended.err) == bool(drop)
    lines = out.read_text().splitlines()
    written = list(csv.DictReader(lines)) if suffix == ".csv" else list(map(json.loads, lines))
    expected = set(texts(hold_out_test(corpus(), 0.2).splits["test"]))
    assert written == [row for row in rows if row["text"] in expected]
    model = sg.load(tmp_path / "model")
    evaluated = sg.evaluate(model, [row["text"] for row in written], [row["label"] for row in written])
    assert (evaluated.training_texts, evaluated.overlap_warning) == (0, None)
    ended = commands.run(capsys, "evaluate", tmp_path / "model", "--data", file, "--drop-empty")
    assert "36 of 46 texts were training texts" in ended.out
    assert "--replace" in commands.refused(capsys, *command, "--test-share", "0.2", "--resume")
    assert commands.run(capsys, *command, "--test-share", "0.2", "--replace").code == 0


def test_only_rows_of_a_file_of_a_known_format_can_be_written(capsys, data, tmp_path):
    options = ["--out", tmp_path / "model", *OPTIONS, "--test-share", "0.2", "--test-out"]
    message = commands.refused(capsys, "train", "planted-reviews", *options, tmp_path / "test.csv")
    assert "planted-reviews is not such a file" in message
    assert "unknown format '.xlsx'" in commands.refused(capsys, "train", data, *options, tmp_path / "test.xlsx")
    assert not (tmp_path / "model").exists()
