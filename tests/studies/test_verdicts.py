"""The study of verdicts: its plan, and tables of records made up here."""

import re
from collections import Counter
from dataclasses import asdict

import pytest

from studies.numbers import by_name
from studies.rendering import render
from studies.study import STUDIES
from studies.verdicts.plan import CORPORA, EXPLAINERS, ROWS, SEEDS, TEXTS, Job, open_jobs, plan
from studies.verdicts.run import VERDICTS
from studies.verdicts.table import ORDER, best_explainer, cells_of, is_yes, lines_of, numbers_of, obstacle

SHIFT = {"weight-correlation/reworded": [0.8, 0.76, 0.84, 180], "weight-correlation/reworded-top": [0.7, 0.6, 0.8, 180]}
UNUSED = {f"{name}-unused": value for name, value in SHIFT.items()}


def record_of(job: Job, stable: str = "undecided") -> dict:
    """Every answer is undecided but stability of integrated gradients."""
    answers = {name: dict.fromkeys((*VERDICTS, "stability-unused"), "undecided") for name in EXPLAINERS}
    answers["integrated-gradients"]["stability"] = stable
    numbers = {name: {**SHIFT, **UNUSED, "sufficiency/relative": [0.9, 0.8, 0.95, 100]} for name in EXPLAINERS}
    facts = {"texts": TEXTS, "training texts": 9, "accuracy": 0.5, "flips-own": 0.1, "flips-unused": 0.2, "cpu": 36.0}
    return {**asdict(job), **facts, "answers": answers, "numbers": numbers}


def records_of(stable_seeds: int) -> list[dict]:
    """`word-at-groups` is stable for so many seeds on three data sets."""
    return [
        record_of(
            job, "yes" if job.row == "word-at-groups" and job.seed < stable_seeds and job.corpus != "sst2" else "no"
        )
        for job in plan()
        if job.kind == "audit"
    ]


def test_the_plan_has_an_audit_of_every_row_data_set_and_seed_after_its_models():
    planned = plan()
    assert len({job.id for job in planned}) == len(planned)
    assert sum(job.kind == "audit" for job in planned) == len(CORPORA) * len(ROWS) * SEEDS
    for place, job in enumerate(planned):
        assert {*job.needs()} <= {*planned[:place]}
    assert {*ORDER} == {*ROWS}


def test_an_audit_compares_with_another_seed_of_the_same_models():
    assert [other.seed for other in Job("audit", "sst2", "seat", 0).others()] == [1]
    assert [other.seed for other in Job("audit", "sst2", "seat", 3).others()] == [2]
    assert {needed.row for needed in Job("audit", "sst2", "tempered", 0).needs()} == {"vanilla"}


def test_finished_audits_and_what_they_alone_need_are_left_out():
    planned = plan()
    rest = open_jobs(planned, r"^audit\.sst2\.(seat|vanilla)\.s0$", [Job("audit", "sst2", "vanilla", 0).id])
    assert [job.id for job in rest if job.kind == "audit"] == ["audit.sst2.seat.s0"]
    assert {job.row for job in rest if job.kind == "train"} == {"vanilla", "seat"}
    assert open_jobs(planned, "", [job.id for job in planned]) == []


@pytest.mark.parametrize(("stable_seeds", "data_sets"), [(4, 3), (3, 0)])
def test_a_row_is_a_yes_where_one_explainer_is_for_four_of_five_seeds(stable_seeds, data_sets):
    numbers = by_name(numbers_of(records_of(stable_seeds)))
    assert numbers["data-sets.stability.word-at-groups.integrated-gradients"].value == data_sets
    assert numbers["data-sets.stability.word-at-groups.any"].value == data_sets
    assert numbers["data-sets.stability.vanilla.any"].value == 0
    counts = f"{stable_seeds}/0/{SEEDS - stable_seeds}/0"
    assert numbers["seeds.stability.tweet_hate.word-at-groups.integrated-gradients"].value == counts
    assert numbers["cpu"].value == 36 * len(CORPORA) * len(ROWS) * SEEDS


def test_the_best_explainer_has_the_most_yes_and_then_the_fewest_no():
    cells = cells_of(records_of(4))
    assert best_explainer(cells["tweet_hate", "word-at-groups"], "stability") == "integrated-gradients"
    assert best_explainer(cells["tweet_hate", "vanilla"], "stability") == "attention"
    assert not is_yes(Counter())


def test_the_obstacle_is_the_row_whose_interval_is_farthest_below_its_threshold():
    group = cells_of(records_of(4))["sst2", "vanilla"]
    assert obstacle(group, "stability", "attention") == ("weight-correlation/reworded-top", [0.7, 0.6, 0.8, 180])
    name, _ = obstacle(group, "stability-unused", "attention") or ("", [])
    assert name == "weight-correlation/reworded-top-unused"


def test_the_table_has_a_line_for_every_answer():
    lines = lines_of(records_of(4)[:1])
    assert len(lines) == 1 + len(EXPLAINERS) * (len(VERDICTS) + 1)
    assert lines[2][:9] == ["sst2", "vanilla", "attention", "stability", "0", "1", "0", "0", "0"]
    assert lines[2][9] == "weight-correlation/reworded 0.800; weight-correlation/reworded-top 0.700"


@pytest.mark.parametrize(("stable_seeds", "sentence"), [(5, "It is met"), (0, "**Missed bar.**")])
def test_the_page_says_whether_the_bar_is_met(stable_seeds, sentence):
    numbers = by_name(numbers_of(records_of(stable_seeds)))
    template = (STUDIES["verdicts"].folder / "page.md.jinja").read_text(encoding="utf-8")
    page = render(template, "verdicts", lambda study: numbers)
    assert sentence in page
    assert re.search(r"`word-at` with groups is a \*yes\* on [30] of 4 data sets", page)
    assert page.count("| SST-2 |") == len(ROWS) + 6
