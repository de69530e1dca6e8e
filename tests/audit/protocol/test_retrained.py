"""Is it the same after retraining: three models of which it is known what they say."""

import math
from dataclasses import replace

import pytest
import torch

from audit.protocol.cases import absences, case_of, found_by, reader, toy
from audit.protocol.written import Written
from contract.tiny import split
from steadygaze.audit.case import Plan
from steadygaze.audit.protocol.retrained import retrained

MEASURES = ("prediction-change/seeds", "flipped/seeds", "jensen-shannon/seeds", "top-k-overlap/seeds")


def _three(data, k=1):
    """w = (2, −1, 0, …) twice, then −w: of three pairs one agrees and two are opposites."""
    w = torch.zeros(len(data), int(data.text.lengths.max()), dtype=torch.float64)
    w[:, :2] = torch.tensor([2.0, -1.0])
    first, *others = (case_of(reader(20.0), data, Plan(k=k), written=Written(one)) for one in (w, w, -w))
    return replace(first, others=tuple(others))


def test_opposite_reasons_are_as_far_as_can_be_and_share_no_heaviest_word():
    """Jensen-Shannon (0 + ln 2 + ln 2) / 3.  The heaviest word is the first, the first and the second: (1 + 0 + 0) / 3.

    By size the three would say the same.
    """
    found = found_by(retrained, _three(toy()[0]), "written")
    assert tuple(found) == MEASURES
    assert found["jensen-shannon/seeds"].tolist() == pytest.approx([math.log(2) * 2 / 3] * 20, abs=1e-12)
    assert found["top-k-overlap/seeds"].tolist() == pytest.approx([1 / 3] * 20, abs=1e-12)
    assert not found["prediction-change/seeds"].any()
    assert not found["flipped/seeds"].any()


def test_models_that_predict_the_opposite_are_apart_whatever_they_point_at():
    """p = 1/(1 + e^−10) and its opposite, between two models that look at the same word."""
    data, _ = toy()
    one, other = reader(20.0), reader(20.0)
    other.decoder.output.weight.data = other.decoder.output.weight.data.flip(0)
    found = found_by(retrained, replace(case_of(one, data), others=(case_of(other, data),)))
    assert found["flipped/seeds"].tolist() == [1.0] * 20
    assert found["prediction-change/seeds"].tolist() == pytest.approx([math.tanh(5)] * 20, abs=1e-3)
    assert found["jensen-shannon/seeds"].max() < 1e-12
    assert (found["top-k-overlap/seeds"] == 1).all()


def test_a_text_of_fewer_than_two_words_has_no_other_saliency():
    data = split(["s", "sw", "ww", "www"])
    data.text.ids[:] = 4  # the toy knows six words
    found = found_by(retrained, _three(data), "written")
    for measure in MEASURES[2:]:
        assert found[measure].isnan().tolist() == [True, True, False, False], measure
    assert found["flipped/seeds"].isfinite().all()


def test_one_model_alone_is_said_to_be_alone():
    said = absences(retrained, case_of(reader(20.0), toy()[0]))
    assert set(said) == {(name, None) for name in MEASURES[:2]} | {(name, "attention") for name in MEASURES[2:]}
    assert set(said.values()) == {"only one model was given: name others trained alike, with other seeds"}
