"""The health of a model is judged by its records and its weights; edited ones are judged, too."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from steadygaze import TextClassifier
from steadygaze.estimator.model_folder import SavedModel
from steadygaze.estimator.model_health import assess, collapse_problems, reference_problems
from steadygaze.results.health import Health, HealthProblem, ProblemKind

INFORMATIVE = {"uniform": False, "constant": False, "distance_to_uniform": 0.2, "unexplained": 0.9, "unit": "word"}


def epoch(score: float, number: int = 1, stage: str = "train", loss: float = 0.5, **values: Any) -> dict[str, Any]:
    return {
        **{"stage": stage, "epoch": number, "macro-f1": score, "constant_label": None, "attention": INFORMATIVE},
        **{"terms": {"task": loss}, **values},
    }


@pytest.fixture(scope="module")
def saved() -> SavedModel:
    texts, labels = ["good", "bad", "fine", "poor"] * 10, ["yes", "no"] * 20
    clf = TextClassifier("average", epochs=1, settings={"hidden": 4}, device="cpu", verbose=False)
    return clf.fit(texts, labels).stored_


def kinds(saved: SavedModel, *history: dict[str, Any], n: int | None = 100, health: Any = ()) -> list[ProblemKind]:
    description = replace(
        saved.description,
        history=list(history),
        best_epoch=history[-1] if history else {},
        validation_texts=n,
        health=list(health),
    )
    return [problem.kind for problem in assess(description, saved.model)]


@pytest.mark.parametrize(
    ("history", "n", "expected"),
    [
        ([epoch(0.8)], 100, []),
        ([epoch(0.5)], 100, [ProblemKind.NOT_LEARNED]),
        ([epoch(0.5)], None, [ProblemKind.NOT_LEARNED]),
        ([epoch(0.4)], 19, []),  # chance: too few texts
        ([epoch(0.55), epoch(0.55, 2, loss=0.4999)], 100, [ProblemKind.NOT_LEARNED]),  # the loss stands still
        ([epoch(0.55), epoch(0.55, 2, loss=0.45)], 100, []),
        ([epoch(0.8), epoch(0.8, 2, loss=0.4999)], 100, []),  # fine-tuned from a good model
        ([epoch(0.33, constant_label=1)], 3, [ProblemKind.CONSTANT_LABEL]),
        ([epoch(0.33, constant_label="1")], 100, [ProblemKind.NOT_LEARNED]),  # edited
        ([epoch(0.8, attention={"uniform": True})], 100, [ProblemKind.COLLAPSED]),
        ([epoch(0.8, attention={**INFORMATIVE, "distance_to_uniform": 0.001})], 100, [ProblemKind.COLLAPSED]),
        ([epoch(0.8, attention={**INFORMATIVE, "distance_to_uniform": "x"})], 100, []),
        ([epoch(0.4, stage="teacher-0"), epoch(0.8, stage="student")], 100, [ProblemKind.UNLEARNED_TEACHER]),
        ([epoch(0.9, stage="reference"), epoch(0.8, stage="student")], 100, []),
        ([epoch(0.4, stage="skewed"), epoch(0.8)], 100, []),  # a start, not a teacher
        ([], None, []),
    ],
)
def test_the_records_decide(
    saved: SavedModel, history: list[dict[str, Any]], n: int | None, expected: list[ProblemKind]
) -> None:
    assert kinds(saved, *history, n=n) == expected


def test_saved_problems_are_kept_and_do_not_hide_others(saved: SavedModel) -> None:
    teacher = HealthProblem(ProblemKind.UNLEARNED_TEACHER, detail="reference 1")
    assert kinds(saved, epoch(0.4), health=[teacher.to_dict()]) == [
        ProblemKind.NOT_LEARNED,
        ProblemKind.UNLEARNED_TEACHER,
    ]
    constant = Health((HealthProblem(ProblemKind.CONSTANT_LABEL, label="a"),))
    (problem,) = reference_problems([Health(), constant])
    assert problem["detail"] == "reference 2"
    assert reference_problems([Health()]) == []


@pytest.mark.filterwarnings("ignore:there is no table of synonyms")
def test_a_student_of_a_reference_that_has_learned_nothing_says_so() -> None:
    texts, labels = ["the same text"] * 40, ["yes", "no"] * 20
    options: dict[str, Any] = {"epochs": 1, "settings": {"hidden": 4}, "device": "cpu", "verbose": False}
    reference = TextClassifier("average", **options).fit(texts, labels)
    assert reference.health.problems[0].kind is ProblemKind.CONSTANT_LABEL
    student = TextClassifier("average", "anchored", **options).fit(texts, labels, reference=reference)
    assert ProblemKind.UNLEARNED_TEACHER in [problem.kind for problem in student.health]


def test_weights_that_are_not_finite_are_the_worst_problem(saved: SavedModel) -> None:
    broken = torch.nn.Linear(1, 1)
    broken.weight.data[0, 0] = np.inf
    assert next(iter(assess(saved.description, broken))).kind is ProblemKind.NON_FINITE


def test_a_selection_is_named_by_what_it_selects() -> None:
    constant = {**INFORMATIVE, "constant": True, "unexplained": 0.01}
    (words,), (sentences,), (attention,) = (
        list(collapse_problems(record, selects))
        for record, selects in ((constant, True), ({**constant, "unit": "sentence"}, True), (constant, False))
    )
    assert [words.kind, sentences.kind, attention.kind] == [
        ProblemKind.UNINFORMATIVE,
        ProblemKind.INTERLOCKED,
        ProblemKind.COLLAPSED,
    ]
    assert list(collapse_problems("damaged", selects=False)) == []
