"""ERASER's files, typed in: what is read of them, and the sentence for every row that does not align."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.corpora import load_corpus
from steadygaze.data.eraser import Documents
from steadygaze.data.user_files import stream

GOOD = "a film of rare charm .\nnever  dull , always fine .\n"
BAD = "two hours of my life .\ni want them back ."
ROWS: list[dict[str, Any]] = [
    {
        "annotation_id": "good.txt",
        "classification": "POS",
        "docids": None,
        "evidences": [
            [{"docid": "good.txt", "start_token": 6, "end_token": 8, "text": "never dull", "start_sentence": 1}],
            [{"docid": "good.txt", "start_token": 3, "end_token": 5, "text": "rare charm"}],
        ],
        "query": "What is the sentiment of this review?",
        "query_type": None,
    },
    {
        "annotation_id": "bad.txt",
        "classification": "NEG",
        "evidences": [],
        "query": "What is the sentiment of this review?",
    },
]


def write(folder: Path, rows: list[dict[str, Any]] = ROWS, name: str = "train.jsonl") -> Path:
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "good.txt").write_text(GOOD)
    (folder / "docs" / "bad.txt").write_text(BAD)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_tokens_become_characters_of_the_document(tmp_path: Path) -> None:
    corpus = load_corpus(write(tmp_path))
    good, bad = corpus.splits["train"]
    assert (good.text, good.label, good.question) == (GOOD, "POS", None)
    assert good.rationales == ((10, 20), (23, 34))
    assert [GOOD[start:end] for start, end in good.rationales] == ["rare charm", "never  dull"]
    assert [GOOD[start:end] for start, end in good.sentences or ()] == GOOD.splitlines()
    assert (bad.text, bad.label, bad.rationales) == (BAD, "NEG", ())  # annotated, and nothing marked
    assert corpus.dropped == {}


def test_their_val_is_our_validation_and_a_file_alone_is_train(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, name="val.jsonl")
    write(tmp_path, ROWS[:1], "test.jsonl")
    assert load_corpus(tmp_path).sizes == {"train": 2, "validation": 2, "test": 1}
    alone = load_corpus(tmp_path / "val.jsonl")
    assert alone.sizes == {"train": 2}
    assert list(stream(tmp_path / "val.jsonl", chunk=1)) == [[example] for example in alone.splits["train"]]


def test_documents_may_come_as_lines(tmp_path: Path) -> None:
    written = load_corpus(write(tmp_path)).splits
    for file in (tmp_path / "docs").iterdir():
        file.unlink()
    (tmp_path / "docs").rmdir()
    lines = [{"docid": "good.txt", "document": GOOD}, {"docid": "bad.txt", "document": BAD}]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert load_corpus(tmp_path).splits == written


def test_queries_that_differ_are_questions(tmp_path: Path) -> None:
    rows = [{**row, "query": query} for row, query in zip(ROWS, ("is it good ?", "is it long ?"), strict=True)]
    assert [example.question for example in load_corpus(write(tmp_path, rows)).splits["train"]] == [
        "is it good ?",
        "is it long ?",
    ]


def test_several_documents_are_one_text_and_each_rationale_finds_its_own(tmp_path: Path) -> None:
    """good.txt is 51 characters, then a line break: bad.txt begins at 52, its "my life" 13 later."""
    marks = [[{"docid": "bad.txt", "start_token": 3, "end_token": 5, "text": "my life"}], *ROWS[0]["evidences"]]
    row = {**ROWS[0], "docids": ["good.txt", "bad.txt"], "evidences": marks}
    (both,) = load_corpus(write(tmp_path, [row])).splits["train"]
    assert both.text == f"{GOOD}\n{BAD}"
    assert both.rationales == ((10, 20), (23, 34), (len(GOOD) + 1 + 13, len(GOOD) + 1 + 20))
    assert both.text[slice(*both.rationales[2])] == "my life"


def test_a_rationale_that_was_not_requested_is_none_and_one_without_tokens_is_counted(tmp_path: Path) -> None:
    nothing = [[{"docid": "good.txt", "start_token": 3, "end_token": 3, "text": ""}]]
    rows = [{**ROWS[0], "evidences": nothing}, {**ROWS[1], "evidences": None}]
    corpus = load_corpus(write(tmp_path, rows))
    assert [example.rationales for example in corpus.splits["train"]] == [(), None]
    assert corpus.dropped == {"zero-length rationales span": 1}


def test_a_rationale_without_offsets_is_found_by_its_words(tmp_path: Path) -> None:
    row = {**ROWS[0], "evidences": [[{"docid": "good.txt", "start_token": -1, "end_token": -1, "text": "always fine"}]]}
    (result,) = load_corpus(write(tmp_path, [row])).splits["train"]
    assert result.text[slice(*(result.rationales or ())[0])] == "always fine"


def changed(**mark: Any) -> dict[str, Any]:
    return {"evidences": [[{"docid": "good.txt", "start_token": 3, "end_token": 5, "text": "rare charm", **mark}]]}


WRONG = {
    "beyond the end": (changed(end_token=99), "tokens 3 to 99 are outside of a text of 12 tokens"),
    "backwards": (changed(start_token=5, end_token=3), "tokens 5 to 3 are outside of a text of 12 tokens"),
    "no number": (changed(start_token="3"), "tokens 3 to 5 are outside of"),
    "no end": (changed(end_token=None), "tokens 3 to None are outside of"),
    "other words": (
        changed(start_token=2, end_token=4),
        "tokens 2 to 4 are 'of rare', but the rationale is 'rare charm'",
    ),
    "words not there": (changed(start_token=-1, text="rare harm"), "the phrase 'rare harm' is not in the text"),
    "no such document": (changed(docid="worse.txt"), "there is no document 'worse.txt'"),
    "a document elsewhere": (changed(docid="../train.jsonl"), "there is no document '../train.jsonl'"),
    "not among its documents": (
        {**changed(docid="good.txt"), "docids": ["bad.txt"]},
        "there is a rationale in 'good.txt', which is not one of its docids",
    ),
    "not a mark": ({"evidences": [["rare charm"]]}, "'rare charm' is not {\"start_token\""),
    "not a list": ({"evidences": "rare charm"}, "'rare charm' is not a list of rationales"),
    "docids no list": ({"docids": "good.txt"}, "docids is 'good.txt'; it must be a list of names"),
    "no name": ({"annotation_id": None}, "there is no annotation_id"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_row_that_does_not_align_is_named_with_the_reason(tmp_path: Path, case: str) -> None:
    change, why = WRONG[case]
    with pytest.raises(UserError) as refused:
        load_corpus(write(tmp_path, [ROWS[1], {**ROWS[0], **change}]))
    assert str(refused.value).startswith(f"train.jsonl, line 2: {why}")


def test_labels_and_queries_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"train\.jsonl, annotation 'bad\.txt': classification is empty"):
        load_corpus(write(tmp_path, [ROWS[0], {**ROWS[1], "classification": None}]))
    corpus = load_corpus(tmp_path, drop_empty=True)
    assert (corpus.sizes, corpus.dropped) == ({"train": 1}, {"no label": 1})
    streamed = {
        label: [
            example.text for part in stream(tmp_path / "train.jsonl", label=label, drop_empty=True) for example in part
        ]
        for label in (None, "classification")
    }
    assert list(map(len, streamed.values())) == [2, 1]
    with pytest.raises(UserError, match=r"train\.jsonl, line 2: there is no query, though other annotations have one"):
        load_corpus(write(tmp_path, [ROWS[0], {**ROWS[1], "query": None}]))


def test_an_empty_document_is_refused_or_left_out_and_counted(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "docs" / "bad.txt").write_text(" \n")
    with pytest.raises(UserError, match=r"train\.jsonl, line 2: the document is empty"):
        load_corpus(tmp_path)
    corpus = load_corpus(tmp_path, drop_empty=True)
    assert (corpus.sizes, corpus.dropped) == ({"train": 1}, {"empty text": 1})


def test_a_document_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "docs" / "bad.txt").write_bytes(b"caf\xe9")
    with pytest.raises(UserError, match=r"line 2: the document 'bad\.txt' is not UTF-8 \(offset 3\)"):
        load_corpus(tmp_path)


def test_ordinary_files_beside_a_folder_of_that_name_are_read_as_ever(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "train.jsonl").write_text('{"text": "a fine film", "label": "good"}\n')
    assert load_corpus(tmp_path).splits["train"] == [Example("a fine film", "good")]


def test_rows_that_bring_their_text_along_are_read_by_their_columns(tmp_path: Path) -> None:
    marks = [[{"start_token": 1, "end_token": 3, "text": "fine film", "docid": "x"}]]
    rows = [{"document": "a fine film", "classification": "good", "evidences": marks}]
    file = tmp_path / "own.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = {"text": ["document"], "label": "classification", "rationales": "evidences"}
    assert load_corpus(file, **columns).splits["train"] == [Example("a fine film", "good", rationales=((2, 11),))]
    file.write_text(json.dumps({**rows[0], "document": "a film"}) + "\n")
    with pytest.raises(
        UserError, match=r"own\.jsonl, line 1, column 'evidences': tokens 1 to 3 are outside of a text of 2"
    ):
        load_corpus(file, **columns)


@pytest.mark.slow
def test_the_published_reviews_written_as_their_files_are_read_as_the_same(tmp_path: Path, data_dir: Path) -> None:
    """Every tenth review of the test split, with the offsets it was published with."""
    table = parquet.read_table(data_dir / "movie_rationales" / "test.parquet").to_pylist()[::10]
    (tmp_path / "docs").mkdir()
    rows = []
    for row in table:
        (tmp_path / "docs" / row["id"]).write_text(row["text"], encoding="utf-8")
        spans = zip(row["evidence_start"], row["evidence_end"], strict=True)
        marks = [[{"docid": row["id"], "start_token": start, "end_token": end}] for start, end in spans]
        rows.append({"annotation_id": row["id"], "classification": row["label"], "evidences": marks, "query": "?"})
    write_all = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "test.jsonl").write_text(write_all)
    known = {example.text: example for example in load_corpus("movie_rationales", data_dir=data_dir).splits["test"]}
    result = load_corpus(tmp_path).splits["test"]
    assert len(result) == 20
    assert Documents(tmp_path).exists
    for example in result:
        assert (example.rationales, example.sentences) == (
            known[example.text].rationales,
            known[example.text].sentences,
        )
