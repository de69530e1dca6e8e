"""Rationalizers on planted reviews: records of the chosen epoch and the last one, rates, λ; scores of FRESH."""

from statistics import mean

import pytest
import torch

from steadygaze.techniques.vanilla import Vanilla
from studies.fresh.table import shares
from studies.numbers import by_name
from studies.rationales.plan import OTHER_REGIMES, RATES, rnp_row
from studies.rationales.run import LastEpochRun
from studies.rationales.runs import FILES, load
from studies.rationales.table import cell_numbers, runs_of
from studies.tables import read_records, values
from training.toys import make_run


def test_the_last_epoch_is_kept_beside_the_chosen_one() -> None:
    """It has the weights of the same training without selection of an epoch."""
    best, last = (make_run(Vanilla(), epochs=3, patience=3, select=select) for select in ("best", "last"))
    run = LastEpochRun(best.technique, best.make_model, best.job)
    chosen, expected = run.execute(), last.execute()
    assert run.best_epoch["epoch"] < 3
    assert any(not torch.equal(value, run.last_weights[name]) for name, value in chosen.state_dict().items())
    assert all(torch.equal(value, run.last_weights[name]) for name, value in expected.state_dict().items())


def test_every_regime_but_negations_has_the_commits_of_its_files() -> None:
    """The neighboring settings were repeated on later code; the others are of one commit or two."""
    regimes = {file.name.split("-")[1].split(".")[0]: {r["regime"] for r in read_records([file])} for file in FILES}
    assert regimes["db9835f"] | regimes["0c1099d"] | regimes["af4afca"] == {"easy", "negated"}
    assert regimes["76dcec38"] | regimes["4dc7bfe7"] | regimes["36d1aa4c"] == set(OTHER_REGIMES) - {"negated"}


def test_rnp_is_shown_at_the_rate_with_the_best_validation_accuracy() -> None:
    records = load()
    rate = records.rate("palate", "skewed20")
    accuracy = {
        name: mean(values(records.of("palate", "skewed20", rnp_row(name), seeds=2), "accuracy", split="validation"))
        for name in RATES
    }
    assert rate == max(accuracy, key=lambda name: accuracy[name])
    assert len(records.rnp("palate", "skewed20")) == 5


def test_lambda_1_is_a2r_with_as_many_seeds_as_the_other_values() -> None:
    records = load()
    one, zero = (runs_of(records, "palate", "biased80", row) for row in ("a2r-lambda-1", "a2r-lambda-0"))
    assert [run["seed"] for run in one] == [run["seed"] for run in zero] == [0, 1, 2]
    assert {run["row"] for run in one} == {"a2r"}
    assert runs_of(records, "aroma", "biased80", "a2r-lambda-1") == []


def test_the_numbers_of_a_cell_by_hand() -> None:
    """X1 of 60, 40 and 80 %: two of three seeds select the first sentence in most reviews."""
    runs = [
        {"chosen": {"test": {"accuracy": 0.5, "f1": f1, "x1": x1}}} for f1, x1 in ((0.1, 0.6), (0.4, 0.4), (0, 0.8))
    ]
    numbers = by_name(cell_numbers("cell", runs))
    assert float(numbers["x1.cell"]) == pytest.approx(60)
    assert (numbers["interlocked.cell"].value, numbers["lowest-f1.cell"].value) == (2, 0)


def test_the_scores_of_fresh_include_those_of_the_reader() -> None:
    run = {
        "chosen": {"test": {"accuracy": 0.5}, "validation": {"accuracy": 0.25}},
        "reader": {"independent-reader-accuracy": 0.75},
        "full": {},
    }
    assert shares([run], "reader") == [0.75]
    assert (shares([run], "gap"), shares([run], "full"), shares([run], "validation")) == ([], [], [0.25])
