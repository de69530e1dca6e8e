"""The study of synonym groups: teachers of students, the order of jobs, equal confidence, and tables."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from studies.synonyms.data import StudyData
from studies.synonyms.measures import scaled_comprehensiveness
from studies.synonyms.plan import FACTORS, LONG, Job, Row, matching_jobs, name_of, plan, row_of, teachers_of
from studies.synonyms.run import complete_seeds
from studies.synonyms.runs import PARTS, Records, at_entropy
from studies.synonyms.table import MAX_RATIOS, shortfall, targets_table


def test_students_share_no_teacher_and_follow_them():

    students = [Job("sst2", "4-4-t2-e2", "both", seed) for seed in range(3)]
    teachers = [teacher for student in students for teacher in student.teachers]
    assert [teacher.seed for teacher in teachers] == list(range(6))
    assert teachers_of(students[1]) == (teachers[2].id, teachers[3].id)
    assert teachers_of(teachers[0]) == ()


def test_rows_that_are_passed_keep_their_order_and_teachers_come_first():

    jobs = plan({"4-4-t2-e2": ("both",)}, ["sst2"], 3, in_order=True)
    assert [job.seed for job in jobs] == [0, 1, 0, 2, 3, 1, 4, 5, 2]
    assert jobs[2] == Job("sst2", "4-4-t2-e2", "both", 0)


def test_seeds_are_compared_also_if_the_lower_one_was_measured_later(tmp_path: Path):
    """Weights (1, 0) and (0, 1) have a divergence of ln 2."""

    for folder in ("records", "seen/test"):
        (tmp_path / folder).mkdir(parents=True)
    for seed, weights in enumerate(([[1.0, 0.0]], [[0.0, 1.0]])):
        job = {"corpus": "sst2", "technique": "vanilla", "groups": "none", "seed": seed}
        (tmp_path / "records" / f"{seed}.json").write_text(json.dumps({**job, "test": {"seeds": None}}))
        np.savez(tmp_path / "seen" / "test" / f"sst2.vanilla.none.s{seed}.npz", weights=weights, mask=[[True, True]])
    complete_seeds(tmp_path)
    distances = [json.loads((tmp_path / "records" / f"{seed}.json").read_text())["test"]["seeds"] for seed in (0, 1)]
    assert distances == [None, pytest.approx(math.log(2))]


def test_students_substitute_by_the_tables_of_their_groups(tmp_path: Path):

    tables = {"cf": {"good": ["fine"], "film": ["movie"]}, "wn": {"good": ["nice", "fine"]}}
    for name, table in tables.items():
        rows = [json.dumps({"word": word, "synonyms": row}) for word, row in table.items()]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    study = StudyData(tmp_path, tmp_path / "out")
    for groups, good in (("none", ["fine"]), ("wn", ["nice", "fine"]), ("linked", ["fine", "nice"])):
        rows = map(json.loads, study.substitutes(groups).read_text().splitlines())
        assert {row["word"]: row["synonyms"] for row in rows}["good"] == good


def test_a_margin_makes_ratios_stricter_but_not_macro_f1(tmp_path: Path):
    """All ratios of the row meet their bars exactly; macro-F1 too."""

    base = dict.fromkeys((*MAX_RATIOS, "comprehensiveness"), 1.0) | {"macro-f1": 0.8}
    row = MAX_RATIOS | {"comprehensiveness": 0.93, "macro-f1": 0.815}
    job = {"corpus": "sst2", "groups": "none"}
    lines = [json.dumps({**job, "technique": t, "test": cell}) for t, cell in (("vanilla", base), ("word-at", row))]
    (tmp_path / "records.jsonl").write_text("\n".join(lines))
    records = Records([str(tmp_path / "records.jsonl")], "test", [])
    assert shortfall(records, ("word-at", "none")) == pytest.approx(0.0, abs=1e-9)
    assert shortfall(records, ("word-at", "none"), 0.1) == pytest.approx(0.1 * 6)


def test_vanilla_at_an_entropy_is_interpolated_between_temperatures():

    values = {"test": (0.4, 1.0), "temperature 2.0": (0.6, 0.5), "temperature 3.0": (0.8, 0.3)}
    model = {name: {"normalized-entropy": e, "shift": shift} for name, (e, shift) in values.items()}
    assert at_entropy([model], "test", "shift", 0.5) == pytest.approx(0.75)
    assert at_entropy([model], "test", "shift", 0.9) == pytest.approx(0.3)  # constant beyond


def test_comprehensiveness_with_scaled_logits_by_hand():
    """Probabilities 4/5 and 1/2 without the top words; logits times 2: 16/17 and 1/2."""

    full, erased = torch.tensor([[0.8, 0.2]]).double(), torch.tensor([[[0.5, 0.5]]]).double()
    assert scaled_comprehensiveness(full, erased, 1.0) == pytest.approx((0.8, 0.3))
    assert scaled_comprehensiveness(full, erased, 2.0) == pytest.approx((16 / 17, 16 / 17 - 0.5))


def test_equal_confidence_compares_at_the_confidence_of_vanilla(tmp_path: Path):
    """Vanilla: confidence 0.9, 0.30.  The row has 0.10 at 0.8 and 0.30 at 1.0, so 0.20 at 0.9: two thirds."""

    def model(technique: str, confidences: dict[float, tuple[float, float]], value: float) -> str:
        points = [confidences[factor] for factor in FACTORS]
        cell = {"comprehensiveness": value, "scaled": points}
        return json.dumps({"corpus": "sst2", "technique": technique, "groups": "none", "test": cell})

    vanilla = dict.fromkeys(FACTORS, (0.9, 0.3))
    row = {factor: (0.8, 0.1) if factor <= 1 else (1.0, 0.3) for factor in FACTORS}
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join([model("vanilla", vanilla, 0.3), model("word-at", row, 0.1)]))
    records = Records([str(file)], "test", [])
    assert records.ratio(("word-at", "none"), "comprehensiveness") == pytest.approx(1 / 3)
    assert records.equal_confidence(("word-at", "none")) == pytest.approx(2 / 3)


def test_a_record_replaces_that_of_the_same_job_in_an_earlier_file(tmp_path: Path):

    job = {"corpus": "imdb", "technique": "vanilla", "groups": "none"}
    runs = {"old": [(0, 0.1), (1, 0.2)], "new": [(0, 0.5)]}
    for file, scores in runs.items():
        lines = [json.dumps({**job, "seed": seed, "test": {"macro-f1": score}}) for seed, score in scores]
        (tmp_path / file).write_text("\n".join(lines))
    records = Records([str(tmp_path / file) for file in runs], "test", [])
    assert records.average("imdb", ("vanilla", "none"), "macro-f1") == pytest.approx(0.35)


def test_a_job_is_selected_with_its_teachers():
    jobs = plan({"vanilla": ("none",), "4-4-t2-e2": ("both",)}, ["sst2"], 1, in_order=False)
    selected = {job.id for job in matching_jobs(jobs, "e2")}
    assert selected == {"sst2.4-4-t2-e2.both.s0", "sst2.fast-4-4.both.s0", "sst2.fast-4-4.both.s1"}


def test_no_two_rows_have_one_name():
    techniques = {technique for part in PARTS.values() for technique, _ in part.records.rows}
    assert len(techniques) > 40
    assert len({name_of(technique) for technique in techniques}) == len(techniques)


def test_a_name_has_the_settings_of_its_row():
    assert row_of("fast-4-4") == Row("word-at", {"learning_rate": 4e-3, "schedule": "linear"}, epochs=4)
    student = Row("consensus", {"target_temperature": 0.5, "swaps": 4.0}, "fast-4-4", 2, 8, own_tables=True)
    assert row_of(LONG) == student
    assert row_of("t5-e2") == Row("consensus", {}, "word-at", 5, 2)
    assert row_of("4-4-t2-e2-no-swaps") == Row("consensus", {"swaps": 0.0}, "fast-4-4", 2, 2)
    assert row_of("self-anchor") is None


def test_the_long_student_meets_every_target_that_the_table_has():
    """Beside those of the table, its cost is to be at most three vanilla runs: it is not."""
    records = PARTS["second"].records
    heading, *rows = targets_table(records, LONG)
    assert {row[heading.index("met")] for row in rows} == {"yes"}
    assert records.cost((LONG, "both")) > 3


@pytest.mark.slow
def test_a_part_has_all_the_models_of_the_rows_that_the_page_names():
    counts = {name: {part.records.count(row) for row in part.rows} for name, part in PARTS.items() if part.rows}
    assert counts["first"] == counts["minilm"] == counts["minilm-second"] == {5}
    assert min(count for part in counts.values() for count in part) >= 1
