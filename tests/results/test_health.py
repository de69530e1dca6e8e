"""Health: problems as data, their sentences, and the rules for fitted explainers."""

import json
from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from steadygaze.core.errors import HealthWarning
from steadygaze.results.health import HEALTHY, SENTENCES, Health, HealthProblem, ProblemKind
from steadygaze.results.leakage_warnings import CONSTANT, FIDELITY, NO_WORDS, RANDOM_WORDS, READER, explainer_health
from steadygaze.results.row import Row

COLLAPSE = HealthProblem(ProblemKind.COLLAPSED, detail="The weights are nearly the same for every word.")
CONSTANT_LABEL = HealthProblem(ProblemKind.CONSTANT_LABEL, label="<ok>")


@pytest.mark.parametrize("kind", ProblemKind)
def test_every_state_has_a_sentence_that_survives_json(kind: ProblemKind) -> None:
    health = Health((HealthProblem(kind, label="ok", value=0.4, limit=0.5, detail="Why."),))
    (values,) = json.loads(json.dumps(health.to_list()))
    assert values["message"] == health.sentence
    assert "The model " in values["message"]
    assert "{" not in values["message"]
    assert Health.from_list([values]) == health == TypeAdapter(Health).validate_python([values])
    assert SENTENCES.keys() == set(ProblemKind)


def test_a_problem_of_two_sources_is_listed_once_and_the_worst_is_first() -> None:
    both = Health((COLLAPSE,)) + Health((replace(COLLAPSE, detail="Another."), CONSTANT_LABEL))
    assert [problem.kind for problem in both] == [ProblemKind.CONSTANT_LABEL, ProblemKind.COLLAPSED]
    assert both.problems[1].detail == COLLAPSE.detail
    assert both - Health((COLLAPSE,)) == Health((CONSTANT_LABEL,))
    subjects = [problem.subject for problem in both + both.of("word-at")]
    assert subjects == ["The model", "word-at"] * 2, "the order of the sum"


def test_a_healthy_model_says_nothing() -> None:
    assert (HEALTHY.sentence, HEALTHY.banner, HEALTHY.to_list(), HEALTHY.ok) == ("", "", [], True)
    HEALTHY.warn()


def test_labels_are_escaped_and_the_warning_has_a_class() -> None:
    health = Health((CONSTANT_LABEL,))
    assert "&lt;ok&gt;" in health.banner
    with pytest.warns(HealthWarning, match="predicts the label '<ok>'"):
        health.warn()
    assert health.renamed({"<ok>": "fine"}).problems[0].label == "fine"


@pytest.mark.parametrize(
    ("fidelity", "reader", "n", "expected"),
    [
        (0.9, 0.8, 100, []),
        (0.5, 0.8, 100, [ProblemKind.LOW_FIDELITY]),
        (0.9, 0.6, 100, [ProblemKind.RANDOM_SELECTION]),
        (0.5, 0.6, 19, []),
    ],
)
def test_an_explainer_must_beat_a_constant_class_and_random_words(
    fidelity: float, reader: float, n: int, expected: list[ProblemKind]
) -> None:
    values = {FIDELITY: fidelity, NO_WORDS: 0.5, READER: reader, RANDOM_WORDS: 0.6}
    rows = [Row(name, value, n) for name, value in values.items()]
    health = explainer_health(rows, "l2x")
    assert [problem.kind for problem in health] == expected
    assert all(problem.sentence.startswith("The explainer l2x ") for problem in health)
    (problem,) = explainer_health([replace(row, notes=(CONSTANT,)) for row in rows], "l2x")
    assert problem.kind is ProblemKind.ONE_LABEL
