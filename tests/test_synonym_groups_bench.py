"""bench/synonym_groups.py: teachers of students, the order of jobs, equal entropy, and the tempered control."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from steadygaze.core.maths.distributions import entropy

BENCH = Path(__file__).parent.parent / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(BENCH))
    before = set(sys.modules)
    yield
    for name in {file.stem for file in BENCH.glob("*.py")} & set(sys.modules) - before:
        del sys.modules[name]


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
def test_students_share_no_teacher_and_follow_them(tmp_path: Path):
    from cheaper_consensus import Job
    from synonym_groups import plan

    students = [Job("sst2", "4-4-t2-e2", "both", seed) for seed in range(3)]
    teachers = [teacher for student in students for teacher in student.teachers]
    assert [teacher.seed for teacher in teachers] == list(range(6))
    jobs = [*students, *teachers]
    assert plan(tmp_path, jobs) == [teachers[0]]
    for teacher in teachers[:2]:
        (tmp_path / "records" / f"{teacher.id}.json").parent.mkdir(exist_ok=True)
        (tmp_path / "records" / f"{teacher.id}.json").write_text("{}")
        (tmp_path / "models" / teacher.id).mkdir(parents=True)
    assert plan(tmp_path, jobs) == [students[0]]


@pytest.mark.usefixtures("bench")
def test_vanilla_at_an_entropy_is_interpolated_between_temperatures():
    from synonym_table import _at_entropy

    values = {"test": (0.4, 1.0), "temperature 2.0": (0.6, 0.5), "temperature 3.0": (0.8, 0.3)}
    model = {name: {"normalized-entropy": e, "shift": shift} for name, (e, shift) in values.items()}
    assert _at_entropy([model], "test", "shift", 0.5) == pytest.approx(0.75)
    assert _at_entropy([model], "test", "shift", 0.9) == pytest.approx(0.3)  # constant beyond
