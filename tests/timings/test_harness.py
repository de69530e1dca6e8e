"""Timings: rounds, ratios, limits, records, and the options of the command line."""

import importlib
import inspect
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from timings.__main__ import TIMINGS, application
from timings.harness import Race, Result, in_child, median, peak_memory, race, record

ROOT = Path(__file__).parents[2]


def test_a_race_runs_all_variants_in_turn_and_leaves_out_the_warm_up() -> None:
    order = list[str]()
    times = race({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=3, warm_up=1)
    assert "".join(order) == "abbaabba"
    assert {name: len(values) for name, values in times.wall.items()} == {"a": 3, "b": 3}
    assert {name: len(values) for name, values in times.cpu.items()} == {"a": 3, "b": 3}


def test_a_ratio_is_the_median_over_rounds_not_the_ratio_of_medians() -> None:
    times = Race()
    for ours, bare in ((1.0, 1.0), (4.0, 2.0), (9.0, 3.0)):
        times.add("ours", ours, 10 * ours)
        times.add("bare", bare, 5 * bare)
    assert times.ratio("ours", "bare").value == 2.0
    assert times.ratio("ours", "bare", clock="cpu").value == 4.0
    assert times.ratio("ours", "bare").interval == (1.0, 3.0)
    assert times.time("ours", per=2).value == 2000.0
    assert times.time("ours", "s").unit == "s"


def test_a_result_shows_its_limit_and_whether_it_is_missed() -> None:
    assert Result("ratio", 1.2, "×", at_most=1.5).is_met
    missed = Result("ratio", 1.6, "×", (1.5, 1.7), at_most=1.5)
    assert not missed.is_met
    assert re.fullmatch(r"ratio +1\.6 × \[1\.5, 1\.7\]   \(at most 1\.5\)   MISSED", str(missed))
    assert not median("speedup", [1.0, 1.1, 1.2], at_least=1.3).is_met


def test_a_function_runs_in_a_process_of_its_own() -> None:
    assert in_child(peak_memory) > 0


@pytest.mark.parametrize("name", TIMINGS)
def test_every_timing_has_a_docstring_and_options_with_defaults(name: str) -> None:
    module = importlib.import_module(f"timings.{name}")
    assert (module.__doc__ or "").partition("\n")[0].endswith(".")
    parameters = inspect.signature(module.run).parameters.values()
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters)


def test_the_timings_of_the_makefile_exist() -> None:
    names = re.search(r"^TIMINGS = (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert names
    assert set(names[1].split()) <= set(TIMINGS)


def test_pages_name_timings_that_exist() -> None:
    pages = [ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    named = {name for page in pages for name in re.findall(r"timings run (\w+)", page.read_text(encoding="utf-8"))}
    assert "throughput" in named
    assert named - {"NAME"} <= set(TIMINGS)


def test_the_command_prints_a_record_and_ends_with_1_if_a_limit_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from timings import recurrent

    def run(*, rounds: int = 30) -> list[Result]:
        return [Result("rounds", rounds, at_most=3)]

    monkeypatch.setattr(recurrent, "run", run)
    out = tmp_path / "records.jsonl"
    ended = CliRunner().invoke(application, ["run", "recurrent", "--rounds", "3", "--json", "--out", str(out)])
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout) == json.loads(out.read_text(encoding="utf-8"))
    assert json.loads(ended.stdout)["results"][0]["value"] == 3
    ended = CliRunner().invoke(application, ["run", "recurrent", "--rounds", "4"])
    assert ended.exit_code == 1
    assert "MISSED" in ended.stdout
    ended = CliRunner().invoke(application, ["run", "nothing"])
    assert "'nothing' is not a timing" in ended.output


def test_a_record_names_options_machine_and_versions() -> None:
    content = record("recurrent", ["--rounds", "3"], [Result("ratio", 1.0, "×")])
    assert content["timing"] == "recurrent"
    assert content["options"] == ["--rounds", "3"]
    assert {"machine", "torch", "commit"} <= set(content)
