"""What every training technique keeps to; adding a line to TECHNIQUES is all it takes to be tested here."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

from steadygaze.batch import collate
from steadygaze.config import build
from steadygaze.model import Classifier
from steadygaze.objective import TECHNIQUES
from steadygaze.objective.technique import Given, Technique
from steadygaze.types import Batch, Terms
from train.toys import corpus, make_model, make_run

ROUNDING = 1e-12  # float64
COMPARES_EXAMPLES: set[str] = set()
"""Techniques whose terms for a text depend on the others in its batch."""

pytestmark = pytest.mark.parametrize("name", TECHNIQUES)


def model_of(seed: int = 0) -> Classifier:
    torch.manual_seed(seed)
    return make_model(dtype=torch.float64, dropout=0.0)


def batch_of(rows: list[int], extra: int = 0) -> Batch:
    """Some texts of the toy corpus, lengths 1 to 9, with so many columns of padding more than needed."""
    batch = collate(corpus(), np.array(rows))
    wider = {name: pad(getattr(batch, name), (0, extra)) for name in ("ids", "present", "mask")}
    return dataclasses.replace(batch, **wider)


def given_for(technique: Technique, model: Classifier) -> Given:
    """What the loop would hand over in the last stage."""
    others = {stage.model for stage in technique.stages()} - {"model"}
    models = {name: model_of(1).eval().requires_grad_(False) for name in others}
    torch.manual_seed(2)
    return Given(models, technique.modules(model), torch.Generator().manual_seed(0), 0.5)


def terms_of(name: str, batch: Batch) -> Terms:
    technique, model = TECHNIQUES[name](), model_of()
    return technique.loss(model, batch, given_for(technique, model))


def test_terms_are_one_finite_number_for_each_text_and_one_of_them_can_be_minimised(name: str) -> None:
    terms = terms_of(name, batch_of(list(range(12))))
    assert all(value.shape == (12,) and value.isfinite().all() for value in terms.values())
    assert "task" in terms
    assert sum(terms.values()).sum().requires_grad


def test_padding_changes_nothing(name: str) -> None:
    narrow, wide = terms_of(name, batch_of([3, 4, 5])), terms_of(name, batch_of([3, 4, 5], extra=4))
    assert narrow.keys() == wide.keys()
    for key in narrow:
        torch.testing.assert_close(wide[key], narrow[key], rtol=0, atol=ROUNDING)


def test_a_batch_is_its_texts_one_by_one_unless_it_says_otherwise(name: str) -> None:
    together = terms_of(name, batch_of([0, 1, 2, 3]))
    alone = [terms_of(name, batch_of([row])) for row in range(4)]
    same = all(torch.allclose(together[k], torch.cat([a[k] for a in alone]), rtol=0, atol=ROUNDING) for k in together)
    assert same == (name not in COMPARES_EXAMPLES)


def test_a_loss_leaves_model_mode_and_gradients_alone_and_repeats_bit_for_bit(name: str) -> None:
    technique, model = TECHNIQUES[name](), model_of()
    given, batch = given_for(technique, model), batch_of([0, 1, 2])

    def look() -> list[object]:
        values = [(value.tolist(), value.requires_grad, value.grad) for value in model.parameters()]
        return [values, [module.training for module in model.modules()]]

    before = look()
    first = technique.loss(model, batch, given)
    assert look() == before
    assert given.random is not None
    again = technique.loss(model, batch, dataclasses.replace(given, random=given.random.manual_seed(0)))
    assert all(torch.equal(first[key], again[key]) for key in first)


def test_settings_and_state_survive_json(name: str) -> None:
    technique = TECHNIQUES[name]()
    moved = technique.next({key: value.detach() for key, value in terms_of(name, batch_of([0, 1])).items()})
    for one in (technique, moved):
        assert build(type(one), json.loads(json.dumps(dataclasses.asdict(one)))) == one


def test_what_it_declares_hangs_together(name: str) -> None:
    technique = TECHNIQUES[name]()
    stages, terms = technique.stages(), terms_of(name, batch_of([0, 1]))
    assert stages[-1].model == "model"
    made: set[str] = set()
    for stage in stages:
        assert stage.start is None or stage.start in made
        made.add(stage.model)
    for player in technique.players():
        assert set(player.terms or ()) <= set(terms)
        assert 0 <= player.offset < player.every


def test_thirty_steps_lower_the_task_loss(name: str) -> None:
    run = make_run(TECHNIQUES[name](), epochs=5)
    run.execute()
    last = [record for record in run.history if record["stage"] == run.history[-1]["stage"]]
    assert min(record["terms"]["task"] for record in last[1:]) < 0.95 * last[0]["terms"]["task"]


def test_it_is_documented(name: str) -> None:
    """The first line of its docstring is what `steadygaze list techniques` prints; every setting says what it is."""
    technique = TECHNIQUES[name]
    assert technique.__doc__
    fields = technique.__pydantic_fields__  # type: ignore[attr-defined]
    assert all(field.description for field in fields.values())
