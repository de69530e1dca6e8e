"""Leave one out: what is lost with each word, in few big batches."""

import pytest
import torch

from contract.tiny import CLASSES, assert_close, batch, cached_classifier, split
from explainers.worked import Line, game, row, texts
from steadygaze.explainers import class_probability
from steadygaze.explainers.leave_one_out import LeaveOneOut


def test_of_a_straight_line_every_word_is_worth_what_it_adds():
    """Class 1 gains 0.03, −0.04, −0.11 by the words 1, 2, 4 and class 0 loses as much; a word twice counts twice."""
    result = LeaveOneOut().explain(Line(), texts([1, 2, 4], [6, 6]), torch.tensor([1, 0])).weights
    assert_close(result, torch.tensor([[0.03, -0.04, -0.11], [-0.06, -0.06, 0.0]], dtype=torch.float64))


def test_a_special_token_is_neither_taken_out_nor_given_anything():
    result = LeaveOneOut().explain(Line(), texts([6, 1, 2], [6], specials=True), torch.tensor([1, 1])).weights
    assert_close(result, torch.tensor([[0.0, 0.03, -0.04], [0.0, 0.0, 0.0]], dtype=torch.float64))


@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "transformer"])
def test_it_is_what_a_text_written_without_the_word_gets(encoder):
    """Order and neighbors matter to these: the text must have closed up."""
    model, words = cached_classifier(encoder), batch(split(("swwws", "swwwwwws", "sws")))
    target = torch.arange(len(words)) % CLASSES
    result = LeaveOneOut().explain(model, words, target).weights
    for place in range(len(words)):
        text = row(words, place)
        value, many = game(model, text, int(target[place])), int(text.mask.sum())
        everything = frozenset(range(many))
        expected = [value(everything) - value(everything - {t}) for t in range(many)]
        assert_close(result[place][words.mask[place]], torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("most", [1, 6, 10, 1000])
def test_texts_are_read_together_with_no_more_tokens_at_once_than_may_be(most, monkeypatch):
    model, words = Line(), texts([1, 2, 4], [3], [5, 6, 1, 2], [1], [2, 2])
    whole = LeaveOneOut().explain(model, words).weights
    model.read.clear()
    monkeypatch.setitem(class_probability.TOKENS, "cpu", most)
    assert_close(LeaveOneOut().explain(model, words).weights, whole)
    read = model.read[1:]  # the first is the prediction
    assert sum(map(len, read)) == 11  # once for each word
    assert all(len(batch) == 1 or batch.ids.numel() <= most for batch in read)
    assert len(read) == {1: 11, 6: 4, 10: 4, 1000: 3}[most]  # of 3 3 3 3, 2 2 2 and 1 1 1 1 tokens each


def test_no_padding_is_read_where_texts_of_one_length_can_be_together(monkeypatch):
    model = Line()
    monkeypatch.setitem(class_probability.TOKENS, "cpu", 8)
    LeaveOneOut().explain(model, texts([1] * 9, *[[1, 2, 3]] * 4, [1]))
    assert {batch.ids.shape[1] for batch in model.read[1:]} == {8, 2, 1}
