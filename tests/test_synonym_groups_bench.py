"""bench/synonym_groups.py: teachers of students, the order of jobs, equal entropy and confidence, and tables."""

import json
from pathlib import Path

import pytest
import torch

from steadygaze.core.maths.distributions import entropy

BENCH = Path(__file__).parent.parent / "bench"


@pytest.mark.usefixtures("bench")
def test_a_temperature_gives_each_text_the_target_entropy():
    from cheaper_consensus import with_entropy

    torch.manual_seed(0)
    mask = torch.arange(9) < torch.tensor([[9], [5], [3]])
    weights = torch.randn(3, 9, dtype=torch.float64).masked_fill(~mask, -torch.inf).softmax(-1)
    target = torch.tensor([2.0, 0.7, 1.0], dtype=torch.float64)
    tempered = with_entropy(weights, mask, target)
    torch.testing.assert_close(entropy(tempered, mask), target, rtol=0, atol=1e-6)
    assert torch.equal(tempered.argsort(-1)[0], weights.argsort(-1)[0])  # a temperature keeps the order
    assert (tempered[~mask] == 0).all()


@pytest.mark.usefixtures("bench")
def test_students_share_no_teacher_and_follow_them():
    from cheaper_consensus import Job
    from synonym_groups import teachers_of

    students = [Job("sst2", "4-4-t2-e2", "both", seed) for seed in range(3)]
    teachers = [teacher for student in students for teacher in student.teachers]
    assert [teacher.seed for teacher in teachers] == list(range(6))
    assert teachers_of(students[1]) == (teachers[2].id, teachers[3].id)
    assert teachers_of(teachers[0]) == ()


@pytest.mark.usefixtures("bench")
def test_vanilla_at_an_entropy_is_interpolated_between_temperatures():
    from synonym_table import _at_entropy

    values = {"test": (0.4, 1.0), "temperature 2.0": (0.6, 0.5), "temperature 3.0": (0.8, 0.3)}
    model = {name: {"normalized-entropy": e, "shift": shift} for name, (e, shift) in values.items()}
    assert _at_entropy([model], "test", "shift", 0.5) == pytest.approx(0.75)
    assert _at_entropy([model], "test", "shift", 0.9) == pytest.approx(0.3)  # constant beyond


@pytest.mark.usefixtures("bench")
def test_comprehensiveness_with_scaled_logits_by_hand():
    """Probabilities 4/5 and 1/2 without the top words; logits times 2: 16/17 and 1/2."""
    from synonym_measures import scaled_comprehensiveness

    full, erased = torch.tensor([[0.8, 0.2]]).double(), torch.tensor([[[0.5, 0.5]]]).double()
    assert scaled_comprehensiveness(full, erased, 1.0) == pytest.approx((0.8, 0.3))
    assert scaled_comprehensiveness(full, erased, 2.0) == pytest.approx((16 / 17, 16 / 17 - 0.5))


@pytest.mark.usefixtures("bench")
def test_equal_confidence_compares_at_the_confidence_of_vanilla(tmp_path: Path):
    """Vanilla: confidence 0.9, 0.30.  The row has 0.10 at 0.8 and 0.30 at 1.0, so 0.20 at 0.9: two thirds."""
    from synonym_table import FACTORS, Records

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


@pytest.mark.usefixtures("bench")
def test_the_rows_of_the_page_are_those_of_the_records():
    from synonym_table import Records, main_table

    page = (BENCH.parent / "docs" / "results" / "synonym-groups.md").read_text()
    names = {"4-4-t2-e2": "two short teachers", "linked": "both, linked"}
    records = Records([str(BENCH / "records" / "synonym_groups_five_seeds.jsonl")], "test", [])
    heading, *table = main_table(records)
    hidden = {heading.index("comp. at equal confidence"), heading.index("cost")}
    rows = [[names.get(cell, cell) for i, cell in enumerate(line) if i not in hidden] for line in table]
    rows = [row for row in rows if not row[0].startswith("fast-")]  # teachers
    assert len(rows) == 15
    assert [row for row in rows if f"| {' | '.join(row)} |" not in page] == []


@pytest.mark.usefixtures("bench")
@pytest.mark.parametrize(("corpus", "name", "count"), [("imdb", "IMDB", 7), ("sst2-minilm", "SST-2, MiniLM", 6)])
def test_the_rows_of_long_texts_and_transformers_are_those_of_the_records(corpus: str, name: str, count: int):
    from synonym_table import Records, main_table

    page = (BENCH.parent / "docs" / "results" / "synonym-groups.md").read_text()
    names = {"4-4-t2-e2-x0.5": "two short teachers, T = 0.5", "linked": "both, linked", "nan": "–"}
    files = [BENCH / "records" / f"synonym_groups_{part}.jsonl" for part in ("tempered", "imdb-3a7fb79")]
    heading, *table = main_table(Records([*map(str, files)], "test", [corpus]))
    cost = heading.index("cost")
    rows = [[name, *(names.get(cell, cell) for i, cell in enumerate(line) if i != cost)] for line in table]
    assert len(rows) == count
    assert [row for row in rows if f"| {' | '.join(row)} |" not in page] == []


@pytest.mark.usefixtures("bench")
def test_a_record_replaces_that_of_the_same_job_in_an_earlier_file(tmp_path: Path):
    from synonym_table import Records

    job = {"corpus": "imdb", "technique": "vanilla", "groups": "none"}
    runs = {"old": [(0, 0.1), (1, 0.2)], "new": [(0, 0.5)]}
    for file, scores in runs.items():
        lines = [json.dumps({**job, "seed": seed, "test": {"macro-f1": score}}) for seed, score in scores]
        (tmp_path / file).write_text("\n".join(lines))
    records = Records([str(tmp_path / file) for file in runs], "test", [])
    assert records.average("imdb", ("vanilla", "none"), "macro-f1") == pytest.approx(0.35)
