"""Hostile headers, labels, file names, settings and policies: nothing of them controls the terminal or floods it."""

import json
from pathlib import Path

import pytest

from robustness.harness import assert_clean, assert_printable, run_case
from robustness.small import ROWS, Small, write_csv

HOSTILE = {
    "escape": "\x1b]0;title\x07\x1b[31mred",
    "c1": "\x9b31mred\x85\x7f",
    "bidi": "\u202elabel\u2066\u200fx",
    "lines": "one\ntwo\r\u2028three",
    "markup": "[bold red]x[/bold red] [link=https://example.org]y[/link] :smile:",
    "long": "x" * 100_000,
    "null": "a\x00b",
}
COMMANDS = {
    "text column": ["predict", "MODEL", "--file", "DATA", "--text", "HOSTILE"],
    "label column": ["train", "DATA", "--out", "OUT", "--label", "HOSTILE"],
    "header": ["train", "HEADER", "--out", "OUT"],
    "audited labels": ["audit", "MODEL", "--data", "LABELED"],
    "file": ["predict", "MODEL", "--file", "HOSTILE.csv"],
    "data": ["train", "HOSTILE", "--out", "OUT"],
    "model": ["predict", "HOSTILE", "a text"],
    "audited model": ["audit", "HOSTILE", "--data", "DATA"],
    "version": ["predict", "VERSIONED", "a text"],
    "encoder": ["train", "DATA", "--out", "OUT", "--encoder", "HOSTILE"],
    "technique": ["train", "DATA", "--out", "OUT", "--technique", "HOSTILE"],
    "setting": ["train", "DATA", "--out", "OUT", "--set", "HOSTILE=1"],
    "setting's value": ["train", "DATA", "--out", "OUT", "--set", "hidden=HOSTILE"],
    "vectors": ["train", "DATA", "--out", "OUT", "--vectors", "HOSTILE", "--quiet"],
    "device": ["predict", "MODEL", "a text", "--device", "HOSTILE"],
    "target": ["explain", "MODEL", "a text", "--explainer", "gradient", "--target", "HOSTILE"],
    "explainer": ["explain", "MODEL", "a text", "--explainer", "HOSTILE"],
    "granularity": ["explain", "MODEL", "a text", "--granularity", "HOSTILE"],
    "norm": ["certify", "MODEL", "--data", "DATA", "--radius", "1", "--norm", "HOSTILE"],
    "split": ["audit", "MODEL", "--data", "DATA", "--split", "HOSTILE"],
    "classes": ["audit", "MODEL", "--data", "DATA", "--classes", "good,HOSTILE"],
    "rule": ["audit", "MODEL", "--data", "DATA", "--require", "HOSTILE<=1"],
    "policy": ["audit", "MODEL", "--data", "DATA", "--policy", "POLICY"],
    "synonyms": ["audit", "MODEL", "--data", "DATA", "--synonyms", "HOSTILE"],
    "learned explainer": ["fit-explainer", "MODEL", "--data", "DATA", "--out", "OUT", "--explainer", "HOSTILE"],
    "compared techniques": ["compare", "DATA", "--techniques", "vanilla,HOSTILE", "--out", "OUT"],
    "setting for one": ["compare", "DATA", "--techniques", "vanilla", "--out", "OUT", "--set-for", "HOSTILE"],
    "kind": ["list", "HOSTILE"],
    "command": ["HOSTILE"],
    "option": ["predict", "--HOSTILE"],
}


@pytest.mark.sweep
@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_error_about_a_hostile_name_is_one_short_printable_line(
    made: Small, tmp_path: Path, command: str, hostile: str
) -> None:
    name = HOSTILE[hostile]
    files = {"MODEL": made.model, "DATA": made.data, "OUT": tmp_path / "out", **_files(tmp_path, made, command, name)}
    arguments = [str(files.get(word, word.replace("HOSTILE", name))) for word in COMMANDS[command]]
    result = run_case(arguments, watch=[tmp_path, made.model.parent])
    assert_clean(result, codes=(2,))
    assert not result.out


def _files(folder: Path, made: Small, command: str, name: str) -> dict[str, Path]:
    """The files of one case that hold the hostile name."""
    if command == "header":
        return {"HEADER": write_csv(folder / "header.csv", ROWS, ("text", name))}
    if command == "audited labels":
        return {"LABELED": write_csv(folder / "labeled.csv", [(text, name) for text, _ in ROWS])}
    if command == "policy":
        (folder / "policy.toml").write_text(f"[limits]\n{json.dumps(name)} = 1\n", encoding="utf-8")
        return {"POLICY": folder / "policy.toml"}
    if command == "version":
        (folder / "versioned").mkdir()
        for file in made.model.iterdir():
            (folder / "versioned" / file.name).write_bytes(file.read_bytes())
        config = json.loads((made.model / "config.json").read_text())
        (folder / "versioned" / "config.json").write_text(json.dumps({**config, "schema": 99, "steadygaze": name}))
        return {"VERSIONED": folder / "versioned"}
    return {}


@pytest.fixture(scope="module", params=["escape", "c1", "bidi", "lines", "markup", "long"])
def labeled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """A label, a model that was trained with it by the command, and its data."""
    folder, name = tmp_path_factory.mktemp("labeled"), HOSTILE[request.param]
    data = write_csv(folder / "data.csv", [(text, {"good": name, "bad": "b"}[label]) for text, label in ROWS])
    quick = ["--encoder", "average", "--epochs", "1", "--set", "dimension=4", "--device", "cpu"]
    trained = run_case(["train", data, "--out", folder / "model", *quick])
    assert_clean(trained, codes=(0,), written={*trained.changes})
    assert_printable(trained.out)
    return name, folder / "model", data


@pytest.mark.sweep
@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "MODEL", "--file", "DATA"],
        ["explain", "MODEL", "--file", "DATA"],
        ["explain", "MODEL", "a film", "--explainer", "leave-one-out", "--target", "NAME"],
        ["certify", "MODEL", "--data", "DATA", "--radius", "0.01"],
        ["audit", "MODEL", "--data", "DATA", "--sample", "2", "--limit", "4", "-v"],
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[4:5]),
)
def test_a_result_that_shows_a_hostile_label_is_printable(
    labeled: tuple[str, Path, Path], arguments: list[str]
) -> None:
    name, model, data = labeled
    values = {"MODEL": model, "DATA": data, "NAME": name}
    result = run_case([values.get(word, word) for word in arguments], watch=[data.parent])
    assert_clean(result, codes=(0,))
    for line in result.out.replace("\t", " ").split("\n"):
        assert line.isprintable(), ascii(line)
    assert len(result.out) < 50_000


@pytest.mark.sweep
@pytest.mark.parametrize("command", ["predict", "explain"])
def test_json_escapes_control_characters_and_gives_back_the_text(labeled: tuple[str, Path, Path], command: str) -> None:
    name, model, _ = labeled
    result = run_case([command, model, f"a film {name}", "--json"])
    assert_clean(result, codes=(0,))
    assert result.out.removesuffix("\n").isprintable()
    record = json.loads(result.out)
    assert record["text"] == f"a film {name}"
    assert name in record["probabilities"]
