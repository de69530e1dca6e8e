"""Long texts on transformers: every reading has its seeds, and the cost of windows is within the target."""

from studies.long_texts.table import FILE, NAMES, SHORT, cost_columns, numbers, readings
from studies.numbers import by_name
from studies.tables import read_records


def test_every_reading_has_three_seeds_and_the_same_test_reviews() -> None:
    runs = readings(read_records([FILE]))
    assert {row: [run["seed"] for run in group] for row, group in runs.items()} == {row: [0, 1, 2] for row in NAMES}
    assert len({(run["long"], *run["sizes"]) for group in runs.values() for run in group}) == 1


def test_the_cost_of_windows_is_within_the_target_in_both_runs_on_a_gpu() -> None:
    columns = cost_columns()
    gpu = [columns[f"{run}-{step}"] for run in ("h200", "repeated") for step in ("forward", "training")]
    assert max(max(column.values()) for column in gpu) <= 1.2
    assert {len(column) for column in gpu} == {7}
    assert set(columns["cpu-forward"]) == set(columns["cpu-training"]) == set(SHORT)


def test_a_difference_between_readings_is_paired_by_seed() -> None:
    named, runs = by_name(numbers()), readings(read_records([FILE]))
    pairs = zip(runs["windows"], runs["truncated509"], strict=True)
    differences = [ours["accuracy"] - theirs["accuracy"] for ours, theirs in pairs]
    number = named["windows-above.truncated509"]
    assert abs(number.value - sum(differences) / 3) < 1e-8  # type: ignore[operator]
    assert number.interval is not None
    assert number.interval[0] < 0 < number.interval[1]
