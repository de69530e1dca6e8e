"""What every encoder promises: hidden states of its size, nothing on padding, the rest read from what is there."""

import pytest
import torch

from contract.tiny import ENCODER_NAMES, TEXTS, batch, encoder, split
from steadygaze.models.encoders import ENCODERS

PAIR = pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])


@PAIR
@pytest.mark.parametrize("name", ENCODER_NAMES)
def test_hidden_states_have_the_declared_size_and_are_zero_on_padding(name, pair):
    made, texts = encoder(name, pair).eval(), batch(split(pair=pair))
    question = made.embed(texts.question_ids) if pair else None
    encoded = made(made.embed(texts.ids), texts.present, question, texts.question_present)
    assert encoded.hidden.shape == (len(TEXTS), max(map(len, TEXTS)), made.size)
    assert not encoded.hidden[~texts.present].any()
    assert encoded.hidden[texts.present].any(-1).float().mean() > 0.8  # a ReLU may leave one token with nothing
    assert encoded.question.shape == (len(TEXTS), made.size) if pair else encoded.question is None


@pytest.mark.parametrize("name", ENCODER_NAMES)
def test_other_words_or_another_question_change_the_hidden_states_or_the_question(name):
    made, texts = encoder(name, pair=True).eval(), batch(split(pair=True))
    question = texts.question_ids.where(~texts.question_present, (texts.question_ids + 1) % 20 + 1)
    encoded = made(made.embed(texts.ids), texts.present, made.embed(texts.question_ids), texts.question_present)
    other = made(made.embed(texts.ids), texts.present, made.embed(question), texts.question_present)
    assert (encoded.question - other.question).abs().max() > 1e-3
    vectors = made.embed(texts.ids.where(~texts.present, texts.ids % 20 + 1))
    other = made(vectors, texts.present, made.embed(texts.question_ids), texts.question_present)
    assert (encoded.hidden - other.hidden).abs().max() > 1e-3


@pytest.mark.parametrize("hidden", [2, 3, 5])
@pytest.mark.parametrize("name", ENCODERS)
def test_a_tower_of_any_size_summarises_a_text_in_one_vector_of_its_size(name, hidden):
    tower = ENCODERS[name].make(4, hidden)
    states, summary = tower(torch.randn(3, 6, 4), torch.tensor([[1] * 6, [1] * 2 + [0] * 4, [1] + [0] * 5]).bool())
    assert states.shape == (3, 6, tower.size)
    assert summary.shape == (3, tower.size)
    assert tower.size in {hidden, 2 * hidden}


@pytest.mark.parametrize("name", ENCODERS)
def test_the_summary_of_nothing_is_zero_whatever_the_padding_holds(name):
    tower = ENCODERS[name].make(4, 3)
    states, summary = tower(torch.randn(2, 5, 4), torch.tensor([[True] * 5, [False] * 5]))
    assert summary[0].any()
    assert not summary[1].any()
    assert not states[1].any()


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_has_a_docstring(name):
    assert len(ENCODERS[name].about.split()) > 2
