"""What absence costs: worked by hand, in few tokens at once, kept as it comes."""

import math

import numpy as np
import pytest
import torch

from contract.tiny import assert_close
from explainers.learned.products import PLAIN, A, B, C, Products, data_of, inputs_of, table
from steadygaze.core.errors import UserError
from steadygaze.data.batches import collate
from steadygaze.explainers import class_probability
from steadygaze.explainers.learned import removal_effects as room
from steadygaze.explainers.learned.answer_cache import AnswerCache
from steadygaze.explainers.learned.cxplain import CXPlain, text_effects
from steadygaze.explainers.learned.removal_effects import RemovalQuery, removal_effects
from steadygaze.explainers.leave_one_out import LeaveOneOut

LN2 = math.log(2)
TEXTS = [[A, B, C], [A], [PLAIN, PLAIN, B], [B, A, PLAIN, C, PLAIN], [C, A]]


def worth(effects, row):
    return effects.values[effects.starts[row] : effects.starts[row + 1]].tolist()


def shares(effects, *rows, width, epsilon=1e-6):
    selectable = torch.arange(width) < torch.from_numpy(np.diff(effects.starts)[list(rows)]).unsqueeze(-1)
    return effects.shares(np.array(rows), selectable, epsilon)


def test_removal_effects_of_three_words_by_hand():
    """p = .1125 · 2 · 4 · 8/9 = .8, so class 1 is predicted.  Without A .4, without B .2, without C .9:

    Δ = ln(.8/.4), ln(.8/.2), ln(.8/.9) = ln 2, 2 ln 2, −.1178, of which the last is floored: Ω = 1/3, 2/3, 0.
    Of A alone p = .225: class 0 is predicted; without it .1125, so ln(.775/.8875) < 0 is floored, and Ω = 1.
    """
    result = text_effects(CXPlain(), Products(), inputs_of(data_of([A, B, C], [A])))
    assert worth(result, 0) == pytest.approx([LN2, 2 * LN2, math.log(8 / 9)])
    assert worth(result, 1) == pytest.approx([math.log(0.775 / 0.8875)])
    expected = torch.tensor([[1 / 3, 2 / 3, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(shares(result, 0, 1, width=3, epsilon=1e-12), expected, rtol=0, atol=1e-11)


def test_the_floor_is_what_a_word_gets_without_which_nothing_is_lost():
    """ε = ln 2: Δ = ln 2, 2 ln 2, ln 2.  Where all are floored they are even."""
    result = text_effects(CXPlain(), Products(), inputs_of(data_of([A, B, C], [PLAIN, PLAIN])))
    assert_close(shares(result, 0, width=3, epsilon=LN2)[0], torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64))
    assert_close(shares(result, 1, width=3)[0], torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64))


def test_padding_in_the_position_of_a_word_can_change_the_prediction():
    """What stands for padding halves p: without A .8/2/2 = .2, without B .1; for C .9/2 = .45."""
    result = text_effects(CXPlain(removal="pad"), Products(), inputs_of(data_of([A, B, C])))
    assert worth(result, 0) == pytest.approx([math.log(4), math.log(8), math.log(0.8 / 0.45)])


def test_the_pieces_of_a_word_go_together_and_special_tokens_stay():
    """C goes on with what is before it: A with C is one word (p .8/2·9/8 = .45 without), B another (.2)."""
    inputs = inputs_of(data_of([PLAIN, A, C, B], specials=True), known=table(continues=[C]))
    model = Products()
    result = text_effects(CXPlain(), model, inputs)
    assert worth(result, 0) == pytest.approx([math.log(0.8 / 0.45), math.log(4)])
    assert sorted(batch.ids[batch.present].tolist() for batch in _single(model)) == [[PLAIN, A, C], [PLAIN, B]]
    selectable = inputs.views(np.array([0])).selectable
    assert result.shares(np.array([0]), selectable, 1e-6)[0].nonzero().flatten().tolist() == [1, 3]


def _single(model):
    for batch in model.read:
        for row in range(len(batch)):
            yield type(batch)(
                batch.ids[row : row + 1], batch.present[row : row + 1], batch.mask[row : row + 1], batch.index[:1]
            )


def test_it_orders_words_as_leave_one_out_does():
    """−ln p(x∖t) + ln p(x) against p(x) − p(x∖t): the one rises with the other."""
    data = data_of([A, B, C, PLAIN])
    result = worth(text_effects(CXPlain(), Products(), inputs_of(data)), 0)
    weights = LeaveOneOut().explain(Products(), collate(data, np.arange(1))).weights[0]
    assert np.argsort(result).tolist() == weights.argsort().tolist()
    assert_close(torch.tensor(result, dtype=torch.float64), -(1 - weights / 0.8).log())


@pytest.mark.parametrize("most", [1, 6, 10, 1000])
def test_no_more_tokens_are_read_at_once_than_may_be(most, monkeypatch):
    data, model = data_of(*TEXTS, [PLAIN] * 9), Products()
    inputs = inputs_of(data)
    whole = text_effects(CXPlain(), Products(), inputs)
    monkeypatch.setitem(class_probability.TOKENS, "cpu", most)
    assert_close(torch.tensor(text_effects(CXPlain(), model, inputs).values), torch.tensor(whole.values))
    assert all(len(batch) == 1 or batch.ids.numel() <= most for batch in model.read)
    assert model.query_count == sum(map(len, TEXTS)) + 9  # once for each word


def test_of_a_long_text_segments_are_taken_out_whose_words_share_their_worth():
    """Five words, two units at most: (A, B, PLAIN) and (C, PLAIN).  p = .8; without the first .1, the second .9.

    ln(.8/.1) = 3 ln 2 makes ln 2 for each of three words, ln(8/9) one half of it for each of two.
    """
    model, inputs = Products(), inputs_of(data_of([A, B, PLAIN, C, PLAIN], [A, B], [A]))
    with pytest.warns(UserWarning, match="a text of 5 words is explained in at most 2 segments of consecutive words"):
        result = text_effects(CXPlain(max_units=2), model, inputs)
    assert worth(result, 0) == pytest.approx([LN2] * 3 + [math.log(8 / 9) / 2] * 2)
    whole = text_effects(CXPlain(), Products(), inputs)
    for row in (1, 2):
        assert worth(result, row) == pytest.approx(worth(whole, row), abs=1e-12)
    assert model.query_count == 2 + 2 + 1


def test_texts_without_words_have_no_effects_and_are_never_queried():
    data, model = data_of([PLAIN], [PLAIN, B], [PLAIN], specials=True), Products()
    result = text_effects(CXPlain(), model, inputs_of(data))
    assert result.starts.tolist() == [0, 0, 1, 1]
    assert model.query_count == 1
    assert result.shares(np.arange(3), torch.tensor([[0, 0], [0, 1], [0, 0]]) > 0, 1e-6).sum(-1).tolist() == [0, 1, 0]


def test_one_that_fails_half_way_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "INPUTS_PER_BATCH", 2)
    inputs, calls = inputs_of(data_of(*TEXTS)), []
    with pytest.raises(UserError, match=r"out of luck.*4 of 5 inputs are done and cached"):
        text_effects(CXPlain(), Products(fails_after=2), inputs, AnswerCache(tmp_path / "kept"))
    mended = Products()
    result = text_effects(
        CXPlain(), mended, inputs, AnswerCache(tmp_path / "kept"), lambda *message: calls.append(message[1:])
    )
    assert mended.query_count == 5  # the words of the longest text
    assert calls == [(4, 5), (5, 5)]
    assert result.values.tolist() == text_effects(CXPlain(), Products(), inputs).values.tolist()


def test_a_black_box_that_has_no_answer_without_a_word_is_refused():
    class Broken(Products):
        def forward(self, batch, embedded=None):
            output = super().forward(batch)
            output.logits[batch.present.sum(-1) < 3] = torch.nan
            return output

    with pytest.raises(UserError, match=r"is not finite.*0 of 1 inputs"):
        text_effects(CXPlain(), Broken(), inputs_of(data_of([A, B, C])))


def test_a_class_of_probability_zero_has_a_finite_loss():
    removing = RemovalQuery(lambda rows: iter([(torch.tensor([0]), torch.tensor([[1.0, 0.0]]))]), lambda rows: [rows])
    result = removal_effects(removing, torch.tensor([[0.0, 1.0]]), torch.tensor([1]))
    assert result.values.tolist() == pytest.approx([-math.log(np.finfo(np.float64).tiny)])


def test_images_bring_their_own_way_of_removing():
    """Two images of three patches: the probability of class 1 is their mean, and a removed patch is 0."""
    images = torch.tensor([[0.9, 0.6, 0.3], [0.6, 0.6, 0.6]], dtype=torch.float64)

    def probs(pixels):
        return torch.stack([1 - pixels.mean(-1), pixels.mean(-1)], -1)

    def answer(rows):
        for place, row in enumerate(rows.tolist()):
            yield torch.full((3,), place), probs(images[row] * (1 - torch.eye(3, dtype=torch.float64)))

    result = removal_effects(RemovalQuery(answer, lambda rows: [rows]), probs(images), torch.tensor([1, 1]))
    assert result.values.tolist() == pytest.approx(
        [LN2, math.log(1.8 / 1.2), math.log(1.8 / 1.5), *[math.log(1.5)] * 3]
    )


def test_every_split_is_read_once_by_its_own_rows():
    """Shares belong to rows, in any batch."""
    inputs = inputs_of(data_of(*TEXTS))
    result = text_effects(CXPlain(), Products(), inputs)
    rows = np.array([3, 0, 4])
    selectable = inputs.views(rows).selectable
    together = result.shares(rows, selectable, 1e-6)
    for place, row in enumerate(rows):
        units = inputs.views(np.array([row])).selectable
        assert_close(together[place, : units.shape[1]], result.shares(np.array([row]), units, 1e-6)[0])
