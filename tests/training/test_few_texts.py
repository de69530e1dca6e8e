"""Few texts: they train for enough epochs to be learned; if the model learns nothing, a warning reports it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import run
from steadygaze.core.errors import HealthWarning
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.training.optimizers import EPOCHS, STEPS, Training
from steadygaze.training.technique_loop import constant_label
from training.toys import TOYS, Listener, corpus, interrupt

FILLING = ["the", "a", "was", "and", "it", "that", "of", "we", "saw", "very", "film", "plot", "cast", "music", "story"]
DECISIVE_WORDS = {"good": ["superb", "lovely", "witty", "fine"], "bad": ["dull", "awful", "poor", "weak"]}
SMALL = {"hidden": 16, "dimension": 16, "learning_rate": 0.003}


def easy(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """One word of each text decides its label; the others are drawn from the same few for both."""
    random, texts, labels = np.random.default_rng(seed), [], []
    for row in range(count):
        label = ("good", "bad")[row % 2]
        words = random.choice(FILLING, random.integers(6, 14)).tolist()
        words[random.integers(len(words))] = random.choice(DECISIVE_WORDS[label])
        texts.append(" ".join(words))
        labels.append(label)
    return texts, labels


def write(file: Path, texts: list[str], labels: list[str]) -> Path:
    file.write_text("text,label\n" + "".join(f"{t},{y}\n" for t, y in zip(texts, labels, strict=True)))
    return file


@pytest.mark.slow
def test_a_first_file_of_150_rows_is_learned_with_the_settings_that_nobody_chose(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """135 texts in batches of 8 are 17 steps an epoch: 18 epochs make 300."""
    data = write(tmp_path / "first.csv", *easy(150))
    ended = run(capsys, "train", data, "--out", tmp_path / "m", "--encoder", "average", "--device", "cpu")
    assert ended.code == 0
    assert "135 texts are 17 steps per epoch: training runs up to 18 epochs instead of 8" in " ".join(ended.err.split())
    assert "same label" not in ended.out + ended.err
    texts, labels = easy(200, seed=1)
    new = write(tmp_path / "new.csv", texts, labels)
    message = [
        json.loads(line)["label"]
        for line in run(capsys, "predict", tmp_path / "m", "--file", new, "--json").out.split("\n")
        if line
    ]
    assert np.mean(np.asarray(message) == np.asarray(labels)) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["bilstm", "cnn"])
def test_other_encoders_learn_it_too(encoder: str) -> None:
    clf = TextClassifier(encoder, settings=SMALL, device="cpu", verbose=False).fit(*easy(150))
    assert clf.score(*easy(200, seed=1)) > 0.9


@pytest.mark.parametrize(
    ("steps", "epochs", "patience"),
    [(1, 300, 113), (5, 60, 23), (37, 9, 4), (38, EPOCHS, 3), (1000, EPOCHS, 3)],
)
def test_where_8_epochs_make_too_few_steps_there_are_more_and_patience_grows_alike(
    steps: int, epochs: int, patience: int
) -> None:
    """3 · 300 / 8 = 112.5; 3 · 60 / 8 = 22.5; 3 · 9 / 8 = 3.4: each rounded up.  From 38 steps on nothing changes."""
    training = Training()
    assert (training.longest(steps), training.patient(steps)) == (epochs, patience)
    assert training.longest(steps) * steps >= STEPS


def test_a_requested_number_of_epochs_is_used() -> None:
    training = Training(epochs=4, patience=2)
    assert (training.longest(1), training.patient(1)) == (4, 2)


@pytest.mark.parametrize(("epochs", "announced"), [(2, []), (None, ["44 texts are 1 step per epoch"])])
def test_more_epochs_for_few_texts_are_announced(epochs: int | None, announced: list[str]) -> None:
    watcher = Listener(epochs=1)
    interrupt(watcher, TOYS["vanilla"], data=corpus(), batch_size=44, epochs=epochs)
    assert [message.partition(":")[0] for message in watcher.messages] == announced


@pytest.mark.parametrize(
    ("predicted", "label", "expected"),
    [([1, 1, 1], [0, 1, 1], 1), ([1, 0, 1], [0, 1, 1], None), ([1, 1], [1, 1], None), ([0], [0], None)],
)
def test_one_label_for_all_is_noticed_where_there_are_several(
    predicted: list[int], label: list[int], expected: int | None
) -> None:
    assert constant_label(np.array(predicted), np.array(label)) == expected


@pytest.fixture
def hopeless(tmp_path: Path) -> Path:
    """Every text is the same."""
    return write(tmp_path / "same.csv", ["a text like any other"] * 40, ["good", "bad"] * 20)


def test_a_model_with_a_constant_label_is_reported_on_the_command_line(
    capsys: pytest.CaptureFixture[str], hopeless: Path, tmp_path: Path
) -> None:
    command: list[Any] = ["train", hopeless, "--epochs", "1", "--set", "hidden=4", "--device", "cpu"]
    ended = run(capsys, *command, "--out", tmp_path / "m")
    assert ended.code == 0
    problem = json.loads(run(capsys, *command, "--out", tmp_path / "n", "--json").out)["health"][0]
    assert problem["kind"] == "constant-label"
    assert problem["label"] in ("good", "bad")
    assert problem["message"] in ended.err.splitlines()[-2:][0]
    assert (ended.out + ended.err).count(problem["message"]) == 1


def test_fit_warns_if_the_model_predicts_one_label_for_every_text() -> None:
    texts, labels = ["a text like any other"] * 40, ["good", "bad"] * 20
    with pytest.warns(HealthWarning, match="predicts the label '(good|bad)' for every validation text"):
        clf = TextClassifier("average", epochs=1, settings=SMALL, device="cpu", verbose=False).fit(texts, labels)
    assert clf.health.problems[0].label in ("good", "bad")
