"""Texts -> Explanations: in order, on the user's own characters, whatever batch they came in."""

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from contract.tiny import CLASSES, encoder
from steadygaze.data.subword_tokenizer import PieceTokenizer
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.estimator.explain_texts import ResolvedRequest, explain_texts
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.models.classifier import Architecture, Classifier, word_encoder

TEXTS = ["A gorgeous, witty movie.", "Dull", "", "not a gorgeous movie at all , really not", "Café noir"]
NAMES = ["negative", "neutral", "positive"]
ATTENTION = ResolvedRequest(EXPLAINERS["attention"](), "attention")


class Ordinal(Explainer):
    """The place of each word in its row: what a wrong alignment would show at once."""

    def __init__(self) -> None:
        self.targets: list[list[int] | None] = []

    def explain(self, model, batch, target=None):
        self.targets.append(None if target is None else target.tolist())
        place = torch.arange(batch.ids.shape[1]).expand_as(batch.ids).double()
        return Saliency(place * batch.mask, model(batch).logits.detach())


def words(pair=False, **settings):
    torch.manual_seed(0)
    tokenizer = build_word_tokenizer(TEXTS, **settings)
    made = word_encoder("bilstm", Architecture(hidden=4, dimension=5), tokenizer.size, pair)
    return Classifier(made, Architecture(), CLASSES, pair).eval(), tokenizer


def pieces():
    """ "gor" + "##geous" and single letters; ids below the 23 of the tiny BERT."""
    vocabulary = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "gor", "##geous", "movie", "d", "##u", "##l"]
    ids = {piece: place for place, piece in enumerate(vocabulary)}
    engine = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    engine.normalizer = normalizers.Lowercase()
    engine.pre_tokenizer = pre_tokenizers.Whitespace()
    engine.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return Classifier(encoder("transformer", False), Architecture(), CLASSES, False).eval(), PieceTokenizer(
        engine, max_length=20
    )


def test_each_text_gets_its_own_words_weights_and_prediction_in_order():
    model, tokenizer = words()
    explanations = explain_texts(model, tokenizer, NAMES, TEXTS, None, ATTENTION)
    assert [explanation.text for explanation in explanations] == TEXTS
    assert explanations[0].tokens == ("A", "gorgeous", ",", "witty", "movie", ".")
    assert explanations[4].tokens == ("Café", "noir")
    assert explanations[2].tokens == explanations[2].weights == ()
    for explanation in explanations:
        assert tuple(explanation.text[start:end] for start, end in explanation.spans) == explanation.tokens
        assert sum(explanation.weights) == pytest.approx(1 if explanation.tokens else 0, abs=1e-6)
        assert sum(explanation.probabilities.values()) == pytest.approx(1)
        assert explanation.label == max(NAMES, key=explanation.probabilities.get)
        assert explanation.read_to is None


def test_weights_stand_on_the_words_they_belong_to():
    model, tokenizer = words()
    explanations = explain_texts(model, tokenizer, NAMES, TEXTS, None, ResolvedRequest(Ordinal(), "ordinal"))
    assert [explanation.weights for explanation in explanations] == [
        tuple(range(1, len(explanation.tokens) + 1))
        for explanation in explanations  # place 0 is the start
    ]


def test_the_explained_class_is_passed_on_by_its_position():
    model, tokenizer = words()
    explainer = Ordinal()
    explanations = explain_texts(
        model, tokenizer, NAMES, TEXTS[:2], None, ResolvedRequest(explainer, "ordinal", "positive")
    )
    assert explainer.targets == [[2, 2]]
    assert [explanation.target for explanation in explanations] == ["positive"] * 2


def test_a_truncated_text_reports_how_far_it_was_read():
    model, tokenizer = words(max_length=3)
    explanations = explain_texts(model, tokenizer, NAMES, TEXTS, None, ATTENTION)
    assert [explanation.read_to for explanation in explanations] == [11, None, None, 14, None]
    assert explanations[0].tokens == ("A", "gorgeous", ",")


def test_subwords_are_pooled_into_words_unless_requested():
    model, tokenizer = pieces()
    texts = ["Gorgeous movie", "dull"]
    word = explain_texts(model, tokenizer, NAMES, texts, None, ResolvedRequest(Ordinal(), "ordinal"))
    piece = explain_texts(
        model, tokenizer, NAMES, texts, None, ResolvedRequest(Ordinal(), "ordinal", granularity="piece")
    )
    assert [explanation.tokens for explanation in word] == [("Gorgeous", "movie"), ("dull",)]
    assert [explanation.weights for explanation in word] == [(1 + 2, 3), (1 + 2 + 3 + 4,)]
    assert [explanation.tokens for explanation in piece] == [("Gor", "geous", "movie"), ("d", "u", "l", "l")]
    assert [explanation.weights for explanation in piece] == [(1, 2, 3), (1, 2, 3, 4)]
    assert [explanation.granularity for explanation in piece] == ["piece", "piece"]


def test_no_texts_are_no_explanations():
    model, tokenizer = words()
    assert explain_texts(model, tokenizer, NAMES, [], None, ATTENTION) == []
