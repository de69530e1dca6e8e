"""Attention that never moves is found out; attention that does is left alone."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.spatial.distance
import torch
from torch.nn.functional import pad
from torch.overrides import TorchFunctionMode

from steadygaze.core.maths import distributions
from steadygaze.core.maths.collapse import (
    Collapse,
    detect_collapse,
    detect_ragged_collapse,
    detect_sentence_collapse,
    distance_to_positional_mean,
    distance_to_uniform,
    normalized_entropy,
    selected_share,
)
from steadygaze.core.ragged import RaggedTensor

TEXTS, WIDTH = 200, 30


def lengths(texts: int = TEXTS, low: int = 3, high: int = WIDTH) -> torch.Tensor:
    """(N,T) bool: texts of `low` to `high` words, padded at the end."""
    words = torch.randint(low, high + 1, (texts, 1))
    return torch.arange(high) < words


def ordinary(mask: torch.Tensor, sharpness: float = 1.5) -> torch.Tensor:
    """A softmax of scores drawn for each word: what attention looks like before anything collapses."""
    return distributions.softmax(sharpness * torch.randn(mask.shape, dtype=torch.float64), mask)


def first(mask: torch.Tensor) -> torch.Tensor:
    return (mask & (mask.cumsum(-1) == 1)).double()


def last(mask: torch.Tensor) -> torch.Tensor:
    return first(mask.flip(-1)).flip(-1)


def test_normalized_entropy_and_distance_to_uniform_by_hand():
    """(½, ½, 0, 0): H = ln 2, ln n = ln 4, so ½.  m = (⅜, ⅜, ⅛, ⅛): JSD = ½ ln(4/3) + ½(½ ln(2/3) + ½ ln 2).

    Uniform: 1 and 0.  One of four: 0.  A text of one word: 1 and 0, and so is one of none.
    """
    w = torch.tensor([[0.5, 0.5, 0, 0], [0.25] * 4, [0, 1.0, 0, 0], [0, 0, 1.0, 0], [0] * 4], dtype=torch.float64)
    mask = torch.tensor([[True] * 4, [True] * 4, [True] * 4, [False, False, True, False], [False] * 4])
    assert normalized_entropy(w, mask).tolist() == pytest.approx([0.5, 1, 0, 1, 1])
    half = (math.log(4 / 3) + (math.log(2 / 3) + math.log(2)) / 2) / 2
    result = distance_to_uniform(w, mask)
    assert result[[0, 1, 3, 4]].tolist() == pytest.approx([half, 0, 0, 0])
    assert result[2] > half


WAYS = {
    "start": lambda t, n: t,
    "end": lambda t, n: n - 1 - t,
    "middle": lambda t, n: t - n // 2,
    "the word before": lambda t, n: t - (n - 1) // 2,
}


def slow_habit(w: np.ndarray, words: list[int], way: str) -> list[float]:
    """The definition, in loops."""
    rows = [{WAYS[way](t, n): row[t] for t in range(n)} for row, n in zip(w, words, strict=True)]
    long_rows = [row for row in rows if len(row) > 1]
    distances = []
    for row in rows:
        habit = np.array([np.mean([text[t] for text in long_rows if t in text]) for t in row if len(row) > 1])
        own = np.array(list(row.values()))
        distances.append(
            scipy.spatial.distance.jensenshannon(own, habit / habit.sum()) ** 2 if len(row) > 1 else np.nan
        )
    return distances


def distance_of_texts(w, mask):
    """`distance_to_positional_mean` of the texts of several words; NaN for the others.  (N,T), (N,T) -> (N,)"""
    several = mask.sum(-1) > 1
    distances = torch.full((len(mask),), torch.nan, dtype=torch.float64)
    ragged = RaggedTensor(w[several][mask[several]].double(), mask[several].sum(-1))
    distances[several] = distance_to_positional_mean(ragged)
    return distances


def test_the_distance_to_the_habit_is_the_nearest_of_four_loops():
    mask = lengths(25, low=1, high=9)
    w = ordinary(mask)
    words = mask.sum(-1).tolist()
    assert 1 in words
    each = np.array([slow_habit(w.numpy(), words, way) for way in WAYS])
    has_value = ~np.isnan(each[0])
    assert set(each[:, has_value].argmin(0)) == {0, 1, 2, 3}
    np.testing.assert_allclose(distance_of_texts(w, mask), each.min(0), atol=1e-12)


@pytest.mark.parametrize("measure", [normalized_entropy, distance_to_uniform, distance_of_texts])
def test_padding_and_unread_tokens_do_not_matter(measure):
    """Before the words (a start token), after them, or between."""
    mask = lengths(20, low=1, high=8)
    w = ordinary(mask)
    spread = [pad(x.repeat_interleave(2, -1), (1, 4)) for x in (w, mask)]
    read = torch.arange(spread[1].shape[1]) % 2 == 0
    again = measure(spread[0].masked_fill(~read, torch.nan), spread[1] & read)
    torch.testing.assert_close(again, measure(w, mask), rtol=1e-12, atol=1e-12, equal_nan=True)


def test_ordinary_attention_is_not_collapsed_and_needs_no_excuse():
    mask = lengths()
    collapse = detect_collapse(ordinary(mask), mask)
    assert not collapse.collapsed
    assert collapse.reason == ""
    assert collapse.overlap is None
    assert collapse.distance_to_positional_mean > collapse.distance_to_uniform / 2


@pytest.mark.parametrize("sharpness", [0.5, 1.5, 5.0])
@pytest.mark.parametrize("texts", [8, 30, 500])
def test_few_texts_and_flat_or_sharp_attention_are_not_taken_for_a_habit(sharpness, texts):
    mask = lengths(texts)
    assert not detect_collapse(ordinary(mask, sharpness), mask).collapsed


def test_a_few_texts_of_very_different_lengths_are_not_taken_for_a_habit():
    """The longest text is alone at most of its positions, where the habit is its own weight."""
    mask = torch.arange(640) < torch.tensor([5, 10, 20, 40, 80, 160, 320, 640]).unsqueeze(-1)
    assert not detect_collapse(ordinary(mask), mask).collapsed


def test_a_moderate_leaning_to_some_places_is_not_a_habit():
    """The same word stands at the same place in two texts of three, and takes most of the weight there."""
    mask = lengths(low=10)
    scores = torch.randn(mask.shape, dtype=torch.float64)
    scores[torch.rand(TEXTS) < 2 / 3, 4] += 4
    assert not detect_collapse(distributions.softmax(scores, mask), mask).constant


def test_uniform_attention_is_collapsed_and_so_is_nearly_uniform():
    mask = lengths()
    for sharpness in (0.0, 0.05):
        collapse = detect_collapse(ordinary(mask, sharpness), mask)
        assert collapse.uniform
        assert collapse.collapsed
        assert "same for every word" in collapse.reason
        assert collapse.normalized_entropy > 0.99


@pytest.mark.parametrize("place", [first, last])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_all_weight_on_one_place_is_collapsed_whatever_the_text(place, noise):
    mask = lengths()
    collapse = detect_collapse((1 - noise) * place(mask) + noise * ordinary(mask), mask)
    assert (collapse.uniform, collapse.constant) == (False, True)
    assert "position of a word" in collapse.reason
    assert collapse.normalized_entropy < 0.1


MIDDLE = {"right": lambda n: n // 2, "left": lambda n: (n - 1) // 2}
PARTS = {"third": lambda n: n // 3, "seven tenths": lambda n: (0.7 * (n - 1)).round().long()}


@pytest.mark.parametrize(
    ("place", "low", "high"),
    [
        *((name, low, high) for name in MIDDLE for low, high in ((3, 9), (3, 30), (50, 300))),
        *((name, 10, 300) for name in PARTS),
    ],
)
def test_all_weight_on_one_part_of_the_way_is_collapsed_whatever_the_text(place, low, high):
    """The middle word of long and of short texts; a third of the way is no one place in texts of three words."""
    mask = lengths(low=low, high=high)
    at = {**MIDDLE, **PARTS}[place](mask.sum(-1, keepdim=True))
    hot = torch.zeros(mask.shape, dtype=torch.float64).scatter(-1, at, 1.0)
    collapse = detect_collapse(0.99 * hot + 0.01 * ordinary(mask), mask)
    assert (collapse.uniform, collapse.constant) == (False, True)
    assert "position of a word" in collapse.reason


@pytest.mark.parametrize("low", [3, 100])
def test_a_reason_that_stands_in_the_middle_part_of_each_text_is_not_a_habit(low):
    """Anywhere between 0.4 and 0.6 of the way."""
    mask = lengths(low=low, high=10 * low)
    at = ((0.4 + 0.2 * torch.rand(TEXTS, 1)) * mask.sum(-1, keepdim=True)).long()
    collapse = detect_collapse(torch.zeros(mask.shape, dtype=torch.float64).scatter(-1, at, 1.0), mask)
    assert not collapse.constant


def test_words_that_count_are_not_lost_to_a_leaning_in_long_texts():
    """Scores that rise toward the end, and words with their own scores on top: half of the score is about words."""
    mask = lengths(low=100, high=600)
    rise = 3 * mask.cumsum(-1) / mask.sum(-1, keepdim=True)
    collapse = detect_collapse(distributions.softmax(rise + torch.randn(mask.shape, dtype=torch.float64), mask), mask)
    assert collapse.unexplained > 0.3
    assert not collapse.constant


def test_a_fixed_pattern_over_places_is_collapsed_though_it_is_on_many_words():
    """Of texts of similar length; where lengths differ tenfold, the short ones lift the mean of the early places."""
    mask = lengths(low=20)
    scores = (2 * torch.randn(WIDTH, dtype=torch.float64)).expand(mask.shape)
    assert detect_collapse(distributions.softmax(scores + 0.05 * torch.randn(mask.shape), mask), mask).constant


def test_texts_all_alike_are_not_taken_for_a_habit():
    """Seven texts, each a hundred times, read in batches that round differently."""
    mask = lengths(7).repeat(100, 1)
    once = ordinary(mask[:1].expand(1, WIDTH))
    rounding = 1 + 1e-7 * torch.randn(700, WIDTH)
    same = torch.ones(700, WIDTH, dtype=torch.bool) & mask[:1]
    assert not detect_collapse(once * rounding, same).constant
    assert not detect_collapse(first(mask), mask).constant


def test_weights_that_are_equal_for_all_texts_are_compared_by_ids_or_by_the_reference():
    """Texts of one length with all weight on the first word look alike, until one sees what else was known of them."""
    mask = torch.ones(TEXTS, WIDTH, dtype=torch.bool)
    assert not detect_collapse(first(mask), mask).constant
    assert detect_collapse(first(mask), mask, ids=torch.randint(1000, mask.shape)).constant
    assert detect_collapse(first(mask), mask, ordinary(mask)).constant
    assert not detect_collapse(first(mask), mask, ids=torch.randint(1000, (1, WIDTH)).expand(mask.shape)).constant


def test_uniform_is_measured_against_the_reference():
    """Scores at a fifth of the reference's lie at about 1/25 of its distance: JSD is quadratic.  Half: at a quarter."""
    mask = lengths(low=8)
    scores = torch.randn(mask.shape, dtype=torch.float64)
    reference = distributions.softmax(scores, mask)
    flat, flatter = (distributions.softmax(scale * scores, mask) for scale in (0.5, 0.19))
    assert detect_collapse(flatter, mask, reference).uniform
    assert not detect_collapse(flat, mask, reference).uniform
    assert detect_collapse(flat, mask, reference).overlap == pytest.approx(1.0)  # the order of the words is the same
    assert detect_collapse(from_even(mask), mask, from_even(mask)).uniform  # an even reference excuses nothing


def from_even(mask: torch.Tensor) -> torch.Tensor:
    return mask / mask.sum(-1, keepdim=True).double()


def test_the_overlap_is_that_of_the_top_k():
    mask = lengths(low=10)
    weights, reference = ordinary(mask), ordinary(mask)
    assert (
        detect_collapse(weights, mask, reference, k=1).overlap
        < detect_collapse(weights, mask, reference, k=7).overlap
        < 1
    )


def test_texts_of_one_word_or_none_are_left_out():
    mask = lengths()
    weights = ordinary(mask)
    short = torch.zeros(50, WIDTH, dtype=torch.bool)
    short[:25, 0] = True
    both, padded = torch.cat([weights, first(short)]), torch.cat([mask, short])
    assert near(detect_collapse(both, padded), detect_collapse(weights, mask))
    nothing = detect_collapse(first(short), short)
    assert not nothing.collapsed
    assert math.isnan(nothing.distance_to_uniform)


def test_one_long_text_costs_what_it_is_long():
    """A hundred texts of 20 words and one of 20,000: by rows as long as the longest, 16 MB a table of doubles."""
    words = torch.tensor([20] * 100 + [20_000])
    values = torch.rand(int(words.sum()), dtype=torch.float64)
    sizes: list[int] = []

    class Watching(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            sizes.append(result.numel() if isinstance(result, torch.Tensor) else 0)
            return result

    with Watching():
        laid = RaggedTensor(values, words)
        detect_ragged_collapse(RaggedTensor(laid.normalize(values), words), torch.arange(len(values)))
    assert max(sizes) == len(values)


def near(collapse: Collapse, other: Collapse) -> bool:
    numbers = ("normalized_entropy", "distance_to_uniform", "distance_to_positional_mean")
    return all(getattr(collapse, name) == pytest.approx(getattr(other, name), abs=1e-12) for name in numbers)


def sentences(texts: int = TEXTS, low: int = 2) -> tuple[RaggedTensor, torch.Tensor, torch.Tensor]:
    """Texts of `low` to 9 sentences of 2 to 12 words, of no weight yet; the sentence of each word; and the words."""
    many = torch.randint(low, 10, (texts,))
    long = torch.randint(2, 13, (int(many.sum()),))
    number = torch.cat([torch.arange(int(n)) for n in many])
    words = torch.zeros(texts, dtype=torch.long).index_add(0, torch.arange(texts).repeat_interleave(many), long)
    numbers = number.repeat_interleave(long)
    return RaggedTensor(torch.zeros(len(numbers)).double(), words), numbers, torch.randint(5, 999, numbers.shape)


def selected(laid: RaggedTensor, numbers: torch.Tensor, which: torch.Tensor) -> RaggedTensor:
    """All weight on one sentence of each text, its words alike."""
    chosen = (numbers == which[laid.text]).double()
    return RaggedTensor(laid.normalize(chosen), laid.lengths)


def last_of(laid: RaggedTensor, numbers: torch.Tensor) -> torch.Tensor:
    return torch.zeros(len(laid.lengths), dtype=torch.long).scatter_reduce(0, laid.text, numbers, "amax")


def test_one_sentence_whose_words_weigh_alike_is_no_collapse():
    """Wherever the reason stands.  Even where a text is one long sentence and a short one."""
    laid, numbers, ids = sentences()
    collapse = detect_sentence_collapse(
        selected(laid, numbers, (torch.rand(TEXTS) * (last_of(laid, numbers) + 1)).long()), numbers, ids
    )
    assert not collapse.collapsed
    assert collapse.unexplained > 0.5
    assert collapse.normalized_entropy < 0.01
    assert collapse.reason == ""


@pytest.mark.parametrize("end", [False, True], ids=["first", "last"])
def test_the_first_sentence_of_every_text_is_a_place_however_long_it_is(end):
    laid, numbers, ids = sentences()
    which = last_of(laid, numbers) if end else torch.zeros(TEXTS, dtype=torch.long)
    weighed = selected(laid, numbers, which)
    collapse = detect_sentence_collapse(weighed, numbers, ids)
    assert collapse.constant
    assert not collapse.uniform
    assert collapse.unit == "sentence"
    assert "follow the position of a sentence, not the text" in collapse.reason
    assert not detect_ragged_collapse(weighed, ids).constant, "word by word it is not seen: sentences differ in length"


def test_eighteen_in_nineteen_first_sentences_are_no_habit_yet_and_ninety_nine_in_a_hundred_are():
    """In planted reviews the appearance is in the first sentence of 94.7 %: to find it there is right."""
    laid, numbers, ids = sentences(1000)
    for every, constant in ((10, False), (19, False), (100, True)):
        strays = (torch.arange(1000) % every == 0) * last_of(laid, numbers)
        assert detect_sentence_collapse(selected(laid, numbers, strays), numbers, ids).constant is constant


def test_texts_of_one_sentence_have_no_choice_and_are_not_tested():
    laid, numbers, ids = sentences(low=1)
    first_of_all = torch.zeros(TEXTS, dtype=torch.long)
    assert detect_sentence_collapse(selected(laid, numbers, first_of_all), numbers, ids).constant
    weights = RaggedTensor(torch.full((8,), 0.25).double(), torch.tensor([4, 4]))
    collapse = detect_sentence_collapse(weights, torch.zeros(8, dtype=torch.long), torch.arange(8))
    assert not collapse.collapsed
    assert collapse.distance_to_uniform != collapse.distance_to_uniform


def test_texts_that_are_all_alike_have_no_habit():
    """Seven texts, once and eight: a habit needs eight that differ, by their words where not by their weights."""
    for texts, constant in ((7, False), (8, True)):
        words = torch.full((texts,), 4)
        numbers, ids = torch.tensor([0, 0, 1, 1]).repeat(texts), torch.arange(4 * texts)
        weighed = RaggedTensor(torch.tensor([0.5, 0.5, 0, 0]).double().repeat(texts), words)
        assert detect_sentence_collapse(weighed, numbers, ids).constant is constant


def test_the_share_of_words_that_is_selected_by_hand():
    """Three of five words, those of a text of one word not counted, nor what lies outside."""
    weights = torch.tensor([[0.9, 0.1, 0], [0, 1.0, 0.5], [1.0, 0, 0]])
    mask = torch.tensor([[True, True, True], [True, True, False], [True, False, False]])
    assert selected_share(weights, mask) == pytest.approx(3 / 5)
    assert selected_share(weights[2:], mask[2:]) is None


@pytest.mark.parametrize(
    ("share", "reason"),
    [
        (0.0, "No or almost no word is selected (0.0 %)."),
        (0.0009, "No or almost no word is selected (0.1 %)."),
        (0.001, ""),
        (0.95, ""),
        (0.951, "All or nearly all words are selected (95.1 %)."),
        (None, ""),
    ],
)
def test_different_weights_are_uninformative_if_all_words_or_none_are_selected(share, reason):
    result = replace(detect_collapse(ordinary(mask := lengths()), mask), selected=share)
    assert result.reason == reason
    assert result.collapsed == bool(reason)


def test_a_selection_of_all_words_is_reported_before_equal_weights():
    mask = lengths()
    result = replace(detect_collapse(mask / mask.sum(-1, keepdim=True), mask), selected=1.0)
    assert result.uniform
    assert result.reason == "All or nearly all words are selected (100.0 %)."
