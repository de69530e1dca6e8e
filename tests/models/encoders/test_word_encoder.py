"""Word vectors: where they come from, which of them move, what a pair's two towers read."""

import pytest
import torch

from contract.tiny import VOCABULARY, batch, split
from steadygaze.models.classifier import Architecture, word_encoder
from steadygaze.models.encoders.word_encoders import embedding


def test_vectors_that_are_given_are_taken_and_padding_stays_zero():
    vectors = torch.randn(6, 3)
    table = embedding(6, 3, vectors, trainable=True)
    assert torch.equal(table.weight[1:], vectors[1:])
    assert not table.weight[0].any()
    assert table.weight.requires_grad


def test_vectors_that_are_not_given_have_length_about_one():
    table = embedding(500, 40, None, trainable=True)
    assert table.weight[1:].norm(dim=-1).mean().item() == pytest.approx(1, abs=0.05)
    assert not table.weight[0].any()


def test_vectors_can_be_kept_from_moving():
    assert not embedding(6, 3, None, trainable=False).weight.requires_grad


def test_vectors_determine_the_size_of_a_word_in_every_architecture():
    made = word_encoder("lstm", Architecture(hidden=3, dimension=50), 6, False, torch.randn(6, 7))
    assert made.embedding.weight.shape == (6, 7)
    assert made.text.forwards.input_size == 7


def test_a_pair_has_a_tower_of_its_own_for_the_question_and_a_single_text_has_none():
    architecture = Architecture(hidden=3, dimension=5)
    pair, single = (word_encoder("bilstm", architecture, VOCABULARY, both) for both in (True, False))
    assert single.question is None
    assert pair.question.state_dict().keys() == pair.text.state_dict().keys()
    assert not torch.equal(pair.question.forwards.weight_hh_l0, pair.text.forwards.weight_hh_l0)
    pairs = batch(split(pair=True))
    encoded = pair(pair.embed(pairs.ids), pairs.present, pair.embed(pairs.question_ids), pairs.question_present)
    _, state = pair.question(pair.embed(pairs.question_ids), pairs.question_present)
    assert torch.equal(encoded.question, state)


def test_dropout_falls_on_word_vectors_in_training_only():
    made = word_encoder("average", Architecture(hidden=3, dimension=5, dropout=0.9), VOCABULARY, False)
    texts = batch(split())
    vectors, other = (made.train().embed(texts.ids) for _ in range(2))
    assert not torch.equal(vectors, other)
    assert torch.equal(made.eval().embed(texts.ids), made.embedding(texts.ids))


def test_what_is_embedded_is_what_is_read():
    """So that a perturbation of the embeddings is not drowned in a second draw of dropout."""
    made = word_encoder("average", Architecture(hidden=3, dimension=5, dropout=0.9), VOCABULARY, False).train()
    texts = batch(split())
    embedded = made.embed(texts.ids)
    hidden, other = (made(embedded, texts.present).hidden for _ in range(2))
    assert torch.equal(hidden, other)


def test_word_dropout_replaces_words_by_the_unknown_word_in_training_only():
    made = word_encoder("average", Architecture(hidden=3, dimension=5, word_dropout=0.4), VOCABULARY, False)
    ids = torch.arange(VOCABULARY).repeat(4000, 1)
    vectors = made.embedding(ids)
    torch.manual_seed(0)
    embedded = made.train().embed(ids)
    unknown = (embedded == made.embedding.weight[1]).all(-1)
    assert (unknown | (embedded == vectors).all(-1)).all()
    assert torch.equal(unknown[:, :4], (ids[:, :4] == 1))  # special tokens stay
    assert abs(float(unknown[:, 4:].float().mean()) - 0.4) < 0.02
    assert torch.equal(made.eval().embed(ids), vectors)


@pytest.mark.parametrize("name", ["dropout", "word_dropout"])
def test_dropout_from_keys_depends_on_the_key_the_row_and_the_position_alone(name):
    made = word_encoder("average", Architecture(hidden=3, dimension=5, **{name: 0.4}), VOCABULARY, False).train()
    ids = torch.full((300, 6), VOCABULARY - 1)
    before = torch.get_rng_state()
    with made.keyed_dropout(torch.tensor([7])):
        first, second = made.embed(ids), made.embed(ids)
    with made.keyed_dropout(torch.tensor([3, 7])):  # rows of two models alternate; the batch is wider
        other = made.embed(torch.full((600, 9), VOCABULARY - 1))
    assert torch.equal(other[1::2, :6], first)
    assert not torch.equal(other[::2, :6], first)
    assert not torch.equal(second, first)
    assert torch.equal(torch.get_rng_state(), before)
    changed = first != made.embedding(ids) if name == "word_dropout" else first == 0
    assert abs(float(changed.float().mean()) - 0.4) < 0.03
    if name == "dropout":  # the mean stays
        assert torch.allclose(first[~changed], (made.embedding(ids) / 0.6)[~changed])
    assert not torch.equal(made.embed(ids), made.embed(ids))  # again from torch's generator
    with made.eval().keyed_dropout(torch.tensor([7])):
        assert torch.equal(made.embed(ids), made.embedding(ids))
