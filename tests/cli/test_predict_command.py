"""predict --out: every column of the file, and the predictions beside them."""

import csv
import datetime
import importlib
import json
from functools import partial

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import commands
import steadygaze as sg
from steadygaze.adapters.bulk import prediction_columns
from steadygaze.core.errors import UserError
from steadygaze.data import user_files


@pytest.fixture
def run(capsys):
    return partial(commands.run, capsys)


TEXTS = ["good, good film", "bad", 'a "good" film\non two lines']


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A function in a module: P(good) = 0.9 if the text has the word."""
    (tmp_path / "simple_model.py").write_text(
        "import numpy as np\n"
        "def predict(texts):\n"
        "    good = np.array(['good' in text for text in texts])\n"
        "    return np.stack([np.where(good, 0.1, 0.75), np.where(good, 0.9, 0.25)], -1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return "simple_model:predict", "--classes", "bad,good"


ADDED = ["predicted_label", "probability_bad", "probability_good"]
GOOD, BAD = (pytest.approx(pair, abs=1e-6) for pair in ((0.1, 0.9), (0.75, 0.25)))
LABELS, PROBABILITIES = ["good", "bad", "good"], [GOOD, BAD, GOOD]


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_all_columns_of_a_table_are_kept_as_they_are(run, model, tmp_path, suffix):
    with open(tmp_path / f"in.{suffix}", "w", newline="") as file:
        writer = csv.writer(file, delimiter="," if suffix == "csv" else "\t")
        writer.writerows([["id", "text", "note"], *zip(["007", "1e3", ""], TEXTS, ["NA", "", "ünï, «x»"], strict=True)])
    ended = run("predict", *model, "--file", f"in.{suffix}", "--out", f"out.{suffix}")
    assert ended.code == 0, ended.err
    assert "3 predictions written" in ended.out + ended.err
    with open(tmp_path / f"out.{suffix}", newline="") as file:
        header, *rows = csv.reader(file, delimiter="," if suffix == "csv" else "\t")
    assert header == ["id", "text", "note", *ADDED]
    assert [row[:3] for row in rows] == [["007", TEXTS[0], "NA"], ["1e3", TEXTS[1], ""], ["", TEXTS[2], "ünï, «x»"]]
    assert [row[3] for row in rows] == LABELS
    assert [tuple(map(float, row[4:])) for row in rows] == PROBABILITIES


def test_json_lines_keep_values_and_types(run, model, tmp_path):
    rows = [{"text": TEXTS[0], "meta": {"a": [1, None]}}, {"text": TEXTS[1], "rating": 2}, {"text": TEXTS[2]}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = run("predict", *model, "--file", "in.jsonl", "--out", "out.jsonl", "--json")
    assert json.loads(ended.out) == {"health": [], "out": "out.jsonl", "predicted": 3}
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    missing = {"meta": None, "rating": None}
    assert [{key: row[key] for key in ("text", "meta", "rating")} for row in written] == [
        {**missing, **r} for r in rows
    ]
    assert [row["predicted_label"] for row in written] == LABELS
    assert [(row["probability_bad"], row["probability_good"]) for row in written] == PROBABILITIES


def test_parquet_keeps_the_types_of_its_columns_in_several_chunks(run, model, tmp_path, monkeypatch):
    monkeypatch.setattr(user_files, "CHUNK", 2)
    day = datetime.date(2026, 1, 2)
    table = pa.table({"text": TEXTS, "day": [day] * 3, "small": pa.array([1, None, 3], pa.int8()), "tags": [["a"]] * 3})
    parquet.write_table(table, tmp_path / "in.parquet")
    assert run("predict", *model, "--file", "in.parquet", "--out", "out.parquet").code == 0
    written = parquet.read_table(tmp_path / "out.parquet")
    assert written.select(table.column_names).equals(table)
    labels, *probabilities = (written.column(name).to_pylist() for name in ADDED)
    assert (labels, list(zip(*probabilities, strict=True))) == (LABELS, PROBABILITIES)
    assert run("predict", *model, "--file", "in.parquet", "--out", "out.csv").code == 0
    copy = pd.read_csv(tmp_path / "out.csv")
    assert copy.day.tolist() == ["2026-01-02"] * 3
    assert copy.tags.tolist() == ['["a"]'] * 3


def test_one_text_per_line_becomes_a_table(run, model, tmp_path):
    (tmp_path / "in.txt").write_text("good\nbad\n")
    assert run("predict", *model, "--file", "in.txt", "--out", "out.csv").code == 0
    assert pd.read_csv(tmp_path / "out.csv").text.tolist() == ["good", "bad"]


def test_dropped_rows_are_not_in_the_output(run, model, tmp_path):
    (tmp_path / "in.csv").write_text("n,text,label\n1,good,\n2,,x\n3,bad,\n")
    assert run("predict", *model, "--file", "in.csv", "--out", "out.csv", "--drop-empty").code == 0
    assert pd.read_csv(tmp_path / "out.csv")[["n", "predicted_label"]].values.tolist() == [[1, "good"], [3, "bad"]]


def test_rows_without_text_are_counted_and_labels_are_not_read(run, model, tmp_path):
    (tmp_path / "in.csv").write_text("text,label\ngood,\n,x\nbad,\n")
    ended = run("predict", *model, "--file", "in.csv", "--drop-empty")
    assert [line.split("\t")[-1] for line in ended.out.splitlines()] == ["good", "bad"]
    assert ended.err.splitlines() == ["in.csv: empty text: 1 left out"]


EMPTY = 'n,text\n1,good\n2,\n3,"  "\n4,bad\n'
WARNING = "! no prediction for 2 empty texts: in.csv, row 3 (the header is row 1); row 4"


@pytest.mark.parametrize("command", ["predict", "explain"])
def test_an_empty_text_has_a_null_row_and_one_warning_names_it(run, model, tmp_path, command):
    (tmp_path / "in.csv").write_text(EMPTY)
    ended = run(command, *model, "--file", "in.csv", "--out", "out.jsonl")
    assert (ended.code, ended.err.splitlines()[0]) == (0, WARNING)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["predicted_label"] for row in rows] == ["good", None, None, "bad"]
    assert [row["text"] for row in rows] == ["good", "", "  ", "bad"]
    assert all(rows[i][name] is None for i in (1, 2) for name in rows[i] if name not in ("n", "text"))
    ended = run(command, *model, "--file", "in.csv", "--json")
    assert (ended.code, ended.err.splitlines()) == (0, [WARNING])
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert [(line["label"], line["health"]) for line in lines] == [("good", []), (None, []), (None, []), ("bad", [])]


def test_single_sentences_of_an_empty_text_are_none_and_one_warning_names_it(run, model, tmp_path):
    (tmp_path / "in.csv").write_text(EMPTY)
    ended = run("explain", *model, "--file", "in.csv", "--each-sentence", "--json")
    assert (ended.code, ended.err.splitlines()) == (0, [WARNING])
    assert [(item["row"], item["sentence"]) for item in json.loads(ended.out)["sentences"]] == [(0, "good"), (3, "bad")]


def test_a_resumed_table_names_the_empty_texts_of_finished_parts(run, model, tmp_path, monkeypatch):
    monkeypatch.setattr(user_files, "CHUNK", 1)
    monkeypatch.setattr("steadygaze.adapters.bulk.CHUNKS", 1)
    (tmp_path / "in.csv").write_text(EMPTY)
    merge = "steadygaze.adapters.bulk.Parts.merge"
    with monkeypatch.context() as stopped:
        stopped.setattr(merge, lambda *_: (_ for _ in ()).throw(UserError("stopped")))
        assert run("predict", *model, "--file", "in.csv", "--out", "out.csv").code == 2
    assert len([*(tmp_path / "out.csv.parts").glob("part-*")]) == 4
    assert WARNING in run("predict", *model, "--file", "in.csv", "--out", "out.csv").err
    assert pd.read_csv(tmp_path / "out.csv").probability_good.isna().tolist() == [False, True, True, False]


def test_an_empty_part_of_a_pair_and_an_empty_text_of_the_command_line_are_named(run, model, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"t": "good", "q": "x"}\n{"t": null, "q": "x"}\n{"t": "bad", "q": " "}\n')
    ended = run("predict", *model, "--file", "in.jsonl", "--text", "t", "--text", "q", "--json")
    assert [json.loads(line)["label"] for line in ended.out.splitlines()] == ["good", None, None]
    assert ended.err == "! no prediction for 2 empty texts: in.jsonl, line 2; line 3\n"
    ended = run("predict", *model, "good", "", "bad", " ")
    assert [line.split("\t")[0] for line in ended.out.splitlines()] == [
        "good",
        "no prediction",
        "bad",
        "no prediction",
    ]
    assert ended.err == "! no prediction for 2 empty texts: text 2; text 4\n"


def test_explanations_with_true_labels_skip_empty_texts(run, model, tmp_path):
    (tmp_path / "in.csv").write_text("text,label\ngood,bad\n,bad\nbad,bad\n")
    ended = run("explain", *model, "--file", "in.csv", "--label", "label", "--html", "page.html")
    assert ended.code == 0, ended.err
    assert "2 texts explained" in ended.out
    assert "1 of 2 predictions are wrong" in ended.err
    assert "no prediction for 1 empty text: in.csv, row 3" in ended.err
    assert "--drop-empty" in ended.err  # the next command stops at an empty text
    assert run("evaluate", *model, "--data", "in.csv").code == 2


def test_a_row_without_text_needs_no_label(run, model, tmp_path):
    for rows, wrong in ((["1,good,bad", "2,,", "3,bad,bad"], ["1 of 2 predictions are wrong"]), (["1,,", "2,,"], [])):
        (tmp_path / "in.csv").write_text("\n".join(["id,text,label", *rows]))
        ended = run("explain", *model, "--file", "in.csv", "--label", "label")
        assert ended.code == 0, ended.err
        assert [line for line in ended.err.splitlines() if line.endswith("wrong")] == wrong
    (tmp_path / "in.csv").write_text("id,text,label\n1,good,\n")
    assert "every text needs a label" in run("explain", *model, "--file", "in.csv", "--label", "label").err


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("text,probability_bad\ngood,1\n", [], "a column 'probability_bad', which --out would add; rename it"),
        ("text,a,a\ngood,1,2\n", [], "2 columns called 'a'"),
        ("text\ngood\n", ["a text"], "without other texts"),
        ("text\ngood\n", ["--out", "out.xlsx"], "unknown format '.xlsx'; known: .csv, .tsv, .jsonl, .parquet"),
        ("text\ngood\n", ["--out", "in.csv", "--replace"], "is an input of this command"),
    ],
)
def test_nothing_is_written_after_an_error(run, model, tmp_path, content, options, message):
    (tmp_path / "in.csv").write_text(content)
    ended = run("predict", *model, "--file", "in.csv", "--out", "out.csv", *options)
    assert ended.code == 2
    assert message in ended.err
    assert {path.name for path in tmp_path.iterdir() if path.suffix != ".py"} - {"__pycache__"} == {"in.csv"}
    assert (tmp_path / "in.csv").read_text() == content


def test_an_existing_file_needs_replace(run, model, tmp_path):
    (tmp_path / "in.csv").write_text("text\ngood\n")
    (tmp_path / "out.csv").write_text("mine")
    ended = run("predict", *model, "--file", "in.csv", "--out", "out.csv")
    assert (ended.code, (tmp_path / "out.csv").read_text()) == (2, "mine")
    assert "--replace" in ended.err
    assert run("predict", *model, "--file", "in.csv", "--out", "out.csv", "--replace").code == 0
    assert "good,good,0.1" in (tmp_path / "out.csv").read_text()


def test_cells_of_several_types_go_to_json_lines_and_not_to_parquet(run, model, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "good", "x": 1}\n{"text": "bad", "x": "one"}\n')
    ended = run("predict", *model, "--file", "in.jsonl", "--out", "out.parquet")
    assert "column 'x' has cells of several types" in ended.err
    assert not (tmp_path / "out.parquet").exists()
    assert run("predict", *model, "--file", "in.jsonl", "--out", "out.jsonl").code == 0


def test_several_labels_and_numbers_have_their_columns():
    assert prediction_columns({"labels": ["a"], "probabilities": {"a": 0.9, "b": 0.1}}) == {
        "predicted_labels": ["a"],
        "probability_a": 0.9,
        "probability_b": 0.1,
    }
    assert prediction_columns({"values": {"stars": 3.5}}) == {"predicted_stars": 3.5}


def test_the_probabilities_are_those_of_predict_proba(run, model, tmp_path):
    (tmp_path / "in.csv").write_text("review,text\ngood,bad\n")
    assert run("predict", *model, "--file", "in.csv", "--text", "review", "--out", "out.csv").code == 0
    simple_model = importlib.import_module("simple_model")

    (expected,) = sg.load(simple_model.predict, classes=["bad", "good"]).predict_proba(["good"]).tolist()
    row = pd.read_csv(tmp_path / "out.csv").iloc[0]
    assert [row.probability_bad, row.probability_good] == pytest.approx(expected)
