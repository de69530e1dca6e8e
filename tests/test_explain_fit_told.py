"""What people are told while an explainer is fitted, and of what came of it."""

import re
import warnings
from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from opinions import CLASSES, QUICK
from steadygaze import explain_fit
from steadygaze.cli.explain_fitting import Steps, _told
from steadygaze.record import Row
from steadygaze.report.warned import ONE_LABEL, warned


def row(measure: str, value: float, low: float, high: float, **settings: Any) -> Row:
    return Row(measure, value, 200, (low, high), {"explainer": "l2x", "technique": "plain", **settings})


@pytest.mark.parametrize(
    ("fidelity", "post_hoc", "code"),
    [
        ((1.0, 1.0, 1.0), (0.44, 0.375, 0.505), True),
        ((0.98, 0.975, 0.985), (0.77, 0.76, 0.78), True),
        ((0.975, 0.95, 0.995), (0.895, 0.85, 0.935), False),  # 0.95 − 0.935
        ((1.0, 1.0, 1.0), (0.8, 0.6, 0.95), False),  # too few texts to say so
        ((0.7, 0.65, 0.75), (0.45, 0.4, 0.5), True),
        ((0.5, 0.45, 0.55), (0.45, 0.4, 0.5), False),  # poor, but no code
        ((0.78, 0.77, 0.79), (0.91, 0.9, 0.92), False),
    ],
)
def test_a_code_is_said_aloud(fidelity: Any, post_hoc: Any, code: bool) -> None:
    said = warned([row("post-hoc-accuracy", *post_hoc), row("fidelity", *fidelity)])
    assert bool(said) == code
    assert all("talks in code" in one and "The technique random-pretraining" in one for one in said)


def test_where_there_was_nothing_to_explain_that_is_said_and_nothing_else() -> None:
    rows = [row("post-hoc-accuracy", 0.5, 0.4, 0.6), row("fidelity", 1, 1, 1)]
    (said,) = warned([replace(one, note=ONE_LABEL) for one in rows])
    assert said.startswith("The black box gives the same label to all")


def test_what_does_not_apply_is_not_advised() -> None:
    def said(**settings: Any) -> str:
        (one,) = warned([row("post-hoc-accuracy", 0.5, 0.4, 0.6), row("fidelity", 1, 1, 1, **settings)])
        return one

    assert "technique" not in said(technique="random-pretraining") + said(explainer="ail")
    assert "code" not in said(technique="random-pretraining"), "nobody was there to agree with"
    assert "reads other things" in said(technique="random-pretraining")
    assert warned([row("post-hoc-accuracy", 0.1, 0.1, 0.1)]) == [], "cxplain has no approximator"


def test_a_warning_is_a_line_unless_it_is_said_beside_the_numbers() -> None:
    log = Console(file=StringIO(), force_terminal=False, width=400)
    with _told(log):
        warnings.warn("12 of 40 texts are short", stacklevel=1)
        for settings in ({}, {"technique": "random-pretraining"}):
            for said in warned([row("post-hoc-accuracy", 0.5, 0.4, 0.6), row("fidelity", 1, 1, 1, **settings)]):
                warnings.warn(said, stacklevel=1)
        warnings.warn(warned([replace(row("fidelity", 1, 1, 1), note=ONE_LABEL)])[0], stacklevel=1)
    assert log.file.getvalue().splitlines() == ["12 of 40 texts are short"]


def test_one_bar_tells_of_everything_in_order() -> None:
    told: list[tuple[str, int, int]] = []
    log = Console(file=StringIO(), force_terminal=False, width=40)
    steps = Steps(log, lambda *what: told.append(what))
    steps.start(stages=2, epochs=3, steps=2)
    for _ in range(2):
        steps.drawn = 0.0
        steps.step("random masks", 0, {"prediction": torch.tensor([0.25, 0.75])})
    steps.epoch({"stage": "random masks", "epoch": 1, "terms": {"prediction": 0.5}, "fidelity": 0.75})
    steps.skip(1)
    steps.drawn = 0.0
    steps.step("selecting", 1, {"prediction": torch.tensor([0.5])})
    steps.stop()
    assert told == [
        ("learning", 0, 6),
        ("learning: random masks, epoch 1  prediction 0.500", 1, 6),
        ("learning: random masks, epoch 1  prediction 0.500", 2, 6),
        ("learning: selecting, epoch 2  prediction 0.500", 5, 6),
        ("measuring", 6, 6),
    ]
    assert log.file.getvalue().splitlines() == ["random masks, epoch  1  prediction 0.500  held-out fidelity 0.750"]


def coded(many: int, seed: int = 0) -> list[str]:
    """As corpus/planted/code.py: words that are the same in every text, with which a label can be said in code, and
    opinions that are too rare to be learnt.
    """
    random, found = np.random.default_rng(seed), []
    for _ in range(many):
        side = random.choice(["praise", "blame"])
        words = [f"{side}{random.integers(300)}" if i < 2 else f"word{random.integers(300)}" for i in range(6)]
        found.append(" ".join(["heads", "heads", "tails", "tails", *random.permutation(words)]))
    return found


def opinions(given: list[str]) -> Any:
    score = np.array([text.count("praise") - text.count("blame") for text in given], float)
    yes = 1 / (1 + np.exp(-4 * score))
    return np.stack([1 - yes, yes], 1)


SMUGGLING = {"k": 2, "query": True, "classes": CLASSES, "settings": {**QUICK, "epochs": 6, "learning_rate": 1e-2}}


def test_a_label_that_travels_in_the_mask_is_reported() -> None:
    """The approximator is always right; the black box, shown what was selected, guesses.

    The epoch that is kept is the first in which all is guessed, of which the judge has learnt on the way: its loss on
    average would say nothing, what it loses in the end tells.
    """
    with pytest.warns(UserWarning, match=r"tells the label|talks in code") as told:
        fitted = explain_fit(opinions, coded(300), **SMUGGLING)
    mask, code = (str(one.message) for one in told)
    assert re.match(r"the mask alone tells the label \(0\.0\d\d nats left of 0\.6\d\d\)", mask)
    assert code.startswith("It talks in code: ")
    assert told[1].filename == __file__
    assert fitted.warnings == [code]
    rows = {row.measure: row.value for row in fitted.rows}
    assert rows["fidelity"] > 0.95
    assert rows["post-hoc-accuracy"] < 0.75


def test_where_the_approximator_was_taught_by_random_masks_nothing_is_reported() -> None:
    """Warnings are errors here, too."""
    assert explain_fit(opinions, coded(300), technique="random-pretraining", **SMUGGLING).warnings == []
