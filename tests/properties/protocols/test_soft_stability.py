"""Soft stability and F-Fidelity of a toy of which everything is known: one of ten words decides."""

from dataclasses import replace
from math import comb
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from contract.tiny import batch, cached_classifier, split, widened
from properties.protocols.cases import BAD, GOOD, BlackBox, case_of, findings_by, planted_classifier, toy
from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.models.inference import Capability, Model
from steadygaze.properties import PROPERTIES
from steadygaze.properties.audit_case import RANDOM, AuditCase
from steadygaze.properties.probes.added_words import Additions
from steadygaze.properties.probes.erasure import Erasure
from steadygaze.properties.protocols import fidelity as masks
from steadygaze.properties.protocols import soft_stability as rates
from steadygaze.properties.protocols.fidelity import FIDELITY_ROWS, NOT_FINE_TUNED, _random_masks, fidelity
from steadygaze.properties.protocols.soft_stability import ADDED, selected_words, soft_stability, stability_rates
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.results.note import NoteCode

DATA, PLACE = toy()
LABEL = torch.from_numpy(DATA.label)
SAMPLE = ProbeConfig(sample=len(DATA))


class Planted(Explainer):
    """The weight of the deciding word is 1, or −1."""

    requires: ClassVar[frozenset[Capability]] = frozenset()

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        planted = ((batch.ids == GOOD) | (batch.ids == BAD)) & batch.mask
        return Saliency(self.weight * planted, model(batch).logits)


def case(**plan) -> AuditCase:
    how = {"right": Planted(1.0), "wrong": Planted(-1.0)}
    return case_of(planted_classifier(20.0), DATA, SAMPLE, **plan, **how)


def test_the_deciding_word_carries_the_label_and_other_words_do_only_until_it_is_added():
    """Two of the eight others' words at least stay out: without the deciding word, class 0 is predicted."""
    values = findings_by(soft_stability, case(), "right")
    assert values["soft-stability"].tolist() == [1.0] * 20
    wrong = findings_by(soft_stability, case(), "wrong")["soft-stability"]
    assert wrong[LABEL == 0].tolist() == [1.0] * 10
    without = sum(comb(7, size) for size in range(ADDED + 1)) / sum(comb(8, size) for size in range(ADDED + 1))
    assert wrong[LABEL == 1].mean() == pytest.approx(without, abs=4 * (without * (1 - without) / 500) ** 0.5)


def test_the_rate_of_random_words_is_reported_beside():
    (finding,) = [finding for finding in soft_stability(case()) if finding.explainer == RANDOM]
    assert 0.5 < finding.values.mean() < 1


def test_samples_agree_with_all_sets_and_both_do_not_depend_on_the_batch():
    model, texts = BlackBox(), batch(split(["w" * n for n in (7, 5, 7, 1, 6)]))
    selected = selected_words(texts, (texts.ids * 1.0).masked_fill(~texts.mask, 0), text_key(texts), 2)
    every = stability_rates(model, texts, selected, text_key(texts), Additions(3, 26, RandomKey(0)), Erasure())
    assert every["exact"].all()
    assert every["sets"].tolist() == [26, 8, 26, 1, 15]
    assert every["rate"].unique().numel() > 2
    samples = Additions(3, 400, RandomKey(0))
    drawn = stability_rates(model, texts, selected, text_key(texts), Additions(3, 25, RandomKey(0)), Erasure())
    assert drawn["exact"].tolist() == [False, True, False, True, True]
    assert drawn["sets"].tolist() == [25, 8, 25, 1, 15]
    wide = widened(texts, 2)
    selected_wide = selected_words(wide, (wide.ids * 1.0).masked_fill(~wide.mask, 0), text_key(wide), 2)
    again = stability_rates(model, wide, selected_wide, text_key(wide), Additions(3, 25, RandomKey(0)), Erasure())
    assert again["rate"].equal(drawn["rate"])
    assert stability_rates(model, texts, selected, text_key(texts), samples, Erasure())["rate"].equal(every["rate"])


def test_many_samples_come_near_the_rate_of_all_sets():
    """12 words, 2 selected, at most 3 added: 176 sets."""
    model, texts = BlackBox(), batch(split(["w" * 12] * 4))
    for seed in range(3):
        rows = torch.randn(4, 12, generator=torch.Generator().manual_seed(seed))
        selected = selected_words(texts, rows, text_key(texts), 2)
        rate = stability_rates(model, texts, selected, text_key(texts), Additions(3, 176, RandomKey(0)), Erasure())[
            "rate"
        ]
        total = 0.0
        for draw in range(8):
            total = (
                total
                + stability_rates(
                    model, texts, selected, text_key(texts), Additions(3, 175, RandomKey(draw)), Erasure()
                )["rate"]
            )
        error = (rate * (1 - rate) / 1400).sqrt()
        assert ((total / 8 - rate).abs() <= 4 * error + 1e-12).all()


@pytest.mark.parametrize("protocol", [soft_stability, fidelity])
def test_a_constant_label_never_changes(protocol):
    model = planted_classifier(20.0)
    model.decoder.output.bias.data[0] = 100.0
    constant = case_of(model, DATA, SAMPLE, right=Planted(1.0))
    expected = 1.0 if protocol is soft_stability else 0.0
    for finding in protocol(constant):
        assert finding.values.tolist() == [expected] * 20


def test_short_texts_are_exact_or_left_out():
    short = case_of(cached_classifier("bilstm"), split(), ProbeConfig(sample=10))
    finding = next(iter(soft_stability(short)))
    assert finding.values.isnan().tolist() == [
        text.count("w") < 2 for text in ("swwws", "s", "swwwwwws", "w", "ss", "sws", "swwwws")
    ]
    (note,) = finding.notes
    assert note.code == NoteCode.EXACT_RATES
    assert note.fields == {"exact": 3, "texts": 3}
    assert "exact for 3 of 3 texts" in note.sentence


def test_masks_in_the_explanation_change_the_label_and_masks_elsewhere_do_not():
    """One of ten words decides.  It is masked with the probability 0.5, 0.5 and 0.2: the sizes are 1, 2 and 5."""
    values = findings_by(fidelity, case(), "right")
    good = LABEL == 1
    assert values["fidelity-plus"][good].mean() == pytest.approx(0.4, abs=4 * (0.24 / 600) ** 0.5)
    assert values["fidelity-plus"][~good].tolist() == [0.0] * 10  # without the word, class 0 is predicted
    assert values["fidelity-minus"].tolist() == [0.0] * 20
    wrong = findings_by(fidelity, case(), "wrong")
    assert wrong["fidelity-plus"].tolist() == [0.0] * 20
    expected = (1 / 9 + 1 / 8 + 1 / 5) / 3  # one of ten words, of 9, 8 and 5
    assert wrong["fidelity-minus"][good].mean() == pytest.approx(
        expected, abs=4 * (expected * (1 - expected) / 600) ** 0.5
    )


def test_masks_are_bounded_shares_of_the_explanation_and_of_the_rest(monkeypatch):
    monkeypatch.setattr(masks, "DRAWS", 2000)
    texts = batch(split(["w" * 20]))
    weights = torch.arange(20.0).flip(0).unsqueeze(0)
    masked = _random_masks(texts, weights, (0.1, 0.5), RandomKey(0)).view(4, 2000, 20).double()
    top_2, top_10, rest_18, rest_10 = masked.mean(1)
    for rate, places, row in ((0.5, slice(2), top_2), (0.2, slice(10), top_10), (1 / 9, slice(2, 20), rest_18)):
        assert row[places].mean() == pytest.approx(rate, abs=0.02)
        outside = torch.ones(20, dtype=torch.bool)
        outside[places] = False
        assert not row[outside].any()
    assert rest_10[10:].mean() == pytest.approx(0.2, abs=0.02)
    assert masked.sum(-1).mean(-1).max() < 0.1 * 20 + 0.1


def test_fidelity_says_that_the_model_was_not_fine_tuned_under_masks():
    for finding in fidelity(case()):
        assert finding.notes == (NOT_FINE_TUNED,)
        assert "not of a copy fine-tuned under random masks" in finding.notes[0].sentence


@pytest.mark.parametrize("protocol", [soft_stability, fidelity])
@pytest.mark.parametrize("removal", ["delete", "pad", "zero"])
def test_values_do_not_depend_on_the_batch(protocol, removal):
    config = replace(SAMPLE, removal=removal)
    whole, parts = (
        findings_by(
            protocol,
            case_of(planted_classifier(20.0), DATA, config, batch_size=size, wrong=Planted(-1.0)),
            "wrong",
        )
        for size in (256, 3)
    )
    assert any(0 < values.nanmean() < 1 for values in whole.values())
    for row, values in whole.items():
        assert torch.equal(values.nan_to_num(-1), parts[row].nan_to_num(-1))


@pytest.mark.parametrize(("protocol", "module"), [(soft_stability, rates), (fidelity, masks)])
def test_values_do_not_depend_on_the_texts_that_are_in_memory_together(protocol, module, monkeypatch):
    lengths = case_of(BlackBox(), split(["w" * n for n in (12, 3, 9, 5, 2)]), SAMPLE, right=Planted(1.0))
    whole = findings_by(protocol, lengths, "right")
    monkeypatch.setattr(module, "CELLS", 1)
    for row, values in findings_by(protocol, lengths, "right").items():
        assert values.equal(whole[row])


@pytest.mark.parametrize("protocol", [soft_stability, fidelity])
def test_black_boxes_are_measured_but_have_no_vectors_to_zero(protocol):
    box = BlackBox()
    known = {finding.measure: finding.values for finding in protocol(case_of(box, DATA, SAMPLE, right=Planted(1.0)))}
    assert all(values.isfinite().all() for values in known.values())
    zero = case_of(box, DATA, ProbeConfig(removal="zero"), right=Planted(1.0))
    assert all(finding.absent is not None for finding in protocol(zero))


def test_both_are_measured_in_a_thorough_audit_and_decide_nothing():
    item = PROPERTIES["faithfulness"]
    assert {soft_stability, fidelity} <= {check.run for check in item.checks if check.thorough}
    assert not {"soft-stability", *FIDELITY_ROWS} & {*item.rule.thresholds, *item.rule.required}
