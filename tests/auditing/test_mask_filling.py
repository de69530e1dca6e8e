"""Replacements by a masked language model: other words of the same number of tokens, drawn from its predictions."""

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, BertModel

import steadygaze as sg
from estimator.tiny import LABELS, TEXTS, fitted
from steadygaze.auditing.mask_filling import MaskFiller
from steadygaze.data.word_tokenizer import build_word_tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["good", "bad", "fine", "poor", "film", "plot", "a", "very", "cast"]
SENTENCES = ["a good film", "a very bad plot"]


def folder_of(path, network=BertForMaskedLM, specials=SPECIALS, favorite: str = ""):
    """A model that predicts `favorite` everywhere; empty: random weights."""
    vocabulary = {word: i for i, word in enumerate([*specials, *WORDS, "##ly", "!"])}
    engine = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    engine.normalizer = normalizers.BertNormalizer()
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.add_special_tokens(specials)
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    engine.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    made = network(BertConfig(vocab_size=len(vocabulary), max_position_embeddings=64, **sizes))
    if favorite:
        with torch.no_grad():
            made.cls.predictions.bias[vocabulary[favorite]] = 100.0
    made.save_pretrained(path)
    engine.save(str(path / "tokenizer.json"))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return folder_of(tmp_path_factory.mktemp("filler"))


@pytest.fixture(scope="module")
def tokens():
    return build_word_tokenizer([" ".join(WORDS)] * 2)


def filled_words(filler, tokens, texts, seed=0):
    placed = tokens.place(texts)
    ids = filler.fill(texts, placed, tokens, seed)
    named = [tokens.vocabulary[index] if index >= 0 else "" for index in ids]
    pairs, starts = list(zip(named, placed.ragged.words, strict=True)), placed.ragged.starts
    return [[word for word, is_word in pairs[starts[row] : starts[row + 1]] if is_word] for row in range(len(texts))]


def test_each_word_gets_another_word_that_the_model_knows(folder, tokens):
    for text, words in zip(SENTENCES, filled_words(MaskFiller(folder), tokens, SENTENCES), strict=True):
        assert len(words) == len(text.split())
        assert {*words} <= {*WORDS}
        assert all(new != old for new, old in zip(words, text.split(), strict=True))


def test_the_prediction_of_the_language_model_is_used_unless_it_is_the_word_itself(tmp_path, tokens):
    (words,) = filled_words(MaskFiller(folder_of(tmp_path, favorite="poor")), tokens, ["a poor film"])
    assert words[0] == words[2] == "poor"
    assert words[1] != "poor"


def test_other_texts_change_nothing_and_the_seed_does(folder, tokens):
    filler, texts = MaskFiller(folder), [*SENTENCES, "a film a plot a cast"]
    together = filled_words(filler, tokens, texts)
    assert together == [filled_words(filler, tokens, [text])[0] for text in texts]
    assert together != filled_words(filler, tokens, texts, seed=1)


def test_words_that_the_audited_model_does_not_know_are_not_used(tmp_path):
    few = build_word_tokenizer(["a good film"] * 2)
    (words,) = filled_words(MaskFiller(folder_of(tmp_path, favorite="poor")), few, ["a good film"])
    assert {*words} <= {"a", "good", "film", ""}


def test_a_row_names_the_filler_and_other_rows_do_not(folder):
    report = sg.audit(fitted(), TEXTS, LABELS, explainers=["leave-one-out"], filler=str(folder))
    digest = MaskFiller(folder).digest
    for row in report.rows:
        assert ("filler" in row.settings) == row.measure.endswith("/relative-filled"), row.measure
        assert row.settings.get("filler", digest).endswith(digest)


def test_a_folder_without_the_head_or_the_mask_token_is_refused(tmp_path):
    with pytest.raises(sg.UserError, match="is not a masked language model"):
        MaskFiller(folder_of(tmp_path, BertModel))
    with pytest.raises(sg.UserError, match="has no mask token"):
        MaskFiller(folder_of(tmp_path, specials=SPECIALS[:4]))


def test_a_word_of_several_tokens_is_replaced_by_one_of_as_many(folder):
    """The audited model reads words by their letters."""

    class Letters:
        unknown_id = None

        def place(self, texts):
            engine = Tokenizer(models.WordLevel({chr(i): i for i in range(256)}, unk_token="?"))
            engine.pre_tokenizer = pre_tokenizers.Split("", "isolated")
            rows = [engine.encode(text) for text in texts]
            lengths = [len(row.ids) for row in rows]
            ragged = type("R", (), {})()
            ragged.ids, ragged.starts = np.concatenate([row.ids for row in rows]), np.cumsum([0, *lengths])
            ragged.words = np.ones(len(ragged.ids), bool)
            spans = [row.offsets for row in rows]
            groups = [[text[:i].count(" ") for i in range(len(text))] for text in texts]
            return type("P", (), {"ragged": ragged, "spans": spans, "groups": groups})()

    letters = Letters()
    placed = letters.place(["film"])
    ids = MaskFiller(folder).fill(["film"], placed, letters, 0)
    assert "".join(map(chr, ids)) in {"good", "fine", "poor", "plot", "cast", "very"}
