"""Labels before training: what the commands list, refuse and accept."""

import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import commands
import steadygaze as sg
from commands import Ended
from steadygaze.core.errors import LabelWarning

Run = Callable[..., Ended]
TINY = ("--encoder", "average", "--epochs", "1", "--set", "hidden=4", "--set", "dimension=6")
TEXTS = [f"a {word} film {number}" for number in range(12) for word in ("fine", "awful")]
LABELS = ["good", "terrible"] * 12
DIRTY = ["good", "Good", "terrible", "terrible ", "\u00a0terrible\u200b", "terribel", *LABELS[:-6]]
"""Three spellings of two classes; white space alone makes no class."""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return partial(commands.run, capsys)


def write(path: Path, labels: list[str]) -> Path:
    rows = [json.dumps({"text": text, "label": label}) + "\n" for text, label in zip(TEXTS, labels, strict=True)]
    path.write_text("".join(rows))
    return path


COUNTS = "4 classes: 'terrible' 12, 'good' 10, 'Good' 1, 'terribel' 1\n"
RARE = "2 classes have fewer than 5 training texts, too few to learn: 'Good' (1 text), 'terribel' (1 text)\n"
NEAR = (
    "some labels are probably one class in several spellings: 'terrible' (12 texts), 'terribel' (1 text); "
    "'good' (10 texts), 'Good' (1 text)"
)


@pytest.mark.parametrize(
    "command",
    [
        ("train",),
        ("compare", "--techniques", "vanilla,word-at", "--seeds", "1"),
        ("tune", "--technique", "vanilla", "--trials", "1"),
    ],
    ids=lambda words: words[0],
)
def test_near_duplicate_labels_are_listed_with_counts_and_refused_before_anything_is_written(
    command: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    data = write(tmp_path / "dirty.jsonl", DIRTY)
    name, *words = command
    ended = run(name, data, *words, "--out", tmp_path / "out", *TINY)
    assert (ended.code, ended.out) == (2, "")
    assert COUNTS in ended.err
    assert RARE in ended.err
    assert f"{NEAR}.  Correct them in the data, or add --keep-labels to train on them as they are" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["dirty.jsonl"]


@pytest.mark.slow
def test_kept_labels_are_trained_on_as_they_are_and_labels_with_white_space_agree_in_training_and_evaluation(
    run: Run, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    trained = run("train", write(tmp_path / "dirty.jsonl", DIRTY), "--keep-labels", "--out", model, *TINY)
    assert trained.code == 0, trained.err
    assert f"{NEAR}.  Each is a class of its own\n" in trained.err
    assert json.loads((model / "config.json").read_text())["classes"] == ["Good", "good", "terribel", "terrible"]
    spaced = write(tmp_path / "spaced.jsonl", [f" {label}\u00a0" for label in LABELS])
    evaluated = run("evaluate", model, "--data", spaced, "--json")
    assert evaluated.code == 0, evaluated.err


def test_clean_labels_are_counted_and_nothing_else_is_said(run: Run, tmp_path: Path) -> None:
    data = write(tmp_path / "clean.csv.jsonl", LABELS)
    ended = run("train", data, "--out", tmp_path / "model", *TINY)
    assert "2 classes: 'good' 12, 'terrible' 12\n" in ended.err
    assert "fewer than 5" not in ended.err
    assert "spellings" not in ended.err


def fit_warnings(labels: list[str]) -> list[str]:
    clf = sg.TextClassifier("average", epochs=1, settings={"hidden": 4, "dimension": 6}, verbose=0, device="cpu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(TEXTS, labels)
    return [str(warning.message) for warning in caught if warning.category is LabelWarning]


def test_fit_gives_one_warning_about_labels_and_trains() -> None:
    (warning,) = fit_warnings(DIRTY)
    assert warning == (
        f"{NEAR}.  Each is a class of its own.  {RARE.strip()}.  the white space around 2 labels was removed"
    )
    assert fit_warnings(LABELS) == []


def test_cells_of_a_csv_with_spaces_are_numbers_if_all_are(tmp_path: Path) -> None:
    (tmp_path / "numbers.csv").write_text("text,label\na film,1\nanother film, 0\nthe third,\u00a01 \n")
    assert sg.load_corpus(tmp_path / "numbers.csv").label_names == [0, 1]


def test_a_label_of_invisible_characters_is_missing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("text,label\na film,good\nanother film,\u200b \n")
    ended = run("train", tmp_path / "empty.csv", "--out", tmp_path / "model", *TINY)
    assert (ended.code, "empty.csv, row 3 (the header is row 1), column 'label' is empty" in ended.err) == (2, True)
