"""Chosen words against marked words, by hand."""

from itertools import combinations, permutations

import pytest
import sklearn.metrics
import torch

from steadygaze.properties.measures import plausibility_measures
from steadygaze.properties.measures.plausibility_measures import (
    auprc,
    average_precision,
    average_precision_above_random,
    iou_f1,
    random_auprc,
    random_average_precision,
    random_mass,
    random_tally,
    rationale_mass,
)

SELECTIONS = [
    plausibility_measures.token_precision,
    plausibility_measures.token_recall,
    plausibility_measures.token_f1,
    iou_f1,
]
WEIGHTINGS = [rationale_mass, average_precision]


def tokens(*rows: str) -> torch.Tensor:
    """`x` is True: a row of words at a glance."""
    return torch.tensor([[letter == "x" for letter in row] for row in rows])


ALL = tokens("xxxxxx")


def test_precision_recall_and_f1_of_one_text():
    """Chosen {0, 1, 2}, marked {1, 2, 3, 4}: two shared.  P = 2/3, R = 2/4, F1 = 4/7."""
    chosen, rationales = tokens("xxx..."), tokens(".xxxx.")
    results = [measure(chosen, rationales, ALL).item() for measure in SELECTIONS[:3]]
    assert results == pytest.approx([2 / 3, 1 / 2, 4 / 7])


@pytest.mark.parametrize("measure", SELECTIONS)
def test_nothing_chosen_scores_nothing_and_a_text_nobody_marked_has_no_score(measure):
    chosen, rationales = tokens("......", "xx....", "......"), tokens("xx....", "......", "......")
    value = measure(chosen, rationales, ALL.expand(3, 6))
    assert value[0] == 0
    assert value.isnan().tolist() == [False, True, True]


@pytest.mark.parametrize("measure", WEIGHTINGS)
def test_a_text_nobody_marked_has_no_score_by_weight_either(measure):
    assert measure(torch.rand(1, 6), tokens("......"), ALL).isnan().all()
    assert measure(torch.rand(1, 6), tokens("x....."), tokens(".xxxxx")).isnan().all()  # marked, but unread


@pytest.mark.parametrize(
    ("chosen", "rationales", "f1"),
    [
        ("xx....", "xxxx..", 1.0),  # 2/4: half is enough
        ("x.....", "xxx...", 0.0),  # 1/3
        ("xx..xx", "xx....", 2 / 3),  # P = 1/2, R = 1
        ("x.x.x.", "xxxxx.", 0.0),  # three runs of 1/5
        ("x.x...", "xx....", 2 / 3),  # {0} is half of {0, 1}; {2} is nothing: P = 1/2, R = 1
        ("xxx.xx", "x.xxxx", 1 / 2),  # only {4, 5} and {2, 3, 4, 5}, at 2/4: P = R = 1/2
    ],
)
def test_runs_match_when_they_share_half(chosen, rationales, f1):
    assert iou_f1(tokens(chosen), tokens(rationales), ALL).item() == pytest.approx(f1)


def test_a_mark_is_met_by_one_run_at_most():
    """{0, 1} and {3, 4} each share 2 of 5 marked words: neither is half.  Of {0 … 3} the first is: P = 1/2, R = 1."""
    assert iou_f1(tokens("xx.xx."), tokens("xxxxx."), ALL).item() == 0
    assert iou_f1(tokens("xx.xx."), tokens("xxxx.."), ALL).item() == pytest.approx(2 / 3)


def test_a_token_that_is_not_read_does_not_break_a_run():
    read = tokens("xx.xxx")
    assert iou_f1(tokens("xx.xx."), tokens("xx.xx."), read).item() == 1
    assert iou_f1(tokens("xx.x.."), tokens("xx.xxx"), read).item() == 1  # 3 of 5 read words


def test_the_rationale_mass_is_the_weight_on_annotated_words():
    """0.5 + 0.2 of 1.  Saliencies count by size and need not sum to one: (2 + 1) / (2 + 1 + 1)."""
    weights = torch.tensor([[0.5, 0.2, 0.3, 0, 0, 0], [2.0, -1.0, -1.0, 0, 0, 0], [0.0] * 6])
    rationales = tokens("xx....").expand(3, 6)
    assert rationale_mass(weights, rationales, ALL.expand(3, 6)).tolist() == pytest.approx([0.7, 0.75, 0.0])


def test_average_precision_by_hand():
    """Order of weight: 0 1 2 3; marked {0, 2}.  Precision at 0: 1/1, at 2: 2/3.  Mean 5/6."""
    weights = torch.tensor([[0.4, 0.3, 0.2, 0.1, 0, 0]], dtype=torch.float64)
    assert average_precision(weights, tokens("x.x..."), tokens("xxxx..")).item() == pytest.approx(5 / 6)


def test_average_precision_is_scikit_learns_with_ties_and_negative_weights():
    mask = torch.rand(80, 15) < 0.8
    weights, rationales = torch.randint(-2, 3, mask.shape).double(), (torch.rand(80, 15) < 0.4) & mask
    annotated = rationales.any(-1)
    expected = [
        sklearn.metrics.average_precision_score(marked[real].numpy(), row[real].numpy())
        for row, marked, real in zip(weights[annotated], rationales[annotated], mask[annotated], strict=True)
    ]
    assert average_precision(weights, rationales, mask)[annotated].tolist() == pytest.approx(expected, abs=1e-12)


def test_the_area_under_precision_and_recall_by_hand():
    """Order of weight: 0 1 2 3; marked {1, 2}.  (R, P): (0, 1), (0, 0), (½, ½), (1, ⅔), (1, ½).

    By trapezoids ½ (0 + ½) / 2 + ½ (½ + ⅔) / 2 = 5/12, where average precision is ½ (½ + ⅔) = 7/12.
    """
    weights = torch.tensor([[0.4, 0.3, 0.2, 0.1, 0, 0]], dtype=torch.float64)
    inputs = weights, tokens(".xx..."), tokens("xxxx..")
    assert auprc(*inputs).item() == pytest.approx(5 / 12)
    assert average_precision(*inputs).item() == pytest.approx(7 / 12)


def test_the_area_is_that_of_scikit_learns_curve_with_ties_and_negative_weights():
    mask = torch.rand(80, 15) < 0.8
    weights, rationales = torch.randint(-2, 3, mask.shape).double(), (torch.rand(80, 15) < 0.4) & mask
    annotated = rationales.any(-1)
    expected = []
    for row, marked, real in zip(weights[annotated], rationales[annotated], mask[annotated], strict=True):
        precision, recall, _ = sklearn.metrics.precision_recall_curve(marked[real].numpy(), row[real].numpy())
        expected.append(sklearn.metrics.auc(recall, precision))
    assert auprc(weights, rationales, mask)[annotated].tolist() == pytest.approx(expected, abs=1e-12)


def test_the_worth_of_a_random_order_is_the_mean_over_all_orders():
    """Two of four marked.  Places of the marked and precision: 12: 1; 13: 5/6; 14: 3/4; 23: 7/12; 24: 1/2; 34: 5/12.

    The mean is 49/72.  By the formula: H_4 = 25/12, 1/4 (25/12 + 1/3 (4 − 25/12)) = 49/72.
    """
    assert random_average_precision(tokens("xx.."), tokens("xxxx")).item() == pytest.approx(49 / 72, abs=1e-15)


@pytest.mark.parametrize(("marked", "words"), [(m, n) for n in range(1, 7) for m in range(1, n + 1)])
def test_the_worth_of_a_random_order_by_enumeration(marked, words):
    weights = torch.tensor(list(permutations(range(words))), dtype=torch.float64)
    rationales = (torch.arange(words) < marked).expand_as(weights)
    every = average_precision(weights, rationales, torch.ones_like(rationales)).mean()
    torch.testing.assert_close(random_average_precision(rationales[:1], torch.ones_like(rationales[:1])), every[None])


def test_above_a_random_order_are_the_marked_words_first_and_below_it_last_or_all_alike():
    """Of four words one is marked: 1 and 1/4 against H_4/4 = 25/48; all alike bring each other along: 1/4."""
    weights = torch.tensor([[4.0, 3, 2, 1], [1.0, 2, 3, 4], [1.0, 1, 1, 1]], dtype=torch.float64)
    result = average_precision_above_random(weights, tokens("x...").expand(3, 4), tokens("xxxx").expand(3, 4))
    assert result.tolist() == pytest.approx([23 / 48, -13 / 48, -13 / 48])


def test_of_all_texts_together_a_long_one_counts_for_more():
    """Chosen 1 of 1 marked; then 0 of 3 chosen are among 2 marked: P = 1/4, R = 1/3, F1 = 2/7, not the mean of 1 and 0.

    The third text has no annotation: its selection is neither right nor wrong.
    """
    chosen, rationales = tokens("x.....", "xxx...", "xxxxxx"), tokens("x.....", "...xx.", "......")
    inputs = chosen, rationales, ALL.expand(3, 6)
    assert plausibility_measures.micro(plausibility_measures.tally(*inputs)) == pytest.approx((1 / 4, 1 / 3, 2 / 7))
    assert plausibility_measures.token_f1(*inputs)[:2].tolist() == [1, 0]
    assert plausibility_measures.token_recall_micro(*inputs) == pytest.approx(1 / 3)


def test_texts_without_annotations_have_no_value():
    with pytest.raises(ValueError, match="no human rationales"):
        plausibility_measures.token_f1_micro(ALL, ~ALL, ALL)


def test_nothing_chosen_anywhere_is_wrong_not_undefined():
    assert plausibility_measures.micro(plausibility_measures.tally(~ALL, tokens("x....."), ALL)) == (0, 0, 0)


@pytest.mark.parametrize(("marked", "chosen"), [(1, 1), (2, 2), (2, 3), (4, 1), (5, 5), (3, 0)])
def test_the_chance_level_is_the_mean_over_every_choice_of_as_many_words(marked, chosen):
    """Five words and one that is not read: every set of `chosen` words, enumerated."""
    read, rationales = tokens("xxxxx."), torch.arange(6).unsqueeze(0) < marked
    sets = [torch.isin(torch.arange(6), torch.tensor(combination)) for combination in combinations(range(5), chosen)]
    selected = torch.stack(sets)
    many = len(sets)
    expected = random_tally(selected[:1], rationales, read)
    overlap, size, words = expected[0].tolist()
    assert (size, words) == (chosen, marked)
    for measure, level in zip(
        SELECTIONS[:3],
        (overlap / max(size, 1), overlap / words, 2 * overlap / (size + words)),
        strict=True,
    ):
        values = measure(selected, rationales.expand(many, 6), read.expand(many, 6))
        assert values.double().mean().item() == pytest.approx(level)


@pytest.mark.parametrize("marked", range(1, 6))
def test_the_chance_level_of_a_ranking_is_the_mean_over_every_order(marked):
    read, rationales = tokens("xxxxx."), torch.arange(6).unsqueeze(0) < marked
    orders = torch.tensor([[*order, 9] for order in permutations((1.0, 2.0, 3.0, 4.0, 5.0))], dtype=torch.float64)
    many = len(orders)
    for measure, level in ((auprc, random_auprc), (rationale_mass, random_mass)):
        values = measure(orders, rationales.expand(many, 6), read.expand(many, 6))
        assert values.mean().item() == pytest.approx(level(rationales, read).item())


def test_graded_marks_have_their_mean_as_the_chance_level_of_the_mass():
    grades = torch.tensor([[0.5, 0.25, 0, 0, 1, 1]])
    assert random_mass(grades, tokens("xxxxx.")).item() == pytest.approx(1.75 / 5)
    assert random_mass(torch.zeros(1, 6), ALL).isnan().all()
