"""The capability matrix: every command and Python call, on every kind of model, of texts and of state.

A cell ends with exit code 0, or with 2 and a sentence that REFUSED lists; never with 70, and never without an end.
A new command or public name without a cell fails.
"""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import steadygaze as sg
from robustness.harness import assert_clean, run_case, time_limit
from robustness.matrix_calls import (
    CALLS,
    COMMANDS,
    IMAGES,
    INPUTS,
    NO_MODEL,
    NO_TEXTS,
    PAIRWISE,
    RESULTS,
    Cell,
    Place,
    answered,
    write_inputs,
)
from robustness.matrix_models import DTYPES, MODELS, STATES, Models
from steadygaze import cli
from sweeps import representatives

OWN = ("word", "subword", "rationalizer")
FOREIGN = ("scikit-learn", "function", "fitted-explainer")
TRAINING = ("train", "tune", "compare", "sg.TextClassifier", "sg.tune", "sg.compare")
FITTING = ("fit-explainer", "sg.fit_explainer")
REPORTING = ("predict", "explain", "word-weights", "evaluate", "audit", "certify", "certify --soft-stability")
"""Commands that print the health of the model on standard error."""
PRINTED = ("sg.explain", "sg.word_weights", "sg.predict_sentences", "sg.evaluate", "sg.audit", "model.explain")
"""Calls whose result prints the health of the model."""
MEASURED = ("evaluate", "audit", "sg.evaluate", "sg.audit")
"""Calls that find out that a model of any kind predicts one label."""
ANSWERED = (
    "predict", "explain", "sg.explain", "sg.load_explainer", "sg.predict_sentences", "model.predict",
    "model.predict_proba", "model.explain",
)  # fmt: skip
"""Calls that give an empty text a null row and name it in a warning; the others refuse it."""
LIMIT = 120
"""Seconds."""


class Refusal(NamedTuple):
    applies: Callable[[Cell], bool]
    sentence: str
    always: bool = True
    """False: some of these cells work."""


REFUSED = (
    Refusal(lambda c: c.inputs == "empty" and c.call not in (*NO_TEXTS, *ANSWERED), r"is empty"),
    Refusal(
        lambda c: c.model in OWN and c.state in DTYPES and c.call not in (*TRAINING, *NO_MODEL, "sg.load_explainer"),
        r"has the type b?float16, expected float32",
    ),
    Refusal(
        lambda c: c.model == "fitted-explainer" and c.state in DTYPES and c.call not in (*TRAINING, *NO_MODEL),
        r"has the type b?float16, expected float32",
        False,
    ),
    Refusal(
        lambda c: c.inputs == "pair" and c.model == "prompted" and c.call not in (*TRAINING, *NO_MODEL, *NO_TEXTS),
        r"reads single texts, found pairs",
        False,
    ),
    Refusal(
        lambda c: c.inputs == "pair" and c.model == "rationalizer" and c.call not in (*NO_MODEL, *NO_TEXTS),
        r"single texts",
        False,
    ),
    Refusal(lambda c: c.inputs == "one" and c.call in TRAINING, r"at least 2|too few|at least"),
    Refusal(lambda c: c.inputs == "one" and c.call in FITTING, r"found 1 texts; an explainer needs at least 20"),
    Refusal(lambda c: c.model == "encoder-decoder" and c.call in TRAINING, r"which generates text; use an encoder"),
    Refusal(lambda c: c.model in FOREIGN and c.call == "train", r"is not a steadygaze model"),
    Refusal(
        lambda c: c.model != "fitted-explainer" and c.call == "sg.load_explainer",
        r"is not a fitted explainer|it has no config.json",
    ),
    Refusal(lambda c: c.inputs == "sentences" and c.call == "fit-explainer", r"does not take --sentences"),
    Refusal(lambda c: c.call == "demo", r"unknown device 'gpu'"),
)
"""Cells that end with exit code 2, and what the sentence has."""
CELLS = [
    Cell(call, model, inputs, state)
    for call in (*COMMANDS, *CALLS)
    for model in ((MODELS[0],) if call in NO_MODEL else MODELS)
    for inputs in ((INPUTS[0],) if call in NO_TEXTS and call in NO_MODEL else INPUTS)
    for state in ((STATES[0],) if call in NO_MODEL else STATES)
]


def cells(costly: bool) -> list[Cell]:
    """The cells of calls that take long, or of the others; of the first, those that hold every pair of values."""
    chosen = [cell for cell in CELLS if (cell.call in PAIRWISE) is costly]
    if not costly:
        return chosen
    return [chosen[i] for i in sorted(representatives([cell._asdict() for cell in chosen], 2))]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder)
    return folder


@pytest.fixture(autouse=True)
def short_cells(short_probe_training: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steadygaze.cli.load_models.freeze_collector", lambda: None)


def check(cell: Cell, models: Models, data: Path, out: Path, patch: pytest.MonkeyPatch) -> None:
    """Run a cell, and fail unless it ends as REFUSED has it."""
    place = Place(models, data, out, cell)
    code, sentence = run_command(place, patch) if cell.call in COMMANDS else run_call(place)
    refusals = [refusal for refusal in REFUSED if refusal.applies(cell)]
    if code == 0:
        assert not any(refusal.always for refusal in refusals), f"{cell} works: remove it from REFUSED"
    else:
        assert code == 2, f"{cell}: exit code {code}: {sentence}"
        assert any(re.search(refusal.sentence, sentence) for refusal in refusals), f"{cell}: {sentence}"
        studies = ("tune", "compare")  # their folders keep what a second run continues
        assert cell.call in studies or not any(out.iterdir()), f"{cell} left {[path.name for path in out.iterdir()]}"


def run_command(place: Place, patch: pytest.MonkeyPatch) -> tuple[int, str]:
    words = COMMANDS[place.cell.call](place)
    answers: list[tuple[int, Any]] = []
    device = () if "--device" in words or place.cell.call in ("list", "synonyms") else ("--device", "cpu")
    with answered(patch, answers):
        result = run_case([*words, *device], watch=(place.models.folder, place.data), limit=LIMIT)
    assert_clean(result, codes=(0, 2), one_line=False)
    assert all(status in (200, 400, 422) for status, _ in answers), answers
    if result.code == 0 and has_health(place.cell):
        assert "predicts the label" in result.err, f"{place.cell} does not report the health of the model"
    if result.code == 0 and place.cell.inputs == "empty" and place.cell.call in ANSWERED:
        assert "no prediction for 1 empty text: empty.csv, row 3" in result.err, place.cell
    return result.code, result.err.rstrip().rpartition("\n")[2]


def has_health(cell: Cell) -> bool:
    """Whether the output names a constant label: an own model has it saved, others show it on enough texts."""
    known = cell.model in OWN or (cell.call in MEASURED and cell.inputs != "one")
    return cell.state == "collapsed" and known and cell.call in (*REPORTING, *PRINTED)


def run_call(place: Place) -> tuple[int, str]:
    with time_limit(LIMIT):
        try:
            with warnings.catch_warnings(record=True, action="always") as caught:
                result = CALLS[place.cell.call](place)
        except sg.UserError as error:
            return 2, str(error)
    if place.cell.inputs == "empty" and place.cell.call in ANSWERED:
        named = [str(warning.message) for warning in caught if "empty" in str(warning.message)]
        assert named == ["no prediction for 1 empty text: texts[1]"], place.cell
    if has_health(place.cell):
        assert "predicts the label" in str(result), f"{place.cell} does not report the health of the model"
    return 0, ""


def test_every_command_and_every_public_name_has_cells() -> None:
    assert {name.split()[0] for name in COMMANDS} == set(cli.COMMANDS)
    named = {name.removeprefix("sg.").split()[0] for name in CALLS if name.startswith("sg.")}
    assert named | RESULTS | IMAGES == set(sg.__all__)


def test_every_refusal_has_cells() -> None:
    for refusal in REFUSED:
        assert any(refusal.applies(cell) for cell in CELLS), refusal.sentence


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(Cell._fields, cells(costly=False))
def test_a_cell_works_or_is_refused_with_a_sentence(
    call: str, model: str, inputs: str, state: str,
    models: Models, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    check(Cell(call, model, inputs, state), models, data, tmp_path, monkeypatch)


@pytest.mark.sweep(keep=3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(Cell._fields, cells(costly=True))
def test_so_does_a_cell_of_a_call_that_trains(
    call: str, model: str, inputs: str, state: str,
    models: Models, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    check(Cell(call, model, inputs, state), models, data, tmp_path, monkeypatch)
