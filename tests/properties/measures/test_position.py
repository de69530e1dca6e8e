"""Whether places give the label away: profiles by hand, and texts made so that the answer is known."""

import numpy as np
import pytest
import torch
from torch import Tensor

from steadygaze.properties.measures import shortcut_measures
from steadygaze.properties.measures.shortcut_measures import (
    END_WORDS,
    FEWEST,
    PARTS,
    label_predictable,
    position_features,
    position_leak,
    profile,
)

LONGEST = 22


def texts(kind: str, count: int = 300, seed: int = 0, classes: int = 2, one_in: int = 2) -> tuple[Tensor, ...]:
    """Weights that follow the class, a word that stands anywhere, nothing, or the length; and what goes with them."""
    random = np.random.default_rng(seed)
    label = torch.arange(count) % classes if one_in == 2 else (torch.arange(count) % one_in == 0).long()
    length = random.integers(9, LONGEST, count)
    if kind == "length":
        length = np.where(label.numpy() == 1, random.integers(9, 15, count), random.integers(16, LONGEST, count))
    mask = torch.arange(LONGEST) < torch.from_numpy(length).unsqueeze(-1)
    scores = torch.from_numpy(random.normal(size=(count, LONGEST)))
    if kind == "coded":
        scores[torch.arange(count), label] += 8  # the first word for class 0, the second for class 1 …
    if kind == "word":
        scores[torch.arange(count), torch.from_numpy(random.integers(0, length))] += 8
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return weights, label, mask, torch.from_numpy(random.permutation(count))


def leaks(weights: Tensor, predicted: Tensor, mask: Tensor, key: Tensor) -> Tensor:
    return shortcut_measures.position_leaks(position_features(weights, mask), predicted, key)


def often(tensors: tuple[Tensor, ...], times: int) -> tuple[Tensor, ...]:
    """The same texts so many times over: equal texts have one key."""
    return tuple(torch.cat([tensor] * times) for tensor in tensors)


# --- profiles


def test_a_profile_by_hand():
    """Weights 0.1 0.2 0.3 0.4: from the start so, from the end 0.4 0.3 0.2 0.1, then nothing.

    Four words in ten parts: an edge every 0.4 words.  The sum up to 0.4, 0.8, 1.2, … words: 0.04, 0.08, 0.1 + 0.2·0.2 …
    """
    weights, mask = torch.tensor([[0.1, 0.2, 0.3, 0.4]], dtype=torch.float64), torch.ones(1, 4, dtype=torch.bool)
    result = profile(weights, mask)[0]
    assert result[:END_WORDS].tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4, 0, 0, 0, 0])
    assert result[END_WORDS : 2 * END_WORDS].tolist() == pytest.approx([0.4, 0.3, 0.2, 0.1, 0, 0, 0, 0])
    tenths = [0.04, 0.04, 0.06, 0.08, 0.08, 0.12, 0.12, 0.14, 0.16, 0.16]
    assert result[2 * END_WORDS :].tolist() == pytest.approx(tenths)


@pytest.mark.parametrize("words", [1, 3, 7, 10, 23, 100])
def test_even_weights_give_every_tenth_a_tenth_whatever_the_length(words):
    weights = torch.full((1, words), 1 / words, dtype=torch.float64)
    tenths = profile(weights, torch.ones(1, words, dtype=torch.bool))[0, 2 * END_WORDS :]
    assert tenths.tolist() == pytest.approx([0.1] * PARTS)


def test_a_profile_counts_words_not_special_tokens_or_padding():
    weights = torch.tensor([[0.6, 0.4]], dtype=torch.float64)
    spread = torch.tensor([[torch.nan, 0.6, torch.nan, 0.4, torch.nan]], dtype=torch.float64)
    mask = torch.tensor([[False, True, False, True, False]])
    assert profile(spread, mask).equal(profile(weights, torch.ones(1, 2, dtype=torch.bool)))


# --- what leaks


def test_a_label_written_into_the_place_of_the_weight_leaks_nearly_all_there_is():
    """Of two classes a guess is right half the time, with the place always: ½, but for the regression's timidity."""
    assert 0.36 < position_leak(*texts("coded")) < 0.5
    assert 0.45 < position_leak(*texts("coded", 2_000)) < 0.5


def test_three_classes_leave_two_thirds_to_leak():
    assert 0.5 < position_leak(*texts("coded", 900, classes=3)) < 2 / 3


@pytest.mark.slow
@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("kind", ["nothing", "word", "length"])
def test_weights_at_places_that_have_nothing_to_do_with_the_label_leak_nothing(kind):
    """Not even if the length of a text predicts its label: the weights do not cause that.

    One set of 300 texts is off by 0.008; the mean of six by 0.003.
    """
    results = [position_leak(*texts(kind, seed=seed)) for seed in range(6)]
    assert max(map(abs, results)) < 0.03
    assert abs(np.mean(results)) < 0.01


def test_a_rare_class_counts_as_much_as_a_frequent_one():
    """One text in ten: a constant prediction of the frequent class is right in 90 % of the texts and shows nothing."""
    assert abs(position_leak(*texts("word", 600, one_in=10))) < 0.03
    assert position_leak(*texts("coded", 600, one_in=10)) > 0.4


def test_each_text_counts_so_that_the_mean_is_the_mean_over_classes():
    """q(c | u, s) − q(c | u) of a class of 60 and of one of 540: weights 600/(2·60) = 5 and 600/(2·540) = 5/9."""
    weights, label, mask, key = texts("coded", 600, one_in=10)
    each = leaks(weights, label, mask, key)
    gain = each / torch.where(label == 1, 5.0, 5 / 9)
    assert gain.abs().max() <= 1
    classes = torch.stack([gain[label == 0].mean(), gain[label == 1].mean()])
    assert each.mean().item() == pytest.approx(classes.mean().item())


def test_the_order_of_the_texts_and_padding_do_not_matter_to_any_of_them():
    weights, label, mask, key = texts("coded", 120)
    order = torch.randperm(120)
    each = leaks(weights, label, mask, key)
    assert leaks(weights[order], label[order], mask[order], key[order]).equal(each[order])
    wide = torch.nn.functional.pad
    assert leaks(wide(weights, (0, 5)), label, wide(mask, (0, 5)), key).equal(each)


def test_label_names_do_not_change_the_result():
    weights, label, mask, key = texts("coded", 120)
    assert leaks(weights, label * 7 + 2, mask, key).equal(leaks(weights, label, mask, key))


@pytest.mark.slow
def test_texts_that_are_there_five_times_leak_nothing_that_they_would_not_leak_once():
    """Eighty texts with uninformative weights: a set is off by 0.02, the mean of eight by 0.01.

    In folds apart, equal texts would give each other away: 0.05 to 0.11, and 0.07 in the mean.
    """
    results, distance = [], []
    for seed in range(8):
        weights, label, mask, key = often(texts("nothing", 80, seed), 5)
        results.append(position_leak(weights, label, mask, key))
        distance.append(
            position_leak(weights, label, mask, torch.from_numpy(np.random.default_rng(seed).permutation(400)))
        )
    assert results == pytest.approx([position_leak(*texts("nothing", 80, seed)) for seed in range(8)], abs=1e-12)
    assert max(map(abs, results)) < 0.05
    assert abs(np.mean(results)) < 0.02
    assert np.mean(distance) > 0.05  # so that this could fail


def test_a_text_counts_once_however_often_it_is_there():
    """The first ten of sixty texts come a hundred times more: copies share the weight of their text."""
    batch = texts("coded", 60)
    once, more = leaks(*batch), [torch.cat([tensor, *[tensor[:10]] * 100]) for tensor in batch]
    each = leaks(*more)
    assert each.mean().item() == pytest.approx(once.mean().item(), abs=1e-12)
    many = torch.tensor([101.0] * 10 + [1.0] * 50)
    torch.testing.assert_close(each[:60] * many / 1060, once / 60, rtol=0, atol=1e-12)
    torch.testing.assert_close(each[60:], each[:10].repeat(100), rtol=0, atol=1e-12)


# --- too few texts


def test_a_class_of_nineteen_texts_and_a_text_without_a_word_are_left_out():
    weights, label, mask, key = texts("coded", 90)
    label[:19], mask[25] = 2, False
    able = label_predictable(label, mask.any(-1), key)
    assert (~able).nonzero().flatten().tolist() == [*range(19), 25]
    assert leaks(weights, label, mask, key).isnan().equal(~able)
    rest = leaks(weights[able], label[able], mask[able], key[able])
    assert leaks(weights, label, mask, key)[able].equal(rest)


def test_a_class_of_twenty_is_enough_and_its_texts_must_differ():
    _, label, mask, key = texts("coded", 90)
    label[:FEWEST] = 2
    worded = mask.any(-1)
    assert label_predictable(label, worded, key).all()
    key[0] = key[1]
    assert label_predictable(label, worded, key).equal(torch.arange(90) >= FEWEST)


def test_thirty_texts_repeated_five_times_are_thirty_texts_and_show_nothing():
    """Fifteen of each class, though 75 rows: before copies were counted once, uninformative weights leaked 0.11."""
    inputs = often(texts("nothing", 30), 5)
    assert not label_predictable(inputs[1], inputs[2].any(-1), inputs[3]).any()
    assert leaks(*inputs).isnan().all()


def test_leakage_of_a_single_class_is_undefined():
    weights, label, mask, key = texts("word", 60)
    alone = torch.where(torch.arange(60) < FEWEST - 1, 1, 0)
    for label in (torch.zeros(60, dtype=torch.long), alone):
        assert leaks(weights, label, mask, key).isnan().all()
        with pytest.raises(ValueError, match="needs two classes"):
            position_leak(weights, label, mask, key)
