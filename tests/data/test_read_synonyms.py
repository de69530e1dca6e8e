"""Files of synonyms, and what is wrong with some of them."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steadygaze.core.errors import UserError
from steadygaze.data.synonym_tables import check_table, read_synonyms

KNOWN = {"good": ["fine", "nice"], "bad": ["poor"], "film": []}


def written(folder, rows, suffix=".jsonl"):
    file = folder / f"synonyms{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_both_kinds_of_file_are_read_alike_and_in_their_order(tmp_path, suffix):
    rows = [{"word": word, "synonyms": others, "source": "a person"} for word, others in KNOWN.items()]
    assert read_synonyms(written(tmp_path, rows, suffix)) == KNOWN
    assert read_synonyms(str(written(tmp_path, rows, suffix))) == KNOWN


def test_blank_lines_and_foreign_line_ends_do_no_harm(tmp_path):
    """A line separator of Unicode inside a word is part of the word."""
    file = tmp_path / "synonyms.jsonl"
    rows = '{"word": "a\u2028b", "synonyms": ["ö"]}\r\n\r\n{"word": "c", "synonyms": []}'
    file.write_bytes(rows.encode())
    assert read_synonyms(file) == {"a\u2028b": ["ö"], "c": []}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "contains no synonyms"),
        ("not json\n", "is not a synonym table"),
        ('{"word": "good"}\n', "is not a synonym table .*synonyms"),
        ('{"synonyms": ["good"]}\n', "is not a synonym table .*word"),
        ('["good", ["fine"]]\n', "is not a synonym table"),
        ('{"word": "good", "synonyms": "fine"}\n', "is not a synonym table .*must be a list"),
        ('{"word": "good", "synonyms": null}\n', "is not a synonym table .*must be a list"),
        ('{"word": "good", "synonyms": {"fine": 1}}\n', "is not a synonym table .*must be a list"),
        ('{"word": 3, "synonyms": ["fine"]}\n', "some word is not a string"),
        ('{"word": "good", "synonyms": ["fine", null]}\n', "some word is not a string"),
        ('{"word": ["good"], "synonyms": ["fine"]}\n', "is not a synonym table"),
        (b"\xff\xfe\x00", "is not a synonym table"),
    ],
)
def test_a_broken_file_is_refused_in_a_sentence_that_shows_a_right_one(tmp_path, content, what):
    file = tmp_path / "broken.jsonl"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=what) as refused:
        read_synonyms(file)
    assert "broken.jsonl" in str(refused.value)
    assert '{"word": "good", "synonyms": ["fine", "nice"]}' in str(refused.value)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_no_file_and_a_folder_are_no_file_of_synonyms(tmp_path, suffix):
    with pytest.raises(UserError, match=f"the synonym file .*absent{suffix} does not exist: check the path"):
        read_synonyms(tmp_path / f"absent{suffix}")
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    with pytest.raises(UserError, match=f"synonyms.*folder{suffix}|folder{suffix} is not a synonym table"):
        read_synonyms(folder)


def test_a_broken_parquet_file_is_refused(tmp_path):
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 and no more")
    with pytest.raises(UserError, match=r"torn.parquet is not a synonym table"):
        read_synonyms(torn)
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"word": ["good"], "others": [["fine"]]}), other)
    with pytest.raises(UserError, match=r"other.parquet is not a synonym table"):
        read_synonyms(other)
    flat = tmp_path / "flat.parquet"
    pq.write_table(pa.table({"word": ["good"], "synonyms": ["fine"]}), flat)
    with pytest.raises(UserError, match=r"flat.parquet is not a synonym table .*must be a list"):
        read_synonyms(flat)


def test_rows_of_words_that_differ_in_case_become_one_row(tmp_path):
    rows = {"Film": ["Movie"], "film": ["picture", "movie"], "FILM": ["clip"]}
    (tmp_path / "s.jsonl").write_text("\n".join(json.dumps({"word": w, "synonyms": row}) for w, row in rows.items()))
    expected = {"film": ["movie", "picture", "clip"]}
    assert check_table(rows, folded=True) == read_synonyms(tmp_path / "s.jsonl", folded=True) == expected
    assert check_table(rows) == read_synonyms(tmp_path / "s.jsonl") == rows
