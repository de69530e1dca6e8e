"""--out of predict and explain: tables of results in parts, which an interrupted command continues."""

import csv
import json
import os
import time
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import commands
import kills
import steadygaze as sg
from steadygaze.adapters import bulk
from steadygaze.cli import main
from steadygaze.cli.explain_command import _explainer_digest
from steadygaze.data import user_files
from steadygaze.results.explanation import Explanation

MODEL = """
import os, time
import numpy as np
from pathlib import Path

def predict(texts):
    if "CALLS" in os.environ:
        time.sleep(float(os.environ.get("PAUSE", 0)))
        with open(os.environ["CALLS"], "a") as file:
            file.writelines(f"{text}\\n" for text in texts)
    good = np.array([len(text) % 2 for text in texts])
    return np.stack([np.where(good, 0.1, 0.75), np.where(good, 0.9, 0.25)], -1)
"""
ROWS = 23


@pytest.fixture
def run(capsys):
    return partial(commands.run, capsys)


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of two chunks of three rows."""
    monkeypatch.setattr(user_files, "CHUNK", 3)
    monkeypatch.setattr(bulk, "CHUNKS", 2)


@pytest.fixture
def model(tmp_path, monkeypatch):
    (tmp_path / "length_model.py").write_text(MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return "length_model:predict", "--classes", "even,odd"


def table(rows: int = ROWS) -> pd.DataFrame:
    return pd.DataFrame({"id": range(rows), "text": [f"word{i % 7} {'x' * (i % 5)} film" for i in range(rows)]})


def write(path: Path, frame: pd.DataFrame) -> None:
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False)


def read(path: Path) -> list[dict]:
    """Rows as JSON values."""
    if path.suffix == ".parquet":
        return json.loads(pd.read_parquet(path).to_json(orient="records", double_precision=15))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    frame = pd.read_csv(path)
    return [
        {name: json.loads(cell) if name in ("words", "spans", "weights") else cell for name, cell in row.items()}
        for row in frame.to_dict("records")
    ]


@pytest.mark.sweep(keep=("jsonl",))
@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_explanations_are_those_of_explain_beside_all_columns(run, model, tmp_path, suffix):
    write(tmp_path / f"in.{suffix}", table())
    ended = run("explain", *model, "--file", f"in.{suffix}", "--out", f"out.{suffix}", "--explainer", "leave-one-out")
    assert ended.code == 0, ended.err
    assert f"{ROWS} explanations written to out.{suffix}" in ended.out
    rows = read(tmp_path / f"out.{suffix}")
    assert [row["id"] for row in rows] == list(range(ROWS))
    module = __import__("length_model")
    expected = sg.explain(module.predict, list(table().text), explainer="leave-one-out", classes=["even", "odd"])
    for row, explanation in zip(rows, expected, strict=True):
        assert row["text"] == explanation.text
        assert row["words"] == list(explanation.tokens)
        assert row["spans"] == [list(span) for span in explanation.spans]
        assert row["weights"] == pytest.approx(explanation.weights, abs=1e-9)
        assert row["predicted_label"] == explanation.label
        assert row["probability_odd"] == pytest.approx(explanation.probabilities["odd"], abs=1e-9)
    assert sorted(path.name for path in tmp_path.glob("*out*")) == [f"out.{suffix}"]


@pytest.mark.usefixtures("small_parts")
def test_the_files_of_a_folder_are_one_table_by_name(run, model, tmp_path):
    (tmp_path / "in").mkdir()
    for name, part in (("b.csv", table()[10:]), ("a.csv", table()[:10])):
        write(tmp_path / "in" / name, part)
    assert run("predict", *model, "--file", "in", "--out", "out.jsonl").code == 0
    assert [row["id"] for row in read(tmp_path / "out.jsonl")] == [str(i) for i in range(ROWS)]
    (tmp_path / "in" / "c.csv").write_text("text,other\nx,1\n")
    ended = run("predict", *model, "--file", "in", "--out", "other.jsonl")
    assert ended.code == 2
    assert "c.csv has other columns than a.csv" in ended.err
    assert not list(tmp_path.glob("other*"))


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_line_breaks_in_cells_and_column_names_stay_in_their_row(run, model, tmp_path, suffix):
    cells = ["a\rb", "a\r\nb", "a\nb", "\r", '"', "", "a\tb", "a,b"]
    write(tmp_path / "in.jsonl", pd.DataFrame({"my\ncol\rumn": cells, "text": ["film"] * len(cells)}))
    assert run("predict", *model, "--file", "in.jsonl", "--out", f"out.{suffix}").code == 0
    with (tmp_path / f"out.{suffix}").open(newline="") as file:
        header, *rows = csv.reader(file, delimiter={"csv": ",", "tsv": "\t"}[suffix])
    assert header[:2] == ["my\ncol\rumn", "text"]
    assert [row[0] for row in rows] == cells
    assert run("predict", *model, "--file", f"out.{suffix}").out.count("film") == len(cells)  # our own reader


@pytest.mark.slow
@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_kill_at_any_disk_operation_loses_and_repeats_no_row(run, model, tmp_path, suffix):
    base = tmp_path / "results"
    base.mkdir()
    write(tmp_path / f"in.{suffix}", table())
    command = "predict", *model, "--file", f"in.{suffix}", "--out", f"results/out.{suffix}", "-q"
    recorder = kills.record(base, lambda: run(*command))
    expected = read(base / f"out.{suffix}")
    assert [row["id"] for row in expected] == list(range(ROWS))
    assert len(recorder.states) > 20
    for state in recorder.states.values():
        kills.restore(base, state)
        if not (base / f"out.{suffix}").exists():  # it is written completely or not at all
            ended = run(*command)
            assert ended.code == 0, ended.err
        assert read(base / f"out.{suffix}") == expected


@pytest.mark.usefixtures("small_parts")
def test_finished_parts_are_not_computed_again(run, model, tmp_path, monkeypatch):
    write(tmp_path / "in.csv", table())
    written, kept = [], bulk.Parts.write

    def fail_after_two(self, part, rows):
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        written.append(part)
        kept(self, part, rows)

    monkeypatch.setattr(bulk.Parts, "write", fail_after_two)
    assert run("predict", *model, "--file", "in.csv", "--out", "out.csv").code == 2
    assert len(list((tmp_path / "out.csv.parts").glob("part-*"))) == 2
    monkeypatch.setattr(bulk.Parts, "write", kept)
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    assert run("predict", *model, "--file", "in.csv", "--out", "out.csv").code == 0
    assert sorted((tmp_path / "calls").read_text().splitlines()) == sorted(table().text[12:])
    assert [row["id"] for row in read(tmp_path / "out.csv")] == list(range(ROWS))


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("change", ["file", "classes", "command", "code", "rows of a part"])
def test_parts_of_another_command_are_refused(run, model, tmp_path, monkeypatch, change):
    write(tmp_path / "in.csv", table())
    monkeypatch.setattr(bulk.Parts, "merge", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    ended = run("predict", *model, "--file", "in.csv", "--out", "out.csv")
    assert ended.code == 130
    assert "out.csv.parts keeps the finished rows: run the same command again to continue" in ended.err
    command = "explain" if change == "command" else "predict"
    name, option, _ = model
    classes = "no,yes" if change == "classes" else "even,odd"
    if change == "file":
        write(tmp_path / "in.csv", table(22))
    if change == "code":
        monkeypatch.setattr("steadygaze.study.code_version.code_version", lambda: "another")
    if change == "rows of a part":
        monkeypatch.setattr(bulk, "CHUNKS", 3)
    ended = run(command, name, option, classes, "--file", "in.csv", "--out", "out.csv")
    assert ended.code == 2
    assert "out.csv.parts has parts of another command, model or file: delete it to start again" in ended.err


def test_a_fitted_explainer_counts_by_its_files(tmp_path):
    (tmp_path / "explainer.safetensors").write_bytes(b"1")
    first = _explainer_digest(str(tmp_path))
    assert first == _explainer_digest(str(tmp_path))
    (tmp_path / "explainer.safetensors").write_bytes(b"2")
    assert _explainer_digest(str(tmp_path)) != first
    assert _explainer_digest("lime") == {"fitted": None}


def test_two_commands_do_not_write_one_output(run, model, tmp_path):
    write(tmp_path / "in.csv", table())
    with bulk.exclusive_output(tmp_path / "out.csv.parts", "writing"):
        ended = run("predict", *model, "--file", "in.csv", "--out", "out.csv")
    assert ended.code == 2
    assert "is writing in" in ended.err


@pytest.mark.parametrize("option", [["--html", "page.html"], ["--label", "id"], ["--eraser", "r.jsonl"]])
def test_a_table_excludes_other_outputs(run, model, tmp_path, option):
    write(tmp_path / "in.csv", table())
    assert run("explain", *model, "--file", "in.csv", "--out", "out.csv", *option).code == 2


@pytest.mark.slow
def test_three_real_kills_leave_every_row_once(run, model, tmp_path, monkeypatch):
    frame = pd.concat([table(1000)] * 40, ignore_index=True)
    frame["id"] = range(len(frame))
    write(tmp_path / "in.parquet", frame)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("PAUSE", "0.05")
    arguments = "predict", *model, "--file", "in.parquet", "--out", "out.parquet", "-q"
    parts = tmp_path / "out.parquet.parts"
    for _ in range(3):
        before = len(list(parts.glob("part-*")))
        process = kills.forked(main, arguments)
        while len(list(parts.glob("part-*"))) <= before:
            assert process.is_alive()
            time.sleep(0.01)
        process.kill()
        process.join()
    assert run(*arguments).code == 0
    assert pd.read_parquet(tmp_path / "out.parquet").id.tolist() == list(range(len(frame)))


@pytest.mark.slow
def test_ray_writes_the_same_table(run, model, tmp_path, monkeypatch):
    pytest.importorskip("ray")
    frame = pd.concat([table(1000)] * 20, ignore_index=True)
    write(tmp_path / "in.parquet", frame)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    assert run("predict", *model, "--file", "in.parquet", "--out", "one.parquet").code == 0
    ended = run("predict", *model, "--file", "in.parquet", "--out", "two.parquet", "--engine", "ray", "--workers", "2")
    assert ended.code == 0, ended.err
    assert read(tmp_path / "one.parquet") == read(tmp_path / "two.parquet")


@pytest.mark.parametrize(("explainer", "parts"), [("leave-one-out", 2), ("lime", 13), ("random", 1)])
def test_slow_explainers_write_parts_after_a_few_thousand_forward_passes(
    run, model, tmp_path, monkeypatch, explainer, parts
):
    """200 rows: 4,096 / 25 = 163 of leave-one-out, at least 16 of LIME, all of a fast explainer."""
    written = []
    monkeypatch.setattr(bulk.Parts, "write", lambda _, part, rows: written.append(len(rows)))
    monkeypatch.setattr(bulk.Parts, "merge", lambda *_: 0)
    monkeypatch.setattr(
        "steadygaze.adapters.model_adapter.ModelAdapter.explain_function", lambda self, *_, **__: shown(self)
    )
    write(tmp_path / "in.csv", table(200))
    assert run("explain", *model, "--file", "in.csv", "--out", "out.csv", "--explainer", explainer).code == 0
    assert (len(written), sum(written)) == (parts, 200)


def shown(adapter):
    """Explanations without weights, at once."""
    return lambda texts: [
        Explanation(text, (), (), (), "odd", dict.fromkeys(map(str, adapter.classes), 0.5)) for text in texts
    ]


def test_a_log_gets_lines_of_progress_while_texts_are_explained(run, model, tmp_path, monkeypatch):
    monkeypatch.setattr("steadygaze.cli.progress_bars.PAUSE", -1.0)
    write(tmp_path / "in.csv", table(20))
    ended = run("explain", *model, "--file", "in.csv", "--json", "--explainer", "leave-one-out")
    assert len(ended.out.splitlines()) == 20
    assert "5 of 5 done; explained" in ended.err
