"""Rationalizers on planted reviews: a record has the chosen epoch and the last one."""

import torch

from steadygaze.techniques.vanilla import Vanilla
from studies.rationales.run import LastEpochRun
from training.toys import make_run


def test_the_last_epoch_is_kept_beside_the_chosen_one() -> None:
    """It has the weights of the same training without selection of an epoch."""
    best, last = (make_run(Vanilla(), epochs=3, patience=3, select=select) for select in ("best", "last"))
    run = LastEpochRun(best.technique, best.make_model, best.job)
    chosen, expected = run.execute(), last.execute()
    assert run.best_epoch["epoch"] < 3
    assert any(not torch.equal(value, run.last_weights[name]) for name, value in chosen.state_dict().items())
    assert all(torch.equal(value, run.last_weights[name]) for name, value in expected.state_dict().items())
