"""A user's own files: what is read, and the sentence for everything that cannot be."""

import json
import tracemalloc
from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.corpora import load_corpus
from steadygaze.data.user_files import stream

ROWS = [("a fine film", "good"), ("dull, very dull", "bad")]
EXAMPLES = [Example(text, label) for text, label in ROWS]


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def train(path, **options):
    return load_corpus(path, **options).splits["train"]


def write_rows(folder, suffix, rows=ROWS):
    """The same rows in any of the formats."""
    path = folder / f"data{suffix}"
    texts, labels = zip(*rows, strict=True)
    table = pa.table({"text": texts, "label": labels})
    if suffix == ".parquet":
        parquet.write_table(table, path)
    elif suffix == ".jsonl":
        path.write_text("".join(json.dumps({"text": t, "label": y}) + "\n" for t, y in rows), encoding="utf-8")
    else:
        csv.write_csv(table, path, csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ","))
    return path


FORMATS = [".csv", ".tsv", ".jsonl", ".parquet"]
cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), min_size=1).filter(str.strip)


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_the_same_corpus(suffix, tmp_path):
    corpus = load_corpus(str(write_rows(tmp_path, suffix)))
    assert corpus.splits == {"train": EXAMPLES}
    assert (corpus.source, corpus.dropped, corpus.label_names) == ("file", {}, ["bad", "good"])
    assert corpus.fingerprint == load_corpus(write_rows(tmp_path, ".jsonl")).fingerprint


@given(rows=st.lists(st.tuples(cells, st.sampled_from(["x", "y"])), min_size=1, max_size=5))
def test_any_text_survives_every_format(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    for suffix in FORMATS:
        assert train(write_rows(folder, suffix, rows)) == [Example(text, label) for text, label in rows]


def test_cells_are_never_taken_for_something_else(write):
    path = write("a.csv", "text,label,other\n007,NA,1\ntrue,null,x\n1.50,NA,\nNA,null,2020-01-01\n")
    assert train(path) == [Example("007", "NA"), Example("true", "null"), Example("1.50", "NA"), Example("NA", "null")]


def test_quoted_cells_may_hold_line_breaks_commas_and_quotes(write):
    path = write("a.csv", 'text,label\r\n"one\ntwo, ""three""",x\r\nfour,y\r\n')
    assert train(path) == [Example('one\ntwo, "three"', "x"), Example("four", "y")]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_byte_order_mark_is_not_part_of_the_first_name(write, name):
    content = "text,label\nfine,x\n" if name == "a.csv" else '{"text": "fine", "label": "x"}\n'
    assert train(write(name, "\ufeff" + content)) == [Example("fine", "x")]


def test_blank_rows_are_skipped_and_still_counted(write):
    assert train(write("a.csv", "text,label\nfine,x\n\ndull,y\n,\n\n")) == [Example("fine", "x"), Example("dull", "y")]
    with pytest.raises(UserError, match=r"a.csv, row 4 .the header is row 1., column 'text' is empty"):
        load_corpus(write("a.csv", "text,label\nfine,x\n\n,y\n"))


def test_a_very_long_text_is_read(write):
    text = "word " * 100_000
    assert train(write("a.csv", f"text,label\n{text},x\nb,y\n"))[0].text == text


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "0", "-3"], [1, 0, -3]),
        (["1.0", "2.0"], [1, 2]),
        (["1", "two"], ["1", "two"]),
        (["007", "008"], ["007", "008"]),
        (["True", "False"], ["True", "False"]),
        ([str(2**60 + 1), "1"], [2**60 + 1, 1]),
        (["12345678901234567890", "1"], ["12345678901234567890", "1"]),
        (["1" * 5000, "1"], ["1" * 5000, "1"]),
    ],
)
def test_labels_of_a_csv_are_numbers_if_all_of_them_are(write, cells, expected):
    path = write("a.csv", "text,label\n" + "".join(f"t,{cell}\n" for cell in cells))
    labels = [example.label for example in train(path)]
    assert labels == expected
    assert [type(label) for label in labels] == [type(label) for label in expected]


def test_labels_are_decided_over_all_splits_of_a_folder(write, tmp_path):
    write("d/train.csv", "text,label\na,1\nb,2\n")
    write("d/test.tsv", "text\tlabel\nc\tx\n")
    splits = load_corpus(tmp_path / "d").splits
    assert splits == {"train": [Example("a", "1"), Example("b", "2")], "test": [Example("c", "x")]}


def test_labels_of_a_typed_format_keep_their_type(write):
    rows = [{"text": "a", "label": "1"}, {"text": "b", "label": "2"}]
    assert [e.label for e in train(write("a.jsonl", "\n".join(map(json.dumps, rows))))] == ["1", "2"]
    rows = [{"text": "a", "label": True}, {"text": "b", "label": False}]
    assert [e.label for e in train(write("a.jsonl", "\n".join(map(json.dumps, rows))))] == [1, 0]


def test_two_text_columns_are_a_text_and_its_question(write):
    path = write("a.csv", "label,hypothesis,premise\nx,q,t\n")
    assert train(path, text=("premise", "hypothesis")) == [Example("t", "x", question="q")]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ([[5, 9], [0, 1]], ((0, 1), (5, 9))),
        (["fine", "film"], ((2, 6), (7, 11))),
        (["film", "a fine"], ((0, 6), (7, 11))),
        (["fine   film"], ((2, 11),)),
        ("fine film", ((2, 11),)),
        ([0, 1, 1], ((2, 11),)),
        ([1, 0, 1], ((0, 1), (7, 11))),
        ([0, 0, 0], ()),
        ([[{"start_token": 1, "end_token": 3}]], ((2, 11),)),
        ([], ()),
        (None, None),
    ],
)
def test_rationales_are_spans_or_phrases(write, tmp_path, cell, expected):
    text = "a fine\nfilm"
    path = write("a.jsonl", json.dumps({"text": text, "label": "x", "why": cell}))
    assert train(path, rationales="why")[0].rationales == expected
    quoted = "" if cell is None else json.dumps(cell).replace('"', '""')
    assert train(write("a.csv", f'text,label,why\n"{text}",x,"{quoted}"\n'), rationales="why")[0].rationales == expected
    parquet.write_table(pa.table({"text": [text], "label": ["x"], "why": [cell]}), tmp_path / "a.parquet")
    assert train(tmp_path / "a.parquet", rationales="why")[0].rationales == expected


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("[[0, 99]]", r"\[0, 99\] is outside of a text of 4 characters"),
        ("[[2, 2]]", r"\[2, 2\] is outside of"),
        ("[[0, true]]", r"\[0, True\] is not \[start, end\]"),
        ('["film"]', "the phrase 'film' is not in the text"),
        ("FINE", "the phrase 'FINE' is in the text only as 'fine'; use the same case"),
        ('[" "]', "the phrase ' ' is not in the text"),
        ("dull", "the phrase 'dull' is not in the text; a rationale is character spans"),
        ("[fine]", "'.fine.' is not JSON; a rationale is character spans .* phrases .* mask .* marks .* ERASER"),
        ('{"a": 1}', "found .'a': 1.; a rationale is"),
        ("3", "the phrase '3' is not in the text"),
        ("[3]", "found the mark 3; a rationale is"),
    ],
)
def test_a_rationale_that_does_not_fit_is_refused_with_its_row(write, cell, why):
    path = write("a.tsv", f"text\tlabel\twhy\nfine\tx\t\nfine\ty\t{_quoted(cell)}\n")
    with pytest.raises(UserError, match=rf"^a.tsv, row 3 .the header is row 1., column 'why': .*{why}"):
        load_corpus(path, rationales="why")


def _quoted(cell):
    return '"' + cell.replace('"', '""') + '"'


def test_empty_texts_are_left_out_and_counted_on_request(write):
    path = write("a.csv", "text,label\nfine,x\n  ,y\n,x\ndull,y\n")
    with pytest.raises(
        UserError,
        match=r"a.csv, row 3 .the header is row 1., column 'text' is empty \(2 such rows in all\).*--drop-empty",
    ):
        load_corpus(path)
    corpus = load_corpus(path, drop_empty=True)
    assert corpus.splits["train"] == [Example("fine", "x"), Example("dull", "y")]
    assert corpus.dropped == {"empty text": 2}


def test_rows_without_a_label_are_left_out_and_counted_apart_on_request(write, tmp_path):
    table = {"text": ["fine", "good", None, "dull", None], "label": [1, None, 0, 0, None]}
    parquet.write_table(pa.table(table), tmp_path / "a.parquet")
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    write("a.csv", "text,label\nfine,1\ngood,\n,0\ndull,0\n ,NaN\n")
    write("a.jsonl", "\n".join(map(json.dumps, rows)))
    for suffix in (".csv", ".jsonl", ".parquet"):
        path = tmp_path / f"a{suffix}"
        corpus = load_corpus(path, drop_empty=True)
        assert corpus.splits["train"] == [Example("fine", 1), Example("dull", 0)], suffix
        assert corpus.dropped == {"empty text": 2, "no label": 1}
        texts = [example.text for chunk in stream(path, drop_empty=True) for example in chunk]
        assert texts == ["fine", "good", "dull"], "without labels, no row is left out because of them"


def test_the_labels_of_a_multi_label_file_may_be_empty_lists(write):
    rows = [{"text": "a", "label": []}, {"text": "b", "label": None}, {"text": "c", "label": ["x"]}]
    path = write("a.jsonl", "\n".join(map(json.dumps, rows)))
    corpus = load_corpus(path, drop_empty=True, task="multi-label")
    assert [example.label for example in corpus.splits["train"]] == [(), ("x",)]
    assert corpus.dropped == {"no label": 1}


@pytest.mark.parametrize(("rows", "problem"), [("a,\nb,\n", "a text and a label"), (",x\n,y\n", "a text.$")])
def test_a_file_without_any_complete_row_is_refused_even_when_rows_are_dropped(write, rows, problem):
    with pytest.raises(UserError, match=rf"a.csv has no rows with {problem}"):
        load_corpus(write("a.csv", f"text,label\n{rows}"), drop_empty=True)


def test_an_empty_question_counts_as_an_empty_text(write):
    path = write("a.jsonl", '{"p": "a", "q": "b", "label": 0}\n\n{"p": "c", "q": null, "label": 1}\n')
    with pytest.raises(UserError, match=r"a.jsonl, line 3, column 'q' is empty"):
        load_corpus(path, text=("p", "q"))
    assert load_corpus(path, text=("p", "q"), drop_empty=True).sizes == {"train": 1}


BAD = {
    "empty": ("a.csv", "", "a.csv is empty"),
    "header only": ("a.csv", "text,label\n", "a.csv has no rows"),
    "header without an end": ("a.csv", "text,label", "a.csv has no rows"),
    "blank lines only": ("a.jsonl", "\n\n", "a.jsonl has no rows"),
    "format": ("a.xlsx", "x", r"a.xlsx has an unknown format '.xlsx'; known: .csv, .tsv, .jsonl, .parquet"),
    "txt": ("a.txt", "fine\n", "a.txt has no labels"),
    "column": ("a.csv", "txt,label\na,b\n", r"a.csv: unknown column 'text': did you mean 'txt'\?  Known: label, txt"),
    "column, jsonl": ("a.jsonl", '{"text": "a", "lable": 1}', r"unknown column 'label': did you mean 'lable'"),
    "one text": ("a.csv", "text,label\na,x\n,y\n", "row 3 .the header is row 1., column 'text' is empty; fill it in"),
    "twice": ("a.csv", "text,label,text\na,b,c\n", "a.csv has 2 columns called 'text'"),
    "label": (
        "a.csv",
        "text,label\na,x\nb,\n",
        "a.csv, row 3 .the header is row 1., column 'label' is empty.*--drop-empty",
    ),
    "label, nan": ("a.csv", "text,label\na,1\nb,NaN\n", "a.csv, row 3 .the header is row 1., column 'label' is empty"),
    "label, null": ("a.jsonl", '{"text":"a","label":1}\n{"text":"b"}', "a.jsonl, line 2, column 'label' is empty"),
    "label, NaN": ("a.jsonl", '{"text": "a", "label": NaN}', "a.jsonl, line 1, column 'label' is empty"),
    "multi-label": ("a.jsonl", '{"text": "a", "label": ["x", "y"]}', "line 1, column 'label'.*single-label"),
    "regression": (
        "a.csv",
        "text,label\na,1\nb,0.25\n",
        "a.csv, row 3 .the header is row 1., column 'label' is 0.25.*not regressions",
    ),
    "mixture": (
        "a.jsonl",
        '{"text":"a","label":1}\n{"text":"b","label":"x"}',
        "line 1, .* is 1 but .*line 2, .* is 'x'",
    ),
    "number": ("a.jsonl", '{"text": 5, "label": 1}', r"a.jsonl, line 1, column 'text' is 5 \(int\)"),
    "surrogate": ("a.jsonl", '{"text": "\\ud800", "label": 1}', "line 1, column 'text' contains .*surrogate"),
    "cells": ("a.csv", "text,label\na,x\nb,y,z\n", r"a.csv, row 3 has 3 cells where the header has 2: 'b,y,z'"),
    "cells after a multi-line row": ("a.csv", 'text,label\n"a\nb",x\nc\n', "a.csv, row 3 has 1 cell where"),
    "semicolons": ("a.csv", "text;label\na;x\n", "a.csv: its header is separated by semicolons, save it with commas"),
    "semicolons and a comma": (
        "a.csv",
        "text;label\na, b;x\n",
        "row 2 has 2 cells .*: '[^']*'; its header is separated by semicolons, save it",
    ),
    "tabs": ("a.csv", "text\tlabel\na, b\tx\n", r"row 2 has 2 cells .* separated by tabs, save it .* tabs \(.tsv\)"),
    "quote": ("a.csv", 'text,label\n"a,x\nb,y\n', "a.csv, row 2 has 1 cell where"),
    "json": ("a.jsonl", '{"text": "a", "label": 1}\n{"text": ', "a.jsonl, line 2 is not JSON"),
    "endless number": ("a.jsonl", '{"text": "a", "label": ' + "1" * 5000 + "}", "a.jsonl, line 1 is not JSON"),
    "long number": (
        "a.jsonl",
        '{"text": "a", "label": 12345678901234567890}',
        "line 1, column 'label' is an integer",
    ),
    "not an object": ("a.jsonl", "[1, 2]", r"a.jsonl, line 1 is \[1, 2\]; a line must be an object"),
    "deep json": ("a.jsonl", "[" * 100_000, "a.jsonl, line 1 is not JSON"),
    "utf-8": ("a.csv", b"text,label\na,x\nb\xff,y\n", r"a.csv is not UTF-8: line 3 .*\(offset 16\)"),
    "utf-8, header": ("a.csv", b"te\xffxt,label\na,x\n", r"a.csv is not UTF-8: line 1 .*\(offset 2\)"),
    "utf-8, jsonl": ("a.jsonl", b'{"text": "\xe9", "label": 1}', r"a.jsonl is not UTF-8: line 1 .*\(offset 10\)"),
    "utf-16": ("a.csv", "text,label\na,x\n".encode("utf-16"), "a.csv is not UTF-8: line 1"),
    "parquet": ("a.parquet", "not parquet", "a.parquet cannot be read as parquet"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_gets_one_sentence(write, case):
    name, content, sentence = BAD[case]
    with pytest.raises(UserError, match=sentence) as caught:
        load_corpus(write(name, content))
    assert "\n" not in str(caught.value)


def test_rows_of_parquet_count_from_one(tmp_path):
    parquet.write_table(pa.table({"text": ["a", None], "label": [1.0, 2.0]}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a.parquet, row 2, column 'text' is empty"):
        load_corpus(tmp_path / "a.parquet")
    assert train(tmp_path / "a.parquet", drop_empty=True) == [Example("a", 1)]
    with pytest.raises(UserError, match=r"unknown column 'body'.*Known: label, text"):
        load_corpus(tmp_path / "a.parquet", text=("body",))


def test_paths_that_lead_nowhere(tmp_path, write):
    for read in (load_corpus, stream):  # a stream before its first chunk is read
        with pytest.raises(UserError, match=r"there is no file .*reviews.csv"):
            read(str(tmp_path / "reviews.csv"))
    with pytest.raises(
        UserError, match=r"contains none of train, validation and test as .csv, .tsv, .jsonl, .parquet files"
    ):
        load_corpus(tmp_path)
    write("train.csv", "text,label\na,x\n")
    write("train.jsonl", "{}")
    with pytest.raises(UserError, match=r"contains train.csv and train.jsonl; keep one file for the train split"):
        load_corpus(tmp_path)


@pytest.mark.parametrize("text", [(), ("a", "b", "c"), "text", ("a", "a"), ("label",)])
def test_columns_play_one_part_each(write, text):
    with pytest.raises(UserError, match="column"):
        load_corpus(write("a.csv", "a,b,c,label\n1,2,3,x\n"), text=text)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_stream_gives_the_same_examples_in_chunks(tmp_path, suffix):
    rows = [(f"text {i}", "xy"[i % 2]) for i in range(7)]
    path = write_rows(tmp_path, suffix, rows)
    chunks = list(stream(path, label="label", chunk=3))
    assert [len(chunk) for chunk in chunks] == [3, 3, 1]
    assert list(chain.from_iterable(chunks)) == train(path)
    assert list(chain.from_iterable(stream(path))) == [Example(text) for text, _ in rows]


@pytest.mark.parametrize("suffix", FORMATS)
def test_labels_can_be_left_to_the_file(suffix, write, tmp_path):
    assert train(write_rows(tmp_path, suffix), label=None) == EXAMPLES
    bare = {".csv": "text\na\n", ".tsv": "text\na\n", ".jsonl": '{"text": "a"}\n'}
    if suffix in bare:
        assert train(write(f"bare{suffix}", bare[suffix]), label=None) == [Example("a")]
        with pytest.raises(UserError, match="unknown column 'label'"):
            train(write(f"bare{suffix}", bare[suffix]))
    with pytest.raises(UserError, match="unknown column 'review'"):
        train(write_rows(tmp_path, suffix), text=("review",), label=None)
    assert train(write("a.txt", "first\nsecond\n"), label=None) == [Example("first"), Example("second")]


def test_a_stream_of_plain_text_is_one_text_a_line(write):
    path = write("a.txt", '\ufefffirst, "one"\r\nsecond\u2028still second\n\nlast')
    with pytest.raises(UserError, match=r"a.txt, line 3, column 'text' is empty"):
        list(stream(path))
    texts = [example.text for chunk in stream(path, drop_empty=True) for example in chunk]
    assert texts == ['first, "one"', "second\u2028still second", "last"]
    with pytest.raises(UserError, match="one text per line and no other columns"):
        list(stream(path, label="label"))


def test_an_empty_cell_among_lists_of_labels_is_named(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "a", "label": ["x"]}\n{"text": "b", "label": []}\n{"text": "c", "label": null}\n')
    with pytest.raises(UserError, match=r"a\.jsonl, line 3, column 'label' is empty: write \[\] for a text without"):
        load_corpus(str(file), task="multi-label")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("steadygaze.data.tables.BLOCK", 1 << 14)


@pytest.mark.usefixtures("small_blocks")
def test_rows_are_counted_across_blocks(write):
    rows = "".join(f'"text\n{i}",x\n' for i in range(5000))
    with pytest.raises(UserError, match=r"a.csv, row 5002 has 3 cells"):
        load_corpus(write("a.csv", f"text,label\n{rows}a,b,c\n"))
    with pytest.raises(UserError, match=r"a.csv, row 5003 .the header is row 1., column 'text' is empty"):
        load_corpus(write("a.csv", f"text,label\n{rows}\n,y\n"))
    with pytest.raises(UserError, match=r"a.csv has a row longer than .*check for an unclosed double quote"):
        load_corpus(write("a.csv", f'text,label\n"a,x\n{rows.replace(chr(34), "")}'))


@pytest.mark.sweep(keep=1)
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".txt"])
def test_the_memory_of_a_stream_does_not_grow_with_the_file(tmp_path, suffix):
    def peak(rows):
        path = tmp_path / f"{rows}{suffix}"
        texts = [f"{i} " + "word " * 50 for i in range(rows)]
        if suffix == ".parquet":
            parquet.write_table(pa.table({"text": texts}), path)
        else:
            lines = [json.dumps({"text": text}) if suffix == ".jsonl" else text for text in texts]
            path.write_text("\n".join(["text"] * (suffix == ".csv") + lines))
        tracemalloc.start()
        assert sum(len(chunk) for chunk in stream(path, chunk=64)) == rows
        _, high = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return high

    assert peak(4000) < 1.5 * peak(400)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "txt"])
def test_a_file_without_ends_of_lines_is_not_read_to_its_end(suffix, tmp_path):
    path = tmp_path / f"a.{suffix}"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UserError, match=rf"a.{suffix}, line 1 is longer than 4 MiB"):
        next(stream(path))
