"""bench/synonym_groups.py: teachers of students, the order of jobs, equal entropy and confidence, and tables."""

import argparse
import json
import math
import re
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
def test_rows_that_are_passed_keep_their_order_and_teachers_come_first(monkeypatch: pytest.MonkeyPatch):
    import synonym_groups
    from cheaper_consensus import Job

    monkeypatch.setattr(synonym_groups, "STUDY", {"4-4-t2-e2": ("both",)})
    jobs = synonym_groups.all_jobs(False, ["sst2"], 3, in_order=True)
    assert [job.seed for job in jobs] == [0, 1, 0, 2, 3, 1, 4, 5, 2]
    assert jobs[2] == Job("sst2", "4-4-t2-e2", "both", 0)


@pytest.mark.usefixtures("bench")
def test_seeds_are_compared_also_if_the_lower_one_was_measured_later(tmp_path: Path):
    """Weights (1, 0) and (0, 1) have a divergence of ln 2."""
    import numpy as np

    from synonym_groups import complete_seeds

    for folder in ("records", "seen/test"):
        (tmp_path / folder).mkdir(parents=True)
    for seed, weights in enumerate(([[1.0, 0.0]], [[0.0, 1.0]])):
        job = {"corpus": "sst2", "technique": "vanilla", "groups": "none", "seed": seed}
        (tmp_path / "records" / f"{seed}.json").write_text(json.dumps({**job, "test": {"seeds": None}}))
        np.savez(tmp_path / "seen" / "test" / f"sst2.vanilla.none.s{seed}.npz", weights=weights, mask=[[True, True]])
    complete_seeds(tmp_path)
    distances = [json.loads((tmp_path / "records" / f"{seed}.json").read_text())["test"]["seeds"] for seed in (0, 1)]
    assert distances == [None, pytest.approx(math.log(2))]


@pytest.mark.usefixtures("bench")
def test_students_substitute_by_the_tables_of_their_groups(tmp_path: Path):
    from synonym_jobs import Study

    tables = {"cf": {"good": ["fine"], "film": ["movie"]}, "wn": {"good": ["nice", "fine"]}}
    for name, table in tables.items():
        rows = [json.dumps({"word": word, "synonyms": row}) for word, row in table.items()]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    study = Study(argparse.Namespace(tables=tmp_path, out=tmp_path / "out"))
    for groups, good in (("none", ["fine"]), ("wn", ["nice", "fine"]), ("linked", ["fine", "nice"])):
        rows = map(json.loads, study.substitutes(groups).read_text().splitlines())
        assert {row["word"]: row["synonyms"] for row in rows}["good"] == good


@pytest.mark.usefixtures("bench")
def test_coverage_of_substitutions_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """WordNet has good → nice, in a group with it, and good → great, which only students of both tables see."""
    from types import SimpleNamespace

    from steadygaze.data.synonym_groups import SynonymGroups
    from synonym_jobs import Study

    for name, row in (("cf", ["nice"]), ("wn", ["nice", "great"])):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"word": "good", "synonyms": row}))
    study = Study(argparse.Namespace(tables=tmp_path))
    monkeypatch.setattr(study, "split", lambda *_: [SimpleNamespace(text="good nice great")] * 2)
    monkeypatch.setattr(study, "groups", lambda *_: SynonymGroups((("good", "nice"),)))
    assert study.coverage("sst2", "cf") == {"cf": (1.0, 0.0), "wn": (0.5, 0.0)}
    assert study.coverage("sst2", "both") == {"cf": (1.0, 0.0), "wn": (0.5, 0.5)}


@pytest.mark.usefixtures("bench")
def test_sharper_attention_by_hand():
    """Mean weights 0.8 and 0.2, temperature 0.5: 0.64 / 0.68 and 0.04 / 0.68; padding stays 0."""
    from types import SimpleNamespace

    from cheaper_consensus import SharperAttention

    output = SimpleNamespace(logits=torch.zeros(1, 2), weights=torch.tensor([[0.8, 0.2, 0.0]]))
    targets = SharperAttention(attention_temperature=0.5).cache_targets({"teacher-0": lambda _: output}, None)  # type: ignore[arg-type]
    torch.testing.assert_close(targets.tokens["weights"], torch.tensor([[16 / 17, 1 / 17, 0.0]]))
    assert targets.texts["probs"].tolist() == [[0.5, 0.5]]


@pytest.mark.usefixtures("bench")
def test_a_margin_makes_ratios_stricter_but_not_macro_f1(tmp_path: Path):
    """All ratios of the row meet their bars exactly; macro-F1 too."""
    from synonym_table import MAX_RATIOS, Records, shortfall

    base = dict.fromkeys((*MAX_RATIOS, "comprehensiveness"), 1.0) | {"macro-f1": 0.8}
    row = MAX_RATIOS | {"comprehensiveness": 0.93, "macro-f1": 0.815}
    job = {"corpus": "sst2", "groups": "none"}
    lines = [json.dumps({**job, "technique": t, "test": cell}) for t, cell in (("vanilla", base), ("word-at", row))]
    (tmp_path / "records.jsonl").write_text("\n".join(lines))
    records = Records([str(tmp_path / "records.jsonl")], "test", [])
    assert shortfall(records, ("word-at", "none")) == pytest.approx(0.0, abs=1e-9)
    assert shortfall(records, ("word-at", "none"), 0.1) == pytest.approx(0.1 * 6)


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
    records = Records([str(BENCH.parent / "studies" / "records" / "synonym_groups_five_seeds.jsonl")], "test", [])
    heading, *table = main_table(records)
    hidden = {heading.index("comp. at equal confidence"), heading.index("cost")}
    rows = [[names.get(cell, cell) for i, cell in enumerate(line) if i not in hidden] for line in table]
    rows = [row for row in rows if not row[0].startswith("fast-")]  # teachers
    assert len(rows) == 15
    assert [row for row in rows if f"| {' | '.join(row)} |" not in page] == []


@pytest.mark.usefixtures("bench")
@pytest.mark.parametrize(
    ("parts", "corpus", "name", "count"),
    [
        ("tempered imdb-3a7fb79 long_student", "imdb", "IMDB", 10),
        ("tempered", "sst2-minilm", "SST-2, MiniLM", 6),
        ("minilm-db9835f", "sst2-minilm", "SST-2, MiniLM, second run", 2),
    ],
)
def test_the_rows_of_long_texts_and_transformers_are_those_of_the_records(
    parts: str, corpus: str, name: str, count: int
):
    from studies.tables import minus_signs
    from synonym_table import Records, main_table

    page = (BENCH.parent / "docs" / "results" / "synonym-groups.md").read_text()
    names = {"4-4-t2-e2-x0.5": "two short teachers, T = 0.5", "linked": "both, linked", "nan": "–"}
    names |= {"4-4-t2-e8-own-x0.5-s4": "long student", "4-4-t2-e8-own-x0.5-s8": "long student, weight 8"}
    files = [BENCH.parent / "studies" / "records" / f"synonym_groups_{part}.jsonl" for part in parts.split()]
    heading, *table = main_table(Records([*map(str, files)], "test", [corpus]))
    cost = heading.index("cost")
    table = [line for line in table if line[0] in names or "-own-" not in line[0]]
    rows = [[name, *(names.get(cell, cell) for i, cell in enumerate(line) if i != cost)] for line in table]
    assert len(rows) == count
    assert [row for row in rows if minus_signs(f"| {' | '.join(row)} |") not in page] == []


def settings_of(technique: str) -> str:
    """Name of a row of the long student on the page."""
    match = re.match(r"4-4-t2-e(\d)-own-x([\d.]+)(?:-a([\d.]+))?(?:-s(\d+))?( \()?", technique)
    if match is None:
        return technique
    epochs, temperature, attention, weight, part = match.groups()
    name = f"{epochs} epochs, T = {temperature}, weight {weight or 1}" + f", τ = {attention}" * bool(attention)
    return name + " (without IMDB)" * bool(part)


@pytest.mark.usefixtures("bench")
def test_the_rows_of_the_long_student_are_those_of_the_records():
    from synonym_table import Records, main_table, shortfall

    page = (BENCH.parent / "docs" / "results" / "synonym-groups.md").read_text().replace("**", "")
    files = [
        str(BENCH.parent / "studies" / "records" / f"synonym_groups_{part}.jsonl")
        for part in ("five_seeds", "tempered", "long_student")
    ]
    corpora = ["sst2", "rotten_tomatoes", "tweet_emotion", "imdb"]
    rows = []
    _, *table = main_table(Records(files, "test", corpora))
    for technique, groups, *cells in table:
        if "e8-own-x0.5" in technique and "-a0" not in technique:
            rows.append([settings_of(technique), groups.replace("linked", "both, linked"), *cells])
    records = Records(files, "validation", corpora)
    heading, *table = main_table(records)
    columns = ["models", "cost", *heading[3:6], "seeds", "comp.", "comp. at equal confidence", "entropy"]
    for line in table:
        if "-own-" in line[0] and line[1] == "both":
            missing = f"{shortfall(records, (line[0], 'both'), 0.1):.2f}"
            rows.append([settings_of(line[0]), *(line[heading.index(column)] for column in columns), missing])
    assert len(rows) == 10 + 13
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
