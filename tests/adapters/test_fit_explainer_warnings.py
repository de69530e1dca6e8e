"""Messages during and after the fit of an explainer."""

import warnings
from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from opinions import CLASSES, QUICK
from steadygaze.adapters.fit_explainer import fit_explainer
from steadygaze.cli.fit_explainer_command import FitProgress, _progress
from steadygaze.core.errors import LeakageWarning
from steadygaze.results.leakage_warnings import ONE_LABEL, leakage_warnings
from steadygaze.results.row import Row


def row(measure: str, value: float, low: float, high: float, **settings: Any) -> Row:
    return Row(measure, value, 200, (low, high), {"explainer": "l2x", "mitigation": "none", **settings})


def rows(gap: Any, black_box: Any, **settings: Any) -> list[Row]:
    """Of an explainer whose approximator is right in 100 % of the texts."""
    return [
        row("post-hoc-accuracy", 1 - black_box[0], 0, 1, **settings),
        row("fidelity", 1, 1, 1, **settings),
        row("independent-reader-accuracy", 1 - gap[0], 0, 1, **settings),
        row("independent-reader-accuracy/random-words", 0.5, 0.4, 0.6, **settings),
        row("leakage-gap", *gap, **settings),
        row("leakage-gap/black-box", *black_box, **settings),
    ]


NONE, SMALL, LARGE = (0.0, -0.05, 0.05), (0.1, 0.04, 0.16), (0.3, 0.2, 0.4)


@pytest.mark.parametrize(
    ("gap", "black_box", "start"),
    [
        (LARGE, LARGE, "Label leakage: "),
        (LARGE, (0.1, 0.06, 0.14), "Label leakage: "),
        (LARGE, SMALL, ""),  # the black box may predict as well as the approximator
        (SMALL, LARGE, "The black box does not predict the same from the selected words: "),
        (NONE, NONE, ""),
        ((0.3, 0.02, 0.6), LARGE, "The black box does not"),  # too few texts to decide
    ],
)
def test_leakage_is_reported_when_only_the_own_approximator_recovers_the_label(
    gap: Any, black_box: Any, start: str
) -> None:
    result = leakage_warnings(rows(gap, black_box))
    assert [str(warning)[: len(start)] for warning in result] == ([start] if start else [])


def test_the_warning_names_all_independent_readers_and_the_mitigation() -> None:
    (sentence,) = map(str, leakage_warnings(rows(LARGE, (0.25, 0.15, 0.35))))
    assert (
        "recovers the predicted class 30 % more often than an independent reader and 25 % more often than" in sentence
    )
    assert "(accuracy of the reader: 70 %, 50 % from random words)" in sentence
    assert sentence.endswith("do not read them as reasons.  Fit again with --mitigation random-pretraining.")


def test_a_fit_with_nothing_to_explain_gives_that_warning_alone() -> None:
    (sentence,) = map(str, leakage_warnings([replace(row, notes=(ONE_LABEL,)) for row in rows(LARGE, LARGE)]))
    assert sentence.startswith("The black box predicts the same label for all")


def test_what_does_not_apply_is_not_advised() -> None:
    for settings in ({"mitigation": "random-pretraining"}, {"explainer": "ail"}):
        (sentence,) = map(str, leakage_warnings(rows(LARGE, LARGE, **settings)))
        assert "mitigation" not in sentence
    assert leakage_warnings([row("post-hoc-accuracy", 0.1, 0.1, 0.1)]) == [], "cxplain has no approximator"


def test_an_explainer_of_an_older_version_has_not_been_tested_for_leakage() -> None:
    (sentence,) = map(str, leakage_warnings([row("post-hoc-accuracy", 1, 1, 1), row("fidelity", 1, 1, 1)]))
    assert sentence.startswith("No independent reader was trained with this explainer: fit it again")


def test_a_warning_is_a_line_unless_the_scores_repeat_it() -> None:
    log = Console(file=StringIO(), force_terminal=False, width=400)
    with _progress(log):
        warnings.warn("12 of 40 texts are short", stacklevel=1)
        for known in (
            rows(LARGE, LARGE),
            rows(NONE, LARGE),
            [row("fidelity", 1, 1, 1)],
            [replace(row("fidelity", 1, 1, 1), notes=(ONE_LABEL,))],
        ):
            warnings.warn(*map(str, leakage_warnings(known)), LeakageWarning, stacklevel=1)
    assert log.file.getvalue().splitlines() == ["12 of 40 texts are short"]


def test_one_progress_bar_shows_all_tasks_in_order() -> None:
    calls: list[tuple[str, int, int]] = []
    log = Console(file=StringIO(), force_terminal=False, width=80)
    steps = FitProgress(log, lambda *what: calls.append(what))
    steps.start(stages=2, epochs=3, steps=2)
    for _ in range(2):
        steps.drawn = 0.0
        steps.step("random masks", 0, {"prediction": torch.tensor([0.25, 0.75])})
    steps.epoch({"stage": "random masks", "epoch": 1, "terms": {"prediction": 0.5}, "fidelity": 0.75})
    steps.skip(1)
    steps.drawn = 0.0
    steps.step("selecting", 1, {"prediction": torch.tensor([0.5])})
    steps.stop()
    assert calls == [
        ("training", 0, 6),
        ("random masks, epoch 1", 1, 6),
        ("random masks, epoch 1", 2, 6),
        ("selecting, epoch 2", 5, 6),
        ("measuring", 6, 6),
    ]
    assert log.file.getvalue().splitlines() == ["random masks, epoch  1  prediction 0.500  held-out fidelity 0.750"]


def coded(many: int, seed: int = 0) -> list[str]:
    """As data/planted/reviews.py: words that are the same in every text, through which a mask can leak the label, and
    opinions that are too rare to be learned.
    """
    random, results = np.random.default_rng(seed), []
    for _ in range(many):
        side = random.choice(["praise", "blame"])
        words = [f"{side}{random.integers(300)}" if i < 2 else f"word{random.integers(300)}" for i in range(6)]
        results.append(" ".join(["heads", "heads", "tails", "tails", *random.permutation(words)]))
    return results


def opinions(inputs: list[str]) -> Any:
    score = np.array([text.count("praise") - text.count("blame") for text in inputs], float)
    yes = 1 / (1 + np.exp(-4 * score))
    return np.stack([1 - yes, yes], 1)


SMUGGLING = {"k": 2, "conditioned": True, "classes": CLASSES, "settings": {**QUICK, "epochs": 6, "learning_rate": 1e-2}}


@pytest.mark.slow
def test_a_label_that_leaks_through_the_mask_is_reported() -> None:
    """The approximator is always right; the black box and the independent reader, shown the selection, guess."""
    with pytest.warns(UserWarning, match="Label leakage: ") as caught:
        fitted = fit_explainer(opinions, coded(300), mitigation="none", seed=2, **SMUGGLING)
    assert caught[0].filename == __file__
    assert fitted.warnings == [str(caught[0].message)]
    results = {row.measure: row for row in fitted.rows}
    assert results["fidelity"].value > 0.95
    assert results["independent-reader-accuracy"].value < 0.75
    assert results["leakage-gap"].interval[0] > 0.05  # type: ignore[index]


@pytest.mark.slow
def test_random_pretraining_is_the_default_for_a_selector_conditioned_on_the_prediction() -> None:
    """Nothing is reported: warnings are errors here, too."""
    fitted = fit_explainer(opinions, coded(300), **SMUGGLING)
    assert (fitted.learned.config.mitigation, fitted.warnings) == ("random-pretraining", [])
