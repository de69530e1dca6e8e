"""Macro-F1 on small datasets: the records are complete, and differences are tested with a correction."""

from scipy.stats import ttest_1samp

from studies.small_data.plan import CORPORA, DEFAULT_ROWS, SIZES
from studies.small_data.table import corrected, scores_of
from studies.tables import RECORDS, read_records


def test_every_row_has_five_seeds_in_each_of_the_nine_cells() -> None:
    scores = scores_of(read_records([RECORDS / "small_data.jsonl"]))
    assert [*scores] == [(corpus, size) for corpus in CORPORA for size in SIZES]
    for cell, rows in scores.items():
        assert {row: sorted(seeds) for row, seeds in rows.items()} == {row: [0, 1, 2, 3, 4] for row in DEFAULT_ROWS}, (
            cell
        )


def test_settings_were_compared_on_held_out_texts() -> None:
    assert {record["split"] for record in read_records([RECORDS / "small_data_settings.jsonl"])} == {"held-out"}


def test_the_p_values_of_a_table_are_corrected_by_holm_s_method() -> None:
    """p of 0.003 and 0.049: after the correction 0.007 and 0.049; beside a third of 1, 0.010 and 0.099."""
    clear, weak, none = [0.9, 1.0, 1.1], [0.6, 1.0, 1.4], [-1.0, 0.0, 1.0]
    p = [float(ttest_1samp(numbers, 0).pvalue) for numbers in (clear, weak)]
    assert p[1] < 0.05 < 2 * p[1]
    assert [value < 0.05 for value in corrected([clear, weak])] == [True, True]
    assert [value < 0.05 for value in corrected([clear, weak, none])] == [True, False, False]
