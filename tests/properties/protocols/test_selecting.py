"""Texts without selected words: measures of the selected words leave them out and report it."""

import copy
import math
import sys
import warnings
from dataclasses import replace
from functools import cache
from typing import ClassVar

import pytest
import torch
from torch import Tensor

import steadygaze as sg
from contract.tiny import ragged
from estimator.test_rationalizers import LABELS, TEXTS
from estimator.tiny import SMALL, tiny
from properties.protocols.constant_models import ConstantExplainer, ConstantModel, laid, tokens
from steadygaze.core.maths.distributions import top_k
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data
from steadygaze.models.rationalizer import GeneratorOutput, Rationalizer
from steadygaze.properties.audit_case import (
    NONE,
    AuditCase,
    Finding,
    drop_texts,
    texts_without_selection,
)
from steadygaze.properties.measures.stability_measures import saliency_divergence, shared_top_k
from steadygaze.properties.protocols.content_leakage import ROWS as CONTENT_ROWS
from steadygaze.properties.protocols.flip_radius import flip_radius
from steadygaze.properties.protocols.plausibility import plausibility
from steadygaze.properties.protocols.shortcut_leakage import shortcut_leakage
from steadygaze.results.audit_config import Runtime
from steadygaze.results.note import text_note
from steadygaze.results.report import Report
from steadygaze.results.row import Row

RATIONALES = [[(0, text.index(" "))] for text in TEXTS]
OF_SELECTION = ("selected-share", "selected-spans", "first-sentence", "first-sentence/rationales")


class Chosen(ConstantExplainer):
    selects_words: bool = True
    requires: ClassVar[frozenset] = frozenset()


def written(weights: Tensor, selects: bool = True, **known: Tensor) -> AuditCase:
    data = Data(ragged(["w" * 4, "s", "w" * 3 + "s", "w" * 4]))
    marks = {name: laid(rows, data) for name, rows in known.items()}
    how = Chosen(weights) if selects else ConstantExplainer(weights)
    return AuditCase(
        ConstantModel(torch.zeros(4, dtype=torch.long)), data, {"chosen": how}, runtime=Runtime(batch_size=2), **marks
    )


WEIGHTS = torch.tensor([[0, 0.5, 0.5, 0], [9, 0, 0, 0], [0, 0, 0, 9], [1, 0, 0, 0]], dtype=torch.float64)
"""The second text has no word, and in the third the weight lies on what is none."""


def test_which_texts_those_are():
    assert texts_without_selection(written(WEIGHTS), "chosen").tolist() == [False, False, True, False]
    assert not texts_without_selection(written(WEIGHTS, selects=False), "chosen").any(), (
        "weights of 0 that nobody selected by"
    )
    assert not texts_without_selection(written(WEIGHTS), "random").any()


def test_they_are_left_out_and_counted_in_the_note():
    case, gone = written(WEIGHTS), texts_without_selection(written(WEIGHTS), "chosen")
    values = torch.tensor([0.25, torch.nan, 0.5, 1.0])
    result = drop_texts(case, Finding("normalized-entropy", values, "chosen", notes=(text_note("before"),)), gone)
    assert result.values.tolist() == pytest.approx([0.25, torch.nan, torch.nan, 1.0], nan_ok=True)
    assert list(map(str, result.notes)) == ["before", "left out: 1 of 4 texts with an empty selection"]
    kept = Finding("label-flip/noise", values)
    assert drop_texts(case, kept, texts_without_selection(case, "")) is kept
    every = written(0 * WEIGHTS)
    assert drop_texts(every, result, texts_without_selection(every, "chosen")) == Finding(
        "normalized-entropy", explainer="chosen", absent=NONE
    )


def test_together_with_people_only_the_texts_that_are_left_count():
    """Word 2 of the first text and word 4 of the last are marked; the top words are 2 and 1: one of two."""
    marked = tokens(".x..", "....", "x...", "...x")
    results = {finding.measure: finding for finding in plausibility(written(WEIGHTS, rationales=marked))}
    assert (results["token-f1-micro"].value, results["token-f1-micro"].n) == (0.5, 2)
    results = {finding.measure: finding for finding in plausibility(written(WEIGHTS, selects=False, rationales=marked))}
    assert results["token-f1-micro"].n == 3


def test_some_weight_and_none_are_as_far_apart_as_can_be_and_share_no_word():
    mask = torch.tensor([[True, True, True, False]]).expand(3, -1)
    weights = torch.tensor([[0.5, 0.5, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]], dtype=torch.float64)
    other = torch.tensor([[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.float64)
    assert saliency_divergence(weights, other, mask).tolist() == pytest.approx([math.log(2), math.log(2), 0], abs=1e-12)
    assert shared_top_k(weights, other, mask, 2).tolist() == [0, 0, 1]
    assert shared_top_k(weights, weights, mask, 2).tolist() == [1, 1, 1]


def test_the_leak_is_that_of_the_texts_that_are_left():
    """Of every third text nothing is selected: were these taken for even weights, the regression would see them."""
    count = 120
    label, rows = torch.arange(count) % 2, torch.arange(count)
    data = Data(ragged(["w" * (4 + i % 9) for i in range(count)]))
    weights = torch.zeros(count, 12, dtype=torch.float64)
    weights[rows, label] = 1.0
    weights[rows % 3 == 0] = 0
    left = rows[rows % 3 > 0]
    whole = AuditCase(ConstantModel(label), data, {"chosen": Chosen(weights)})
    rest = AuditCase(
        ConstantModel(label[left]), Data(data.text.select(left.numpy())), {"chosen": Chosen(weights[left])}
    )
    result, expected = ({finding.measure: finding for finding in shortcut_leakage(case)} for case in (whole, rest))
    for measure in ("position-leak", "position-leak/shuffled"):
        values = result[measure].values
        assert values.isnan().equal(rows % 3 == 0)
        torch.testing.assert_close(values[left], expected[measure].values, rtol=0, atol=1e-12)
    assert result["collapsed"].settings["n"] == 80
    assert result["collapsed"].value == expected["collapsed"].value


# --- a model


@pytest.fixture
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer steps of the searches in a thorough audit: six rungs and one halving."""
    searches = sys.modules[flip_radius.__module__]
    monkeypatch.setattr(searches, "ROUNDS", 7)
    monkeypatch.setattr(searches, "SEAT_STEPS", 2)


def odd(batch: Batch) -> Tensor:
    return batch.ids.masked_fill(~batch.mask, 0).sum(-1, keepdim=True) % 2 == 1


class Sparing(Rationalizer):
    """Three tokens, and none of texts whose ids have an odd sum."""

    def select(self, batch: Batch, looked: GeneratorOutput) -> Tensor:
        return top_k(looked.scores.detach(), batch.mask, 3) & ~odd(batch)


class Idle(Rationalizer):
    def select(self, batch: Batch, looked: GeneratorOutput) -> Tensor:
        return torch.zeros_like(batch.mask)


@cache
def trained(seed: int) -> sg.TextClassifier:
    settings = {**SMALL, "granularity": "token", "share": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one epoch: it may give every text the same label
        return tiny("bigru", technique="rnp", seed=seed, settings=settings).fit(TEXTS, LABELS)


def selecting_by(kind: type[Rationalizer], seed: int = 0) -> sg.TextClassifier:
    clf = copy.deepcopy(trained(seed))
    clf.stored_.model.__class__ = kind
    return clf


def audit_of(kind: type[Rationalizer], which: list[int]) -> Report:
    texts, labels, rationales = ([column[i] for i in which] for column in (TEXTS, LABELS, RATIONALES))
    plan = {"sample": 24, "thorough": True}
    other = selecting_by(Rationalizer, seed=1)
    return sg.audit(
        selecting_by(kind),
        texts,
        labels,
        rationales=rationales,
        other_seeds=[other],
        synonyms={"film": ["plot"]},
        **plan,
    )


def own(report: Report) -> dict[str, Row]:
    return {row.measure: row for row in report.rows if row.settings.get("explainer") == "rationale"}


def of_selection(measure: str) -> bool:
    return measure in OF_SELECTION or measure.endswith("/selected")


@pytest.mark.slow
@pytest.mark.usefixtures("short_searches")
def test_of_a_model_that_selects_nothing_there_is_no_number_but_that_of_nothing_selected():
    report = audit_of(Idle, list(range(12)))
    rows = own(report)
    assert {
        "normalized-entropy",
        "first-sentence-pick",
        "flip-radius",
        "jensen-shannon/seeds",
        "collapsed",
    } <= rows.keys()
    for measure, row in rows.items():
        if of_selection(measure):
            assert (row.n, row.value) == (12, 0 if measure != "first-sentence/rationales" else row.value)
        else:
            assert (row.n, row.absent) == (0, NONE), measure
    assert {verdict.answer for verdict in report.verdicts} == {"not measured"}
    assert str(NONE) in report.to_html()
    assert not {"gradient", "seeds"} & report.plots.keys()


def is_filled(measure: str) -> bool:
    """True if words of all texts take the place of others, or a reader is trained on all texts."""
    return measure.endswith(("-filled", "/unaccounted")) or measure in CONTENT_ROWS


@pytest.mark.slow
@pytest.mark.usefixtures("short_searches")
def test_where_nothing_is_selected_of_some_texts_the_numbers_are_those_of_the_others():
    shown = selecting_by(Sparing).explain(TEXTS)
    left = [i for i, explanation in enumerate(shown) if explanation.rationale]
    assert 8 < len(left) < 20
    whole, rest = own(audit_of(Sparing, list(range(24)))), own(audit_of(Sparing, left))
    assert whole.keys() == rest.keys()
    compared = [
        measure for measure in whole if not of_selection(measure) and rest[measure].n and not is_filled(measure)
    ]
    assert {"normalized-entropy", "first-sentence-share", "auprc", "flip-radius", "jensen-shannon/randomized"} <= {
        *compared
    }
    for measure in compared:
        assert (whole[measure].n, rest[measure].n) != (0, 0)
        assert whole[measure].n == rest[measure].n, measure
        assert whole[measure].value == pytest.approx(rest[measure].value, abs=1e-6), measure
        assert f"left out: {24 - len(left)} of 24 texts" in whole[measure].note, measure
        assert "nothing is selected" not in rest[measure].note, measure
    assert whole["selected-share"].n == 24
    turned, others = (rows["flip-radius"].note for rows in (whole, rest))
    assert "texts does not flip" in others
    assert turned.startswith(others), "those of which nothing is selected are not counted there either"


def test_what_is_selected_no_more_once_a_text_is_shuffled_is_left_out_and_counted():
    class Early(Chosen):
        """The first word, where its id is even."""

        def explain(self, model, batch, target=None, embedded=None):
            weights = torch.zeros(batch.ids.shape, dtype=torch.float64)
            weights[:, 0] = (batch.ids[:, 0] % 2 == 0).double()
            return replace(super().explain(model, batch, target, embedded), weights=weights)

    count = 240
    data = Data(ragged(["w" * (4 + i % 9) for i in range(count)]))
    case = AuditCase(ConstantModel(torch.arange(count) % 2), data, {"chosen": Early(torch.zeros(count, 12))})
    result = {finding.measure: finding for finding in shortcut_leakage(case)}["position-leak/shuffled"]
    missing = int(result.values.isnan().sum()) - int(texts_without_selection(case, "chosen").sum())
    assert missing > 20
    assert str(*result.notes) == f"{missing} texts have an empty selection once they are shuffled"
