"""Published tables: means of the records, merged runs, intervals, and the plans that run them."""

import math
from pathlib import Path
from statistics import mean

import numpy as np
import pytest

from steadygaze.results.reproduction import Reproduction
from steadygaze.study.published_tables import AXES, find_table
from steadygaze.study.table_blocks import blocks
from studies.numbers import Origin, by_name
from studies.papers.comparisons import comparison_numbers
from studies.papers.data import jackknife, records
from studies.papers.plan import PLANS
from studies.papers.run import Inputs, run
from studies.stability.statistics import Estimate
from studies.tables import RECORDS

FILES = sorted(RECORDS.glob("*-table*.gz")) + sorted(RECORDS.glob("*-figure*.gz"))


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.split(".")[0])
def test_a_number_of_a_table_is_the_mean_over_its_models(file: Path) -> None:
    reproduction, cells = Reproduction.from_records(file)
    table = find_table(reproduction.table)
    assert file.name.startswith(table.key.replace("/", "-"))
    values = {value.labels: value for value in reproduction.values if value.value is not None}
    checked = 0
    for block in blocks(table):
        for entry in block.entries:
            value = values.get(tuple(entry.label(axis) for axis in AXES))
            if value is None:
                continue
            model = (block.folder, block.techniques[entry.label("techniques")].name)
            scores = [cell.scores[value.measure] for cell in cells if (cell.block, cell.technique) == model]
            assert len(scores) == value.seeds
            expected = mean(scores) * table.counterpart(entry, "measures").scale
            assert value.value == pytest.approx(expected, rel=1e-4, abs=1e-7)
            assert value.paper == entry.value
            checked += 1
    assert checked == len(values) > 0


@pytest.mark.slow
def test_a_later_run_replaces_the_models_of_an_earlier_one() -> None:
    """bAbI 1 has five seeds in the run that learns it, and three in the run that does not."""
    reproduction, cells = records("kitada-table2")
    models = [(cell.block, cell.technique, cell.seed) for cell in cells]
    assert len(set(models)) == len(models)
    assert {cell.seed for cell in cells if cell.block == "babi_1_bilstm"} == set(range(5))
    (score,) = [v for v in reproduction.values if v.labels[0] == "bAbI 1" and v.labels[2:] == ("Vanilla", "", "Acc")]
    assert (score.value or 0) > 99
    assert [text for text in reproduction.departures if text.startswith("babi_1: ")] == [
        "babi_1: 1,000 test texts, 5 seeds, at most 40 epochs, patience 10."
    ]


def test_the_jackknife_leaves_out_the_pairs_of_a_model() -> None:
    """Pairs of three models: 1 (first and second), 2 (first and third), 3."""
    pseudo = jackknife([1.5, 2.0, 2.5], np.log)
    without = [3.0, 2.0, 1.0]
    assert list(pseudo) == pytest.approx([3 * math.log(2.0) - 2 * math.log(ratio) for ratio in without])


def test_p_is_corrected_for_all_comparisons_and_left_out_where_there_is_none() -> None:
    """Two p-values count, the third is undefined: 0.01 · 2 and 0.03."""
    ps = {"a": 0.01, "b": 0.03, "c": math.nan}
    estimates = {name: Estimate(0.5, 0.4, 0.6, p) for name, p in ps.items()}
    numbers = by_name(comparison_numbers(Origin("abc", "run"), estimates, dict.fromkeys(ps, 5)))
    assert {name: number.value for name, number in numbers.items() if name.startswith("p.")} == {
        "p.a": 0.02,
        "p.b": 0.03,
    }
    assert (numbers["c"].interval, numbers["c"].n) == ((0.4, 0.6), 5)


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_has_options_and_blocks_of_its_tables(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studies.papers.run.unit_vectors", lambda folder: "word 0.1\n")
    for table, choice in PLANS[name]:
        options = Inputs(tmp_path, tmp_path, Path("glove.txt"), "cpu", tiny=False).options(choice)
        assert blocks(find_table(table), options.only)
        assert options.vectors in (None, "glove.txt", str(tmp_path / "babi-vectors.txt"))
        assert options.seeds in (3, 5)


def test_an_unknown_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"'seta' is not a plan\.  There are: seat"):
        run(["seta"], out=tmp_path, data=tmp_path, glove=tmp_path)


def test_all_records_have_at_most_ten_megabytes() -> None:
    assert sum(file.stat().st_size for file in RECORDS.iterdir()) < 10_000_000
