"""`python -m studies`: the list, the options made from functions and dataclasses, tables, and messages."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner

from studies.__main__ import application
from studies.command_line import call
from studies.study import STUDIES

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Options:
    out: Path = field(metadata={"help": "folder"})
    seeds: int = 5
    sizes: tuple[int, int] = (1, 2)


def with_options(options: Options) -> Options:
    return options


def with_paths(records: list[Path] = [Path("default")], *, split: str = "test") -> tuple[list[Path], str]:  # noqa: B006
    return records, split


def test_the_fields_of_a_dataclass_are_options() -> None:
    result = call(with_options, ["--out", "runs", "--sizes", "3", "4"], "name", "About.")
    assert result == Options(out=Path("runs"), seeds=5, sizes=(3, 4))


def test_a_list_is_positional_and_may_be_left_out() -> None:
    assert call(with_paths, ["a", "b", "--split", "validation"], "name", "") == ([Path("a"), Path("b")], "validation")
    assert call(with_paths, [], "name", "") == ([Path("default")], "test")


def test_every_study_is_listed_with_its_first_line() -> None:
    lines = CliRunner().invoke(application, ["list"]).stdout.splitlines()
    assert [line.split()[0] for line in lines] == sorted(STUDIES)
    assert all(len(line.split()) > 4 for line in lines)


@pytest.mark.parametrize("name", STUDIES)
def test_the_options_of_a_study_are_shown(name: str) -> None:
    action = "run" if STUDIES[name].function("run") else "table"
    shown = CliRunner().invoke(application, [action, name, "--help"])
    assert shown.exit_code == 0, shown.output
    assert f"Usage: python -m studies {action}" in shown.output


def test_a_table_is_that_of_the_records_of_the_repository_or_of_files() -> None:
    own = CliRunner().invoke(application, ["table", "a2r_small"])
    named = CliRunner().invoke(application, ["table", "a2r_small", str(ROOT / "studies/records/a2r_small.jsonl")])
    assert own.stdout == named.stdout
    assert "| 1e-3 |" in own.stdout


def test_unknown_names_and_missing_parts_are_named() -> None:
    assert "'nothing' is not a study.  There are: " in CliRunner().invoke(application, ["run", "nothing"]).output
    assert "'kernel_shap' has no table." in CliRunner().invoke(application, ["table", "kernel_shap"]).output
    assert "'kernel_shap' publishes no numbers." in CliRunner().invoke(application, ["page", "kernel_shap"]).output


def test_pages_name_studies_that_exist() -> None:
    words = [
        line.split("-m studies ")[1].split()
        for page in (ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"))
        for line in page.read_text(encoding="utf-8").splitlines()
        if "-m studies run " in line or "-m studies table " in line
    ]
    names = {parts[1].strip("`),.;") for parts in words}
    assert "small_data" in names
    assert names <= set(STUDIES)
