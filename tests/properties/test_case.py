"""A case: what is kept of every token, and what one long text among short ones costs."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.overrides import TorchFunctionMode

from contract.tiny import ragged
from properties.protocols.cases import Signed, Target
from properties.protocols.constant_models import ConstantExplainer, ConstantModel
from steadygaze.adapters.black_box import black_box
from steadygaze.auditing.prepare_case import AuditRequest, prepare, prepare_all
from steadygaze.core.types import Example
from steadygaze.data.batches import Data, collate
from steadygaze.explainers.resolve_explainer import resolve_explainer
from steadygaze.properties.audit_case import AuditCase
from steadygaze.properties.protocols.relative_erasure import relative_erasure
from steadygaze.properties.protocols.rewording import rewording
from steadygaze.properties.protocols.shortcut_leakage import shortcut_leakage
from steadygaze.properties.protocols.stability import seed_consistency, stability
from steadygaze.results.audit_config import ProbeConfig, Runtime

LONG, SHORT = 5_000, 300


def case_of(lengths: list[int], plan: ProbeConfig | None = None, **known: Any) -> AuditCase:
    """Weights that are drawn for every place; two classes."""
    data = Data(ragged(["s" + "w" * n for n in lengths]))
    weights = torch.rand(1, max(lengths) + 1, dtype=torch.float64).expand(len(lengths), -1)
    return AuditCase(
        ConstantModel(torch.arange(len(lengths)) % 2),
        data,
        {"written": ConstantExplainer(weights)},
        plan or ProbeConfig(),
        **known,
    )


@pytest.mark.parametrize("size", [1, 3, 256])
def test_what_is_kept_of_every_token_is_handed_out_as_wide_as_a_batch(size):
    """Also of a text without a token, of a sample in any order, and on the special token in front."""
    case = case_of([3, 0, 7, 1, 12], runtime=Runtime(batch_size=size))
    whole = collate(case.data, case.all_rows)
    kept, number = case.saliency("written"), torch.arange(len(case.data.text.ids))
    written = case.explainers["written"].weights.masked_fill(~whole.mask, 0.0)
    assert kept.shape == number.shape == (5 + 23,)
    assert case.words.equal(whole.mask.sum(-1))
    for rows, batch in case.batches(np.array([4, 0, 1, 2])):
        at, width = torch.from_numpy(rows), batch.ids.shape[1]
        assert case.gather_rows(kept, rows, batch).equal(written[at][:, :width])
        assert case.gather_rows(number, rows, batch)[batch.present].equal(
            torch.cat([torch.arange(*case.data.text.starts[row : row + 2]) for row in rows])
        )


def test_texts_that_were_not_measured_have_no_number():
    case = case_of([3, 5, 2, 8], ProbeConfig(sample=2))
    case = AuditCase(case.model, case.data, {"signed": Signed()}, case.config)
    in_sample = torch.isin(torch.arange(4), torch.from_numpy(case.sample)).repeat_interleave(
        torch.from_numpy(case.data.text.lengths)
    )
    assert case.saliency("signed").isnan().equal(~in_sample)


def test_another_class_can_be_explained():
    case = case_of([3, 5, 2])
    target = Target()
    case = AuditCase(case.model, case.data, {"target": target}, runtime=Runtime(batch_size=1))
    case.saliency("target")
    assert target.targets == [None] * 3
    case.explain_class("target", torch.tensor([2, 1, 0]))
    assert [int(label) for label in target.targets[3:]] == [0, 2, 1]  # the shortest text first


class Cheap(Signed):
    """Measured on all texts."""

    forward_passes: ClassVar[int] = 1


class Largest(TorchFunctionMode):
    """The most numbers that any tensor had."""

    size = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.size = max(self.size, result.numel() if isinstance(result, Tensor) else 0)
        return result


def test_one_long_text_among_short_ones_does_not_make_all_of_them_long():
    """301 rows of 5,001 would be 1.5 million numbers; a batch has 65,536, and what is for against twice that."""
    lengths = [*np.random.default_rng(0).integers(5, 20, SHORT).tolist(), LONG]
    many = sum(lengths) + len(lengths)
    marks = torch.rand(many) < 0.1
    case = replace(case_of(lengths, blank=marks, first=marks), explainers={"signed": Cheap()})
    case = replace(case, others=(case,))
    with Largest() as largest:
        results = [*shortcut_leakage(case), *seed_consistency(case)]
    assert many < 10_000 < largest.size < 2 * (1 << 16)
    assert all(len(finding.values) == SHORT + 1 for finding in results if finding.values is not None)


class Apple(ConstantModel):
    """Reports an Apple GPU as its device until it is moved."""

    device = torch.device("mps")

    def cpu(self) -> "Apple":
        self.device = torch.device("cpu")
        return self


def test_a_model_on_an_apple_gpu_is_read_on_the_cpu_and_stays_where_it_is():
    adapter = black_box(lambda texts: [[0.5, 0.5]] * len(texts), ["no", "yes"], "half")
    inputs = Apple(torch.tensor([0, 1]))
    examples = [Example("good film"), Example("bad")]
    case = prepare(replace(adapter, model=inputs), examples, {}, ProbeConfig()).case
    assert case.model.device.type == "cpu"
    assert case.model.label.equal(inputs.label)
    assert inputs.device.type == "mps"
    assert prepare(adapter, examples, {}, ProbeConfig()).case.model is adapter.model


WORDS = ("good", "Bad", "dull", "film", "a", "plot", "and", "fine.", "not")
SIMILAR = {"good": ["fine", "great"], "dull": ["bleak"], "film": ["movie"], "plot": ["story"], "fine": ["good"]}
PER_TEXT = (rewording, stability, relative_erasure)
STEPS = ("kendall", "top-k")
"""Measures of ranks: rounding decides equal weights."""


def by_letters(texts: list[str]) -> list[list[float]]:
    """Depends on all words and, a little, on their order."""
    scores = [sum(ord(letter) / (9 + place) for place, letter in enumerate(text)) % 1 for text in texts]
    return [[score, 1 - score] for score in scores]


def values_of(texts: list[str]) -> dict[str, Tensor]:
    """Measure and explainer -> one number per text, of what does not use words of other texts."""
    adapter = black_box(by_letters, ["no", "yes"], "letters")
    explainers = {name: resolve_explainer(name, adapter.model)[1] for name in ("lime", "random")}
    request = AuditRequest(adapter, [Example(text) for text in texts], synonyms=SIMILAR)
    case = prepare_all(request, explainers).case
    findings = [finding for protocol in PER_TEXT for finding in protocol(case)]
    kept = {f"{finding.measure} {finding.explainer}": finding.values for finding in findings}
    return {
        name: values
        for name, values in kept.items()
        if values is not None and not name.startswith(STEPS) and "filled" not in name
    }


@settings(max_examples=5, deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=2, max_size=8), min_size=2, max_size=5), st.data())
def test_the_numbers_of_a_text_in_a_black_box_do_not_depend_on_other_texts_or_their_order(rows, data):
    texts = [" ".join(row) for row in rows]
    chosen = data.draw(st.permutations(range(len(texts))))[: data.draw(st.integers(1, len(texts)))]
    whole, part = values_of(texts), values_of([texts[row] for row in chosen])
    assert {name.split("/")[0] for name in part} > {"jensen-shannon", "comprehensiveness", "sufficiency"}
    for name in whole.keys() & part.keys():  # a measure may be absent
        torch.testing.assert_close(whole[name][list(chosen)], part[name], equal_nan=True, rtol=1e-9, atol=1e-9)
