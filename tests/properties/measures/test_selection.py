"""How much is selected and where, by hand."""

import pytest
import torch

from properties.measures.test_shortcut import tokens
from steadygaze.properties.measures import plausibility_measures
from steadygaze.properties.measures.plausibility_measures import first_sentence, share, spans

MASK = tokens("xxxxxx", "xxxx..", "x.xx.x", "......")
SELECTED = tokens("xx..x.", "....xx", "x.x..x", "xxxxxx")


def test_the_share_counts_words_alone():
    """3 of 6; none of 4, since what is not a word is not selected; 3 of 4; a text of no words has no share."""
    assert share(SELECTED, MASK)[:3].tolist() == [0.5, 0, 0.75]
    assert share(SELECTED, MASK)[3].isnan()


def test_pieces_are_runs_among_the_words():
    """{0, 1} and {4}; nothing; words 0, 2 and 5 of x.xx.x are its first, second and fourth: two pieces."""
    assert spans(SELECTED, MASK)[:3].tolist() == [2, 0, 2]
    assert spans(SELECTED, MASK)[3].isnan()
    assert spans(tokens("x.x.x.", "xxxxxx"), tokens("xxxxxx", "xxxxxx")).tolist() == [3, 1]


def test_the_first_sentence_is_taken_where_any_word_of_it_is():
    """Sentence 1 is words 0 to 2.  All of it; one word of it and others; others alone; nothing: not taken."""
    first, mask = tokens("xxx..."), tokens("xxxxxx")
    chosen = tokens("xxx...", "..xx..", "...xxx", "......")
    assert first_sentence(chosen, first.expand(4, 6), mask.expand(4, 6)).tolist() == [1, 1, 0, 0]


def test_a_text_of_one_sentence_or_of_unknown_sentences_has_no_value():
    chosen, mask = tokens("xx....", "xx....", "......"), tokens("xxx...", "xxxxxx", "......")
    first = tokens("xxxxxx", "......", "......")
    assert first_sentence(chosen, first, mask).isnan().all()


def test_nothing_depends_on_padding_or_on_other_texts():
    first = tokens("xxx...", "x.....", "x.x...", "......")
    wide = [torch.nn.functional.pad(tensor, (0, 3), value=True) for tensor in (SELECTED, first)]
    padded = torch.nn.functional.pad(MASK, (0, 3))
    for whole, other, single in (
        (share(SELECTED, MASK), share(wide[0], padded), [share(SELECTED[[i]], MASK[[i]]) for i in range(4)]),
        (spans(SELECTED, MASK), spans(wide[0], padded), [spans(SELECTED[[i]], MASK[[i]]) for i in range(4)]),
        (
            first_sentence(SELECTED, first, MASK),
            first_sentence(*wide, padded),
            [first_sentence(SELECTED[[i]], first[[i]], MASK[[i]]) for i in range(4)],
        ),
    ):
        torch.testing.assert_close(whole, other, equal_nan=True)
        torch.testing.assert_close(whole, torch.cat(single), equal_nan=True)


def test_precision_recall_and_f1_of_selections_typed_in():
    """Annotated 3 of 6 in each, the last has no annotation.

    two right of four selected    P 2/4  R 2/3  F1 4/7        all right         1 1 1
    none right of two             0 0 0                        nothing selected  0 0 0
    all six                       P 3/6  R 1    F1 6/9

    The mean F1 is that of the texts, (4/7 + 1 + 0 + 0 + 2/3) / 5 = 0.4476…, not the F1 of the mean precision and recall
    (P 0.4, R 0.5333…: 0.4571…).  Micro: 8 of 15 selected, 8 of 15 marked.
    """
    chosen = tokens("xx.x.x", "xxx...", "...xx.", "......", "xxxxxx", "xxxxxx")
    marked = tokens(*["xxx..."] * 5, "......")
    mask = torch.ones_like(marked)
    values = [
        of(chosen, marked, mask) for of in (plausibility_measures.token_precision, plausibility_measures.token_recall)
    ]
    f1 = plausibility_measures.token_f1(chosen, marked, mask)
    assert values[0][:5].tolist() == pytest.approx([1 / 2, 1, 0, 0, 1 / 2])
    assert values[1][:5].tolist() == pytest.approx([2 / 3, 1, 0, 0, 1])
    assert f1[:5].tolist() == pytest.approx([4 / 7, 1, 0, 0, 2 / 3])
    assert f1[5].isnan()
    assert float(f1.nanmean()) == pytest.approx((4 / 7 + 1 + 2 / 3) / 5)
    together = plausibility_measures.micro(plausibility_measures.tally(chosen, marked, mask))
    assert together == pytest.approx((8 / 15, 8 / 15, 8 / 15))
