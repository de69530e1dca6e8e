"""What is selected: sizes, places and agreement, by hand and of a model that selects sentences."""

from typing import ClassVar

import pytest
import torch
from torch import Tensor

from contract.tiny import cached_classifier, ragged, split
from models.test_rationalizer import by_hand
from properties.protocols.cases import case_of as plain_case
from properties.protocols.constant_models import ConstantExplainer, ConstantModel, laid, tokens
from steadygaze.core.ragged import TokenArray
from steadygaze.data.batches import Data
from steadygaze.explainers.rationale import RationaleExplainer
from steadygaze.properties import conditions, row_names
from steadygaze.properties.audit_case import AuditCase, Finding
from steadygaze.properties.protocols.plausibility import NO_RATIONALES
from steadygaze.properties.protocols.selection import (
    AGREEMENT,
    FIRST,
    FIRST_RATIONALE,
    MICRO,
    NO_SENTENCE_ENDS,
    NOTHING_SELECTS,
    SIZE,
    rationale_agreement,
    selection,
    sentences,
)
from steadygaze.properties.protocols.shortcut_leakage import shortcut_leakage
from steadygaze.results.audit_config import ProbeConfig, Runtime

LENGTHS = [6, 6, 4, 6]
CHOSEN = tokens("xx.x..", "......", "xxxx..", "...xx.")
MARKED = tokens("xxx...", "x.....", "x.....", "......")
SENTENCE = tokens("xxx...", "xx....", "xxxx..", "xxx...")


class Selected(ConstantExplainer):
    selects_words: bool = True
    requires: ClassVar[frozenset] = frozenset()


def case_of(rationales: Tensor | None = MARKED, first: Tensor | None = SENTENCE) -> AuditCase:
    data = Data(ragged(["w" * n for n in LENGTHS]))
    weights = CHOSEN * torch.tensor([0.7, 0.2, 0.1, 1e-30, 0.3, 0.4], dtype=torch.float64)
    model, marks = ConstantModel(torch.zeros(4, dtype=torch.long)), laid(rationales, data)
    return AuditCase(model, data, {"chosen": Selected(weights)}, ProbeConfig(), marks, laid(first, data))


def findings_by(protocol, case: AuditCase) -> dict[str, Finding]:
    result = list(protocol(case))
    assert len({finding.measure for finding in result}) == len(result)
    return {finding.measure: finding for finding in result}


def test_sizes_and_places_by_hand():
    """3 of 6 in two pieces, one in sentence 1; nothing; all of a text of one sentence; two words, none in sentence 1.

    Rationales are in sentence 1 of the first two; the third has no other, the fourth has no annotation.
    """
    findings = findings_by(selection, case_of())
    assert list(findings) == [*SIZE, FIRST, FIRST_RATIONALE]
    assert findings["selected-share"].values.tolist() == pytest.approx([1 / 2, 0, 1, 1 / 3])
    assert findings["selected-spans"].values.tolist() == [2, 0, 1, 1]
    nan = pytest.approx(float("nan"), nan_ok=True)
    assert findings[FIRST].values.tolist() == [1, 0, nan, 0]
    assert findings[FIRST_RATIONALE].values.tolist() == [1, 1, nan, nan]
    assert {finding.explainer for finding in findings.values()} == {"chosen"}


def test_agreement_by_hand():
    """Two of three selected, of three marked; none selected of one marked: 0; one of four, of one; no annotation.

    F1 2/3, 0 and 2/5.  Together: 3 of 7 selected, 3 of 5 marked.
    """
    findings = findings_by(rationale_agreement, case_of())
    assert list(findings) == [*AGREEMENT, *MICRO]
    nan = pytest.approx(float("nan"), nan_ok=True)
    assert findings["token-precision/selected"].values.tolist() == [pytest.approx(2 / 3), 0, 0.25, nan]
    assert findings["token-recall/selected"].values.tolist() == [pytest.approx(2 / 3), 0, 1, nan]
    assert findings["token-f1/selected"].values.tolist() == [pytest.approx(2 / 3), 0, pytest.approx(0.4), nan]
    assert [findings[name].value for name in MICRO] == pytest.approx([3 / 7, 3 / 5, 6 / 12])
    assert {findings[name].n for name in MICRO} == {3}
    assert findings["token-f1-micro/selected"].interval is not None


def test_findings_without_rationales_or_sentences_give_the_reason():
    model, data = cached_classifier(), split()
    for protocol in (selection, rationale_agreement):
        assert {finding.absent for finding in protocol(plain_case(model, data))} == {NOTHING_SELECTS}
    assert {finding.absent for finding in rationale_agreement(case_of(rationales=None))} == {NO_RATIONALES}
    findings = findings_by(selection, case_of(rationales=None))
    assert findings[FIRST_RATIONALE].absent == NO_RATIONALES
    findings = findings_by(selection, case_of(first=None))
    assert (findings[FIRST].absent, findings[FIRST_RATIONALE].absent) == (NO_SENTENCE_ENDS, NO_SENTENCE_ENDS)
    assert findings["selected-share"].values is not None


def test_every_name_is_found_or_missing():
    own = {name for name in row_names() if name.endswith("/selected") or name.partition("/")[0] in {*SIZE, FIRST}}
    measures = {*findings_by(selection, case_of()), *findings_by(rationale_agreement, case_of())}
    assert own - measures == {f"{FIRST}/biased", f"{FIRST}/skewed"}
    assert {"rationales", "biased", "skewed"} <= conditions().keys()


def rational(rows: list[list[int]]) -> AuditCase:
    """A model that takes the sentence with a 1 in it; 4 ends a sentence."""
    flat = torch.tensor([i for row in rows for i in row], dtype=torch.int32).numpy()
    starts = torch.tensor([0, *[len(row) for row in rows]]).cumsum(0).numpy()
    text = TokenArray(flat, flat > 0, starts, torch.zeros(len(rows), dtype=torch.bool).numpy())
    return AuditCase(by_hand(), Data(text), {"rationale": RationaleExplainer()}, runtime=Runtime(batch_size=2))


def test_a_model_that_selects_sentences_has_sentences_of_its_own():
    case = rational([[1, 4, 2, 4], [2, 4, 1, 3, 4], [1, 2, 4], [2, 3, 4, 1, 4]])
    findings = findings_by(selection, case)
    nan = pytest.approx(float("nan"), nan_ok=True)
    assert findings[FIRST].values.tolist() == [1, 0, nan, 0]
    assert findings["selected-share"].values.tolist() == pytest.approx([1 / 2, 3 / 5, 1, 2 / 5])
    assert findings["selected-spans"].values.tolist() == [1, 1, 1, 1]
    assert sentences(case).tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1]


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(("place", "collapsed"), [(0, 1), (2, 1), (None, 0)])
def test_always_the_same_sentence_is_called_collapsed_by_an_audit_too(place, collapsed):
    """Three sentences, of two words to six in some order; the one with a 1 in it is taken."""
    rows = []
    for i in range(24):
        parts = [[2 + i // 15] * (1 + (i + part) % 5) + [4] for part in range(3)]
        parts[i % 3 if place is None else place][0] = 1
        rows.append([word for part in parts for word in part])
    result = {finding.measure: finding for finding in shortcut_leakage(rational(rows))}["collapsed"]
    assert result.value == collapsed
    assert ("position of a sentence" in " ".join(map(str, result.notes))) == bool(collapsed)
