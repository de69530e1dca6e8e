"""Chosen words against marked words, by hand."""

import pytest
import sklearn.metrics
import torch

from steadygaze.audit.measure import plausibility
from steadygaze.audit.measure.plausibility import auprc, evidence_mass, first_sentence_share, iou_f1

SELECTIONS = [plausibility.token_precision, plausibility.token_recall, plausibility.token_f1, iou_f1]
WEIGHTINGS = [evidence_mass, auprc]


def tokens(*rows: str) -> torch.Tensor:
    """`x` is True: a row of words at a glance."""
    return torch.tensor([[letter == "x" for letter in row] for row in rows])


ALL = tokens("xxxxxx")


def test_precision_recall_and_f1_of_one_text():
    """Chosen {0, 1, 2}, marked {1, 2, 3, 4}: two shared.  P = 2/3, R = 2/4, F1 = 4/7."""
    chosen, evidence = tokens("xxx..."), tokens(".xxxx.")
    found = [measure(chosen, evidence, ALL).item() for measure in SELECTIONS[:3]]
    assert found == pytest.approx([2 / 3, 1 / 2, 4 / 7])


@pytest.mark.parametrize("measure", SELECTIONS)
def test_nothing_chosen_scores_nothing_and_a_text_nobody_marked_has_no_score(measure):
    chosen, evidence = tokens("......", "xx....", "......"), tokens("xx....", "......", "......")
    value = measure(chosen, evidence, ALL.expand(3, 6))
    assert value[0] == 0
    assert value.isnan().tolist() == [False, True, True]


@pytest.mark.parametrize("measure", WEIGHTINGS)
def test_a_text_nobody_marked_has_no_score_by_weight_either(measure):
    assert measure(torch.rand(1, 6), tokens("......"), ALL).isnan().all()
    assert measure(torch.rand(1, 6), tokens("x....."), tokens(".xxxxx")).isnan().all()  # marked, but unread


@pytest.mark.parametrize(
    ("chosen", "evidence", "f1"),
    [
        ("xx....", "xxxx..", 1.0),  # 2/4: half is enough
        ("x.....", "xxx...", 0.0),  # 1/3
        ("xx..xx", "xx....", 2 / 3),  # P = 1/2, R = 1
        ("x.x.x.", "xxxxx.", 0.0),  # three runs of 1/5
        ("x.x...", "xx....", 2 / 3),  # {0} is half of {0, 1}; {2} is nothing: P = 1/2, R = 1
        ("xxx.xx", "x.xxxx", 1 / 2),  # only {4, 5} and {2, 3, 4, 5}, at 2/4: P = R = 1/2
    ],
)
def test_runs_match_when_they_share_half(chosen, evidence, f1):
    assert iou_f1(tokens(chosen), tokens(evidence), ALL).item() == pytest.approx(f1)


def test_a_mark_is_met_by_one_run_at_most():
    """{0, 1} and {3, 4} each share 2 of 5 marked words: neither is half.  Of {0 … 3} the first is: P = 1/2, R = 1."""
    assert iou_f1(tokens("xx.xx."), tokens("xxxxx."), ALL).item() == 0
    assert iou_f1(tokens("xx.xx."), tokens("xxxx.."), ALL).item() == pytest.approx(2 / 3)


def test_a_token_that_is_not_read_does_not_break_a_run():
    read = tokens("xx.xxx")
    assert iou_f1(tokens("xx.xx."), tokens("xx.xx."), read).item() == 1
    assert iou_f1(tokens("xx.x.."), tokens("xx.xxx"), read).item() == 1  # 3 of 5 read words


def test_the_evidence_mass_is_the_weight_on_marked_words():
    """0.5 + 0.2 of 1.  Saliencies count by size and need not sum to one: (2 + 1) / (2 + 1 + 1)."""
    weights = torch.tensor([[0.5, 0.2, 0.3, 0, 0, 0], [2.0, -1.0, -1.0, 0, 0, 0], [0.0] * 6])
    evidence = tokens("xx....").expand(3, 6)
    assert evidence_mass(weights, evidence, ALL.expand(3, 6)).tolist() == pytest.approx([0.7, 0.75, 0.0])


def test_average_precision_by_hand():
    """Order of weight: 0 1 2 3; marked {0, 2}.  Precision at 0: 1/1, at 2: 2/3.  Mean 5/6."""
    weights = torch.tensor([[0.4, 0.3, 0.2, 0.1, 0, 0]], dtype=torch.float64)
    assert auprc(weights, tokens("x.x..."), tokens("xxxx..")).item() == pytest.approx(5 / 6)


def test_average_precision_is_scikit_learns_with_ties_and_negative_weights():
    mask = torch.rand(80, 15) < 0.8
    weights, evidence = torch.randint(-2, 3, mask.shape).double(), (torch.rand(80, 15) < 0.4) & mask
    told = evidence.any(-1)
    expected = [
        sklearn.metrics.average_precision_score(marked[real].numpy(), row[real].numpy())
        for row, marked, real in zip(weights[told], evidence[told], mask[told], strict=True)
    ]
    assert auprc(weights, evidence, mask)[told].tolist() == pytest.approx(expected, abs=1e-12)


def test_the_first_sentence_share_of_weights_and_of_choices():
    """Sentence 1 is words 0 to 2.  Weights: 0.6 of 1.  Chosen: 1 of 3, all of 2, and nothing of nothing."""
    first = tokens("xxx...")
    assert first_sentence_share(torch.tensor([[0.1, 0.2, 0.3, 0.4, 0, 0]]), first, ALL).item() == pytest.approx(0.6)
    chosen = tokens("x..xx.", ".xx...", "......")
    share = first_sentence_share(chosen, first.expand(3, 6), ALL.expand(3, 6))
    assert share.tolist() == pytest.approx([1 / 3, 1, 0])
