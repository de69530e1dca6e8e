"""Files and folders with seeded random damage: exit code 0, 1 or 2, no hang, nothing run, no other file changed.

There are as many cases as two suites that attackers wrote: COMMAND_LINE of data and options, FOLDERS of
models, explainers and bundles.
"""

import json
import os
import pickle
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from estimator.tiny import LABELS, TEXTS
from robustness.conftest import run
from robustness.harness import Hang, assert_clean
from robustness.mutations import classes, columns, health, labels, mutate, option
from robustness.test_foreign_networks import TRAIN as TRAIN_ENCODER
from robustness.test_foreign_networks import Bomb
from study.tiny import quicken

COMMAND_LINE, FOLDERS = 1361, 822
BLOCK = 20
"""Cases of a test."""
TEXT = "the film was good and fine"
SMALL = ["--epochs", "1", "--set", "hidden=4", "--set", "dimension=6", "--encoder", "average", "--quiet"]
PREDICT, EXPLAIN = ["predict", "{}/model", TEXT], ["explain", "{}/model", TEXT]
AUDIT = ["audit", "{}/model", "--data", "{}/films.csv", "--limit", "3", "--sample", "1", "--quiet"]


@dataclass(frozen=True)
class Target:
    """Files to damage, one in each case, and the commands that read them."""

    files: tuple[str, ...]
    commands: tuple[list[str], ...]
    damage: Callable[[Path, random.Random], None] = mutate


def reads(file: str) -> Target:
    """A table, read by predict, explain and, if it has labels, train."""
    predict = ["predict", "{}/model", "--file", f"{{}}/{file}"]
    train = ["train", f"{{}}/{file}", "--out", "{}/new", *SMALL]
    explain = ["explain", "{}/model", "--file", f"{{}}/{file}", "--out", "{}/new.csv", "--quiet"]
    return Target((file,), (predict, [*predict, "--json"], explain, *([train] if file != "films.txt" else [])))


TRAIN = ["train", "{}/films.csv", "--out", "{}/new", *SMALL]
INPUTS: dict[str, Target] = {
    **{name: reads(name) for name in ("films.csv", "films.tsv", "films.jsonl", "films.txt", "films.parquet")},
    "labels": Target(("films.csv",), reads("films.csv").commands, labels),
    "columns": Target(("films.parquet",), reads("films.parquet").commands, columns),
    "synonyms": Target(
        ("words.jsonl", "words.json", "words.csv"),
        ([*AUDIT, "--synonyms", "{file}"], [*TRAIN, "--technique", "anchored", "--set", "synonyms={file}"]),
    ),
    "policy": Target(("policy.toml",), ([*AUDIT, "--policy", "{}/policy.toml"],)),
    "eraser": Target(
        ("eraser/train.jsonl", "eraser/val.jsonl", "eraser/docs/d1"),
        (["train", "{}/eraser", "--out", "{}/new", *SMALL],),
    ),
    "vectors": Target(("glove.txt",), ([*TRAIN, "--vectors", "{}/glove.txt"],)),
    "options": Target(
        ("word.txt",),
        (
            ["predict", "{}/model", "{arg}"],
            ["explain", "{}/model", "{arg}"],
            ["explain", "{}/model", TEXT, "--explainer", "{arg}"],
            ["explain", "{}/model", "--file", "{}/films.csv", "--quiet", "--out", "{}/{arg}"],
            ["explain", "{}/model", TEXT, "--html", "{}/{arg}"],
            ["predict", "{}/{arg}", TEXT],
            ["predict", "{}/model", "--file", "{}/films.csv", "--text", "{arg}"],
            [*TRAIN, "--set", "{arg}"],
            [*TRAIN, "--label", "{arg}"],
            ["train", "{arg}", "--out", "{}/new", *SMALL],
            [*AUDIT, "--require", "{arg}"],
        ),
        option,
    ),
}
"""Data, tables, policies and words of the command line."""


def inside(folder: str, *files: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{file}" for file in files)


MODEL = inside("model", "config.json", "tokenizer.json", "model.safetensors", "training_texts.safetensors", "README.md")
MODELS: dict[str, Target] = {
    "model": Target(
        MODEL,
        (
            PREDICT,
            EXPLAIN,
            [*EXPLAIN, "--json"],
            ["evaluate", "{}/model", "--data", "{}/films.csv"],
            ["word-weights", "{}/model", "--data", "{}/films.csv"],
            ["predict", "{}/model", "--file", "{}/films.csv", "--out", "{}/new.csv"],
        ),
    ),
    "model-audit": Target(MODEL[:3], (AUDIT, ["certify", "{}/model", "--data", "{}/films.csv", "--radius", "0.1"])),
    "health": Target(MODEL[:1], (PREDICT, EXPLAIN, ["explain", "{}/model", TEXT, "--html", "{}/new.html"]), health),
    "classes": Target(MODEL[:1], (PREDICT, EXPLAIN, ["explain", "{}/model", TEXT, "--html", "{}/new.html"]), classes),
    "bert": Target(
        inside("bert", "config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"),
        (["predict", "{}/bert", TEXT], ["explain", "{}/bert", TEXT]),
    ),
    "encoder": Target(
        inside("encoder", "config.json", "tokenizer.json", "model.safetensors"),
        (TRAIN_ENCODER,),
    ),
    "explainer": Target(
        inside("explainer", "config.json", "vocabulary.json", "model.safetensors"),
        ([*EXPLAIN, "--explainer", "{}/explainer"],),
    ),
    "bundle": Target(
        inside("bundle", "manifest.json", "report.json", "report.html", "rows.jsonl", "policy.toml"),
        (["audit", "--verify", "{}/bundle"],),
    ),
}
"""Folders that others made."""

TWICE = ("films.csv", "films.jsonl", "columns", "health", "bert", "explainer")
SHARES = {**dict.fromkeys(TWICE, 2), "options": 3, "model": 4}
"""Of the cases; the others have one."""


def cases(targets: dict[str, Target], total: int) -> list[tuple[str, int, int]]:
    """Target, first seed and number of cases of each test."""
    shares = {name: SHARES.get(name, 1) for name in targets}
    ends, done = {}, 0
    for name, share in shares.items():
        done += share
        ends[name] = total * done // sum(shares.values())
    starts = dict(zip(ends, [0, *ends.values()][:-1], strict=True))
    return [
        (name, first, min(BLOCK, ends[name] - first))
        for name in targets
        for first in range(starts[name], ends[name], BLOCK)
    ]


ALL = {**INPUTS, **MODELS}
CASES = [*cases(INPUTS, COMMAND_LINE), *cases(MODELS, FOLDERS)]
FIRST = tuple({name: f"{name}-{first}" for name, first, _ in reversed(CASES)}.values())
"""Of each target, the first test; the others are exhaustive."""


def eraser(place: Path) -> None:
    """A data set with spans, in the format of ERASER."""
    (place / "eraser" / "docs").mkdir(parents=True)
    rows = []
    for i, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True)):
        word = text.split()[1]
        (place / "eraser" / "docs" / f"d{i}").write_text(text + "\n")
        span = {
            "docid": f"d{i}",
            "start_token": 1,
            "end_token": 2,
            "start_sentence": 0,
            "end_sentence": 1,
            "text": word,
        }
        rows.append({"annotation_id": f"d{i}", "classification": label, "docids": [f"d{i}"], "evidences": [[span]]})
    for part, chosen in (("train", rows), ("val", rows[10:14]), ("test", rows[10:14])):
        (place / "eraser" / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in chosen))


@pytest.fixture(scope="session")
def originals(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template with every file that a target names, a pickle beside each model, and no symbolic link."""
    place = Path(shutil.copytree(template, tmp_path_factory.mktemp("originals") / "place"))
    rows = list(zip(TEXTS, LABELS, strict=True))
    (place / "films.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in [("text", "label"), *rows]))
    (place / "films.jsonl").write_text("".join(json.dumps({"text": a, "label": b}) + "\n" for a, b in rows))
    (place / "films.txt").write_text("\n".join(TEXTS) + "\n")
    parquet.write_table(pa.table({"text": TEXTS, "label": LABELS}), place / "films.parquet")
    (place / "words.json").write_text(json.dumps({"good": ["fine"], "bad": ["dull"]}))
    (place / "words.csv").write_text("word,synonym\ngood,fine\n")
    (place / "glove.txt").write_text("".join(f"{word} {' '.join(['0.5'] * 6)}\n" for word in ("good", "bad", "film")))
    eraser(place)
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        patch.setattr("steadygaze.explainers.learned.selector_training.STEPS", 2)
        assert_clean(run(place, *AUDIT, "--policy", "{}/policy.toml", "--bundle", "{}/bundle"), {0, 1}, None)
        fit = ["fit-explainer", "{}/model", "--data", "{}/films.csv", "--k", "2", "--out", "{}/explainer", "--quiet"]
        assert_clean(run(place, *fit, "--set", "epochs=1", "--set", "hidden=4", "--set", "dimension=4"), {0}, None)
    for folder in ("model", "bert", "encoder", "explainer"):
        (place / folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(Path("exploded"))))
    (place / "word.txt").write_text("good")
    return place


def outcome(target: Target, seed: int, originals: Path, place: Path) -> str:
    """The exit code of a case; AssertionError or Hang says what is wrong."""
    dice = random.Random(seed)
    shutil.copytree(originals, place, copy_function=os.link)  # a damaged file is written anew
    file = place / dice.choice(target.files)
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data)
    command = dice.choice(target.commands)
    target.damage(file, dice)
    word = os.fsdecode(file.read_bytes()) if "{arg}" in " ".join(command) else ""
    words = [part.replace("{file}", str(file)).replace("{}", str(place)).replace("{arg}", word) for part in command]
    result = run(place, *words, limit=30)
    assert_clean(result, codes={0, 1, 2}, written=None, one_line=False)
    kept = [name for name in result.changes if not name.startswith("new") and (originals / name).is_file()]
    assert not kept, f"{words}: changed {kept}"
    assert not (place / "exploded").exists(), words
    assert not Path("exploded").exists(), words
    return str(result.code)


@pytest.mark.sweep(keep=0, slow=FIRST)
@pytest.mark.filterwarnings("ignore")  # of small data
@pytest.mark.parametrize(("name", "first", "number"), CASES, ids=[f"{name}-{first}" for name, first, _ in CASES])
def test_damaged_files_are_refused_or_read(
    name: str, first: int, number: int, originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quicken(monkeypatch)
    codes: Counter[str] = Counter()
    failures = []
    for seed in range(first, first + number):
        place = tmp_path / "place"
        try:
            codes[outcome(ALL[name], seed, originals, place)] += 1
        except (Exception, Hang) as error:
            failures.append(f"{name}, seed {seed}: {type(error).__name__}: {error!s:.1500}")
        shutil.rmtree(place, ignore_errors=True)
    print(f"{name}: {dict(codes)}")
    assert not failures, "\n".join(failures)


READ = [name for name in ALL if name not in ("options", "vectors")]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", READ)
def test_the_same_files_without_damage_are_read(
    name: str, originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that refuses every file would show nothing."""
    quicken(monkeypatch)
    for number, (file, command) in enumerate(product(ALL[name].files, ALL[name].commands)):
        undamaged = Target((file,), (command,), lambda path, dice: None)
        assert outcome(undamaged, 0, originals, tmp_path / str(number)) in ("0", "1"), command


def test_the_number_of_cases_is_that_of_the_suites_of_attackers() -> None:
    assert sum(number for _, _, number in CASES) == COMMAND_LINE + FOLDERS
