"""Cells that a spreadsheet would run as formulas are escaped, and can be restored."""

import csv
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import run
from estimator.tiny import fitted, write_csv
from steadygaze.core.errors import UserError
from steadygaze.data.table_writers import check_spreadsheet, escape_formula, write_rows

FORMULAS = ["=cmd|'/c calc'!A1", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＠a"]
FORMULAS += ["\ufeff=cmd|'/c calc'!A1", "\u200b\u2060=1", "\x00@a", "\xad\u202e-2+3", "'\ufeff=1"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_a_formula_becomes_text(cell: str) -> None:
    assert escape_formula(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["a = b", "-5", "+3.2", "-1e-07", ".5", "'tis", "", " =1", -5, 2.5, None, True])
def test_numbers_and_plain_texts_stay(cell: object) -> None:
    assert escape_formula(cell) is cell


def test_a_long_cell_that_begins_as_a_number_takes_linear_time() -> None:
    assert escape_formula(f"-{'1' * 100_000}x").startswith("'-1")


@given(st.text(st.sampled_from("='+-@\t\r\n＝1e.a \ufeff\u200b"), max_size=8))
def test_an_escaped_cell_can_be_restored(cell: str) -> None:
    escaped = escape_formula(cell)
    assert not re.match(r"[\ufeff\u200b]*[=+\-@\t\r\n＝]", escaped) or re.fullmatch(r"[+-][\d.e+-]+", escaped)
    restored = escaped[1:] if re.match(r"'+[\ufeff\u200b]*[=+\-@\t\r\n＝]", escaped) else escaped
    assert restored == cell


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_a_table_has_escaped_cells_and_column_names(tmp_path: Path, suffix: str, delimiter: str) -> None:
    path, types = tmp_path / f"a{suffix}", {"=text": pa.string(), "n": pa.float64()}
    write_rows(path, types, [{"=text": FORMULAS[0], "n": -1.5}], spreadsheet_safe=True)
    with path.open(newline="") as file:
        assert list(csv.reader(file, delimiter=delimiter)) == [["'=text", "n"], [f"'{FORMULAS[0]}", "-1.5"]]
    write_rows(path, types, [{"=text": FORMULAS[0], "n": -1.5}])
    assert f"\n{FORMULAS[0]}{delimiter}" in path.read_text(), "unchanged unless requested"


def test_a_table_does_not_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    """A spreadsheet would take the mark off the file, and run the rest of the cell."""
    name = FORMULAS[-5]
    write_rows(tmp_path / "a.csv", {name: pa.string()}, [{name: name}], spreadsheet_safe=True)
    assert (tmp_path / "a.csv").read_text() == f"'{name}\n" * 2


def test_other_formats_and_no_file_are_refused() -> None:
    for path in (None, Path("a.parquet"), Path("a.jsonl")):
        with pytest.raises(UserError, match="--spreadsheet-safe escapes the formulas"):
            check_spreadsheet(path, True)
        check_spreadsheet(path, False)


@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.CoverageWarning")
@pytest.mark.parametrize("command", ["predict", "explain"])
def test_the_commands_write_escaped_cells(capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str) -> None:
    fitted().save(tmp_path / "model")
    (tmp_path / "a.csv").write_text('text\n"=1+1 good film"\nfine\n')
    words = [command, tmp_path / "model", "--file", tmp_path / "a.csv", "--device", "cpu"]
    assert run(capsys, *words, "--out", tmp_path / "b.csv", "--spreadsheet-safe").code == 0
    with (tmp_path / "b.csv").open(newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == ["'=1+1 good film", "fine"]
    ended = run(capsys, *words, "--out", tmp_path / "b.parquet", "--spreadsheet-safe")
    assert (ended.code, "name one with --out" in ended.err) == (2, True)


@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.CoverageWarning")
def test_held_out_texts_are_escaped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = write_csv(tmp_path / "a.csv")
    header, *rows = data.read_text().replace("the ", "=the ").replace('"a bad', '"=a bad').splitlines()
    data.write_text("\n".join([header, *rows, *(row.replace(" ", " very ", 1) for row in rows)]))
    words = ["train", data, "--encoder", "average", "--epochs", "1", "--test-share", "0.3", "--device", "cpu"]
    words += ["--set", "hidden=4", "--set", "dimension=6", "--out", tmp_path / "m", "--quiet"]
    ended = run(capsys, *words, "--test-out", tmp_path / "t.csv", "--spreadsheet-safe")
    assert ended.code == 0, ended.err
    with (tmp_path / "t.csv").open(newline="") as file:
        assert all(row["text"].startswith("'=") for row in csv.DictReader(file))
