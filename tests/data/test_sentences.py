"""Which tokens end a sentence, in our own vocabularies and in those of word pieces."""

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from steadygaze.data.token_alignment import sentence_ends
from steadygaze.data.word_tokenizer import build_word_tokenizer


@pytest.mark.parametrize(
    "token", [".", "!", "?", "...", "!!!", "?!", "…", "Ġ.", "▁?", "##.", "##...", "。", "âĢ¦", "ãĢĤ", "Ġ!âĢ¦"]
)
def test_a_stop_ends_a_sentence_however_a_vocabulary_marks_it(token):
    assert sentence_ends([token]).tolist() == [True]


@pytest.mark.parametrize(
    "token", ["", "u.s.", "a", ",", ";", ":", "-", '"', "3.5", "##", "Ġ", "▁", "Ġa", "<s>", "qqq", ".)"]
)
def test_other_tokens_do_not_end_a_sentence(token):
    assert sentence_ends([token]).tolist() == [False]


def test_of_a_vocabulary_of_bytes_the_stops_of_other_scripts_are_found():
    """As a library of others spells them."""
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=[], show_progress=False)
    engine.train_from_iterator(["よい。", "はい。", "いい。", "yes … no …", "so … so"], trainer)
    vocabulary = [engine.id_to_token(i) for i in range(engine.get_vocab_size())]
    engine.decoder = decoders.ByteLevel()
    ended = {engine.decode([i]).strip() for i in sentence_ends(vocabulary).nonzero()[0].tolist()}
    assert ended == {"。", "…"}


def test_of_a_word_vocabulary_the_stops_are_found():
    vocabulary = build_word_tokenizer(["Fine beer! Is it? From the U.S. ... yes."]).vocabulary
    ended = [token for token, ends in zip(vocabulary, sentence_ends(vocabulary), strict=True) if ends]
    assert sorted(ended) == ["!", ".", "...", "?"]
