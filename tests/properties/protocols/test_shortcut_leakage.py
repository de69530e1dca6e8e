"""Shortcut leakage of constant explanations and predictions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from contract.tiny import classifier, ragged
from properties.protocols.constant_models import ConstantExplainer, ConstantModel, Costly, laid, tokens
from steadygaze.core.maths.distributions import normalize
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, collate
from steadygaze.explainers.attention import Attention
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.models.inference import Model
from steadygaze.properties.audit_case import AuditCase, Finding
from steadygaze.properties.measures.shortcut_measures import position_leak
from steadygaze.properties.protocols.plausibility import NO_RATIONALES
from steadygaze.properties.protocols.shortcut_leakage import shortcut_leakage
from steadygaze.results.audit_config import ProbeConfig, Runtime

MEASURES = (
    "position-leak",
    "position-leak/shuffled",
    "default-mass",
    "default-mass/above-share",
    "first-sentence-share",
    "first-sentence-share/above-rationale",
    "first-sentence-pick",
    "collapsed",
)
FIRST = MEASURES[4:7]


def case_of(
    weights: Tensor, label: Tensor, lengths: list[int], plan: ProbeConfig | None = None, **known: Tensor
) -> AuditCase:
    data = Data(ragged(["s" + "w" * n + "s" for n in lengths]))
    marks = {name: laid(rows, data) for name, rows in known.items()}
    return AuditCase(
        ConstantModel(label), data, {"written": ConstantExplainer(weights)}, plan or ProbeConfig(), **marks
    )


def findings_in(case: AuditCase) -> dict[str, Finding]:
    """Of the first explainer; a measure that applies to none is reported once."""
    findings = [
        finding for finding in shortcut_leakage(case) if finding.explainer in (None, next(iter(case.explainers)))
    ]
    assert sorted(finding.measure for finding in findings) == sorted([*MEASURES, "position-leak/unaccounted"])
    return {finding.measure: finding for finding in findings}


def three() -> AuditCase:
    """Two words, three words, no word.  Specials stand at both ends and have no weight."""
    weights = torch.tensor([[9.0, 3, 1, 9, 9], [9.0, -1, 2, -5, 9], [9.0] * 5], dtype=torch.float64)
    blank, first = tokens("xx.xx", "x.x.x", "xxxxx"), tokens(".x...", ".xx..", ".....")
    marks = {"blank": blank, "first": first, "rationales": tokens("..x..", ".x...", ".....")}
    return case_of(weights, torch.tensor([0, 1, 0]), [2, 3, 0], **marks)


def test_three_texts_by_hand():
    """Weights 3 1 and −1 2 −5.  Nothing to read at word 1, and at word 2: 3/4 and 2/8; shares of words 1/2 and 1/3.

    Sentence 1 is word 1, and words 1 and 2: 3/4 and 3/8; the top words are 1, which is in it, and 3, which is not.
    People marked word 2, not in it, and word 1, in it: due are 1/2, by its length, and 1.
    """
    findings = findings_in(three())
    expected = {
        "default-mass": [3 / 4, 2 / 8],
        "default-mass/above-share": [1 / 4, 2 / 8 - 1 / 3],
        "first-sentence-share": [3 / 4, 3 / 8],
        "first-sentence-share/above-rationale": [1 / 4, 3 / 8 - 1],
        "first-sentence-pick": [1, 0],
    }
    for measure, values in expected.items():
        whole = [*values, torch.nan]  # a text without a word has no number
        assert findings[measure].values.tolist() == pytest.approx(whole, nan_ok=True), measure
    for measure in ("position-leak", "position-leak/shuffled"):
        assert findings[measure].absent.sentence.startswith("the position leak needs two classes")
        assert findings[measure].absent.sentence.endswith(
            "for at least 20 distinct texts, found 1 of '0', 1 of '1', 0 of '2'"
        )


def test_a_text_whose_sentences_nobody_marked_has_no_first_one():
    case = three()
    case.first[:4] = False
    findings = findings_in(case)
    for measure in FIRST:
        assert findings[measure].values.isnan().tolist() == [True, False, True]


def test_unknown_facts_are_reported_as_absent():
    findings = findings_in(replace(three(), blank=None, first=None))
    assert {str(findings[name].absent) for name in MEASURES[2:4]} == {"the tokens without content are unknown"}
    assert {str(findings[name].absent) for name in FIRST} == {"the sentence boundaries are unknown"}
    findings = findings_in(replace(three(), rationales=None))
    assert findings["first-sentence-share/above-rationale"].absent == NO_RATIONALES
    assert findings["first-sentence-share"].values is not None


class Straying(ConstantModel):
    """Looks at its special tokens too."""

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> object:
        output = super().forward(batch, embedded)
        output.special_token_share = torch.tensor([0.6, 0.2, 1.0])[batch.index]
        return output


@pytest.mark.parametrize("size", [1, 3])
def test_attention_to_special_tokens_lies_on_nothing_too(size):
    """Words as above, with 3/4 and 2/8 on an uninformative one; .6 and .2 of the attention is on two special tokens.

    .6 + .4·3/4 = .9 and .2 + .8·2/8 = .4; of 2 + 2 tokens 1 + 2 are uninformative, of 3 + 2 too: .9 − 3/4 and .4 − 3/5.
    """
    case = three()
    written = case.explainers["written"]
    case = replace(
        case,
        model=Straying(case.model.label),
        explainers={"attention": written, "written": written},
        runtime=Runtime(batch_size=size),
    )
    results = {(finding.explainer, finding.measure): finding.values for finding in shortcut_leakage(case)}
    expected = {
        ("attention", "default-mass"): [0.9, 0.4],
        ("attention", "default-mass/above-share"): [0.15, -0.2],
        ("written", "default-mass"): [3 / 4, 2 / 8],  # no attention, and so none on special tokens
        ("written", "default-mass/above-share"): [1 / 4, 2 / 8 - 1 / 3],
    }
    for key, values in expected.items():
        assert results[key].tolist() == pytest.approx([*values, torch.nan], nan_ok=True), key


def test_attention_of_a_model_without_special_tokens_is_that_of_its_words():
    case = three()
    other = replace(case, explainers={"attention": case.explainers["written"]})
    for measure in ("default-mass", "default-mass/above-share"):
        expected = findings_in(case)[measure].values.tolist()
        assert findings_in(other)[measure].values.tolist() == pytest.approx(expected, nan_ok=True)


# --- many texts


def many(kind: str, count: int = 120, **known: Tensor | ProbeConfig) -> AuditCase:
    """Weights that write the label into a place, are on the second word or any word, uneven by chance, or equal."""
    random = np.random.default_rng(0)
    lengths, label = random.integers(4, 20, count), torch.arange(count) % 2
    place = {"coded": label, "second": torch.ones_like(label), "word": torch.from_numpy(random.integers(0, lengths))}
    weights = torch.from_numpy(random.uniform(0.9, 1.1, (count, 22)))
    if kind == "equal":
        weights[:] = 1
    if kind in place:
        weights[torch.arange(count), place[kind] + 1] += 50
    return case_of(weights, label, lengths.tolist(), **known)


@pytest.mark.parametrize(
    ("kind", "leaks", "collapsed"),
    [("coded", True, 0), ("second", False, 1), ("equal", False, 1), ("uneven", False, 0), ("word", False, 0)],
)
def test_each_kind_of_uninformative_attention_is_detected_by_its_measure(kind, leaks, collapsed):
    findings = findings_in(many(kind))
    for measure in ("position-leak", "position-leak/shuffled"):
        leak = findings[measure].values.mean().item()
        assert leak > 0.25 if leaks else abs(leak) < 0.03
    assert findings["collapsed"].value == collapsed
    assert bool(findings["collapsed"].notes) == bool(collapsed)
    assert findings["collapsed"].settings["n"] == 120


class Follows(Explainer):
    """All weight on one word, wherever it stands; or on one place, whatever stands there."""

    def __init__(self, word: int | None) -> None:
        self.word = word

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        place = torch.zeros_like(batch.mask)
        place[torch.arange(len(batch)), model.label[batch.index] + 1] = True
        weights = place if self.word is None else batch.ids == self.word
        return Saliency((weights & batch.mask).double(), model(batch).logits)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(("word", "kept"), [(1, False), (None, True)])
def test_only_weights_that_follow_positions_predict_the_label_of_shuffled_words(word, kept):
    """Texts laid out by their label: word 1 stands first in one class, second in the other."""
    label = torch.arange(120) % 2
    data = Data(ragged(["s" + "w" * (6 + i % 9) + "s" for i in range(120)]))
    data.text.ids[data.text.starts[:-1] + 1 + label.numpy()] = 1
    case = AuditCase(ConstantModel(label), data, {"follows": Follows(word)})
    results = {name: findings_in(case)[name].values for name in MEASURES[:2]}
    assert results["position-leak"].mean() > 0.25
    if kept:
        assert results["position-leak/shuffled"].equal(results["position-leak"])
    else:
        assert abs(results["position-leak/shuffled"].mean()) < 0.03


class FirstWord(ConstantModel):
    """Predicts by the first word, and remembers what it read."""

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> object:
        self.label[batch.index] = batch.ids[:, 1] % 2
        return super().forward(batch, embedded)


def test_the_label_to_be_guessed_is_that_of_the_shuffled_text():
    """The position of the weight leaks all of the label of the shuffled text, and nothing of the original label."""
    data = Data(ragged(["s" + "w" * 9 + "s"] * 120))
    case = AuditCase(FirstWord(torch.zeros(120, dtype=torch.long)), data, {"follows": LabelInPosition()})
    findings = findings_in(case)
    assert not findings["position-leak/shuffled"].values.equal(findings["position-leak"].values)
    for measure in MEASURES[:2]:
        assert findings[measure].values.mean() > 0.25


class LabelInPosition(Explainer):
    """All weight on the first position or the second, by the prediction of the model for its input."""

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        logits = model(batch).logits
        weights = torch.zeros(batch.ids.shape, dtype=torch.float64)
        weights[torch.arange(len(batch)), logits.argmax(-1) + 1] = 1.0
        return Saliency(weights, logits)


@pytest.mark.slow
def test_the_leak_is_that_of_the_shares_of_the_weights_whatever_their_sign():
    case = many("coded")
    turned = ConstantExplainer(case.explainers["written"].weights * -7)
    expected = findings_in(case)["position-leak"].values
    torch.testing.assert_close(
        findings_in(replace(case, explainers={"written": turned}))["position-leak"].values, expected
    )
    whole = collate(case.data, case.all_rows)
    share = normalize(case.explainers["written"].weights[:, : whole.ids.shape[1]], whole.mask)
    assert abs(position_leak(share, case.model.label, whole.mask, torch.arange(120)) - expected.mean()) < 0.02


@pytest.mark.slow
def test_neither_the_order_of_the_texts_nor_the_size_of_a_batch_matters():
    case, order = many("coded"), np.random.default_rng(1).permutation(120)
    written, at = case.explainers["written"].weights, torch.from_numpy(order)
    other = AuditCase(
        ConstantModel(case.model.label[at]),
        Data(case.data.text.select(order)),
        {"written": ConstantExplainer(written[at])},
        runtime=Runtime(batch_size=7),
    )
    for measure in ("position-leak", "position-leak/shuffled"):
        torch.testing.assert_close(
            findings_in(other)[measure].values, findings_in(case)[measure].values[at], rtol=0, atol=1e-12
        )
    assert findings_in(other)["collapsed"].value == findings_in(case)["collapsed"].value


@pytest.mark.slow
def test_pairs_of_one_text_and_two_questions_are_distinguished_in_any_order():
    """Eighty questions about eight texts."""
    random = np.random.default_rng(0)
    which, label = np.arange(80) % 8, torch.from_numpy(random.integers(0, 2, 80))
    text, requested = ragged(["w" * (4 + i) for i in range(8)]).select(which), ragged(["w" * 5] * 80, 3)
    weights = torch.from_numpy(random.random((80, 11)))
    results = []
    for order in (np.arange(80), random.permutation(80)):
        at = torch.from_numpy(order)
        case = AuditCase(
            ConstantModel(label[at]),
            Data(text.select(order), requested.select(order)),
            {"written": ConstantExplainer(weights[at])},
        )
        values = torch.empty(80, dtype=torch.float64)
        values[at] = findings_in(case)["position-leak"].values
        results.append(values)
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=1e-12)


def test_an_explainer_measured_on_a_sample_is_rated_on_the_sample():
    case = many("coded", plan=ProbeConfig(sample=60))
    blank = torch.zeros(len(case.data.text.ids), dtype=torch.bool)
    case = replace(case, explainers={"costly": Costly(case.explainers["written"].weights)}, blank=blank)
    findings = findings_in(case)
    is_measured = torch.zeros(120, dtype=torch.bool).index_fill(0, torch.from_numpy(case.sample), True)
    assert (~findings["default-mass"].values.isnan()).equal(is_measured)
    assert (~findings["position-leak"].values.isnan()).equal(is_measured)
    assert (~findings["position-leak/shuffled"].values.isnan()).equal(is_measured)
    assert findings["collapsed"].settings["n"] == 60


def test_texts_of_one_word_leave_nothing_to_choose():
    findings = findings_in(case_of(torch.ones(60, 3), torch.arange(60) % 2, [1] * 60))
    assert str(findings["collapsed"].absent) == "no text has two words"
    assert findings["position-leak"].values.abs().max() < 1e-9


def test_a_trained_model_can_be_measured():
    data = Data(ragged(["s" + "w" * (3 + i % 9) + "s" for i in range(40)]))
    case = AuditCase(classifier(), data, {"attention": Attention()})
    results = {finding.measure: finding for finding in shortcut_leakage(case)}
    assert results["collapsed"].value in (0, 1)
    assert results["default-mass"].absent
