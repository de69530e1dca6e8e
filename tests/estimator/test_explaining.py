"""`explain`: whose words are shown, and that the same text always gets the same explanation."""

import json
import resource
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from estimator.tiny import LABELS, PAIRS, SMALL, TEXTS, fitted, fitted_pair, tiny, transformer_folder
from steadygaze.core.errors import UserError
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.attention import Attention
from steadygaze.explainers.lime import Lime
from steadygaze.results.explanation import Explanation

HARD = [
    "Un café très… GOOD, n'est-ce pas?",
    "bad cafe\u0301 👨‍👩‍👧‍👦 good 🇫🇷!",
    "<script>alert('good')</script> & <b>bad</b>",
    "  the\tfilm\n\nwas 1,000.50 times GOOD  ",
    "[SEP] good <s> bad </s> [CLS]",
]


@pytest.fixture(scope="module")
def transformer(encoder):
    return tiny(encoder).fit(TEXTS, LABELS)


@cache
def selecting() -> TextClassifier:
    return tiny("bigru", technique="a2r", settings={**SMALL, "granularity": "token"}).fit(TEXTS, LABELS)


@cache
def reading_pieces() -> TextClassifier:
    folder = transformer_folder(Path(mkdtemp()))
    return tiny(f"transformer:{folder}", settings={}).fit(TEXTS, LABELS)


def able(explainer: str) -> TextClassifier:
    """A model that this explainer supports."""
    return {"rationale": selecting, "attn-lrp": reading_pieces}.get(explainer, fitted)()


def test_one_text_gives_one_explanation_and_a_list_gives_a_list():
    alone, listed = fitted().explain(TEXTS[0]), fitted().explain(TEXTS[:1])
    assert isinstance(alone, Explanation)
    assert isinstance(listed, list)
    assert listed == [alone]
    assert isinstance(fitted().explain(np.str_(TEXTS[0])), Explanation)
    assert len(fitted().explain(np.array(TEXTS))) == 24


def test_one_pair_is_a_tuple_and_the_explanation_keeps_its_question():
    alone = fitted_pair().explain(PAIRS[3])
    assert isinstance(alone, Explanation)
    assert (alone.text, alone.question) == PAIRS[3]
    assert [e.question for e in fitted_pair().explain(PAIRS)] == [question for _, question in PAIRS]


def test_label_and_probabilities_are_those_of_predict():
    explained = fitted().explain(TEXTS)
    assert [e.label for e in explained] == fitted().predict(TEXTS).tolist()
    assert np.allclose([list(e.probabilities.values()) for e in explained], fitted().predict_proba(TEXTS), atol=1e-12)
    assert list(explained[0].probabilities) == ["neg", "pos"]


@pytest.mark.sweep
@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.parametrize("text", HARD)
def test_highlights_land_on_the_users_own_text(explainer, text):
    e = able(explainer).explain(text, explainer=explainer)
    assert e.text == text
    assert list(e.tokens) == [text[start:end] for start, end in e.spans]
    assert "".join(e.tokens) == "".join(text.split())
    assert e.explainer == explainer
    assert any(e.weights)


@pytest.mark.parametrize("text", HARD)
def test_attention_is_shared_out_among_the_words(text):
    assert sum(fitted().explain(text).weights) == pytest.approx(1)


def test_what_a_models_words_are_worth_adds_up():
    """KernelSHAP sums to what all words change against a text without any, of which only the decoder's bias is left."""
    e = fitted().explain(TEXTS[0], explainer="kernel-shap")
    nothing = fitted().stored_.model.decoder.output.bias.detach().softmax(-1).tolist()
    empty = nothing[list(e.probabilities).index(e.label)]
    assert sum(e.weights) == pytest.approx(e.probabilities[e.label] - empty, abs=1e-6)


@pytest.mark.parametrize("explainer", ["gradient", "input-x-gradient", "lime", "kernel-shap", "leave-one-out"])
def test_the_words_a_model_learned_from_weigh_most(explainer):
    top = dict(fitted().explain(TEXTS[0], explainer=explainer).top(3)).keys()
    assert top & {"good", "fine", "and", "was"}  # which stand in all texts of one class and in none of the other


@pytest.mark.parametrize(
    "explainer", ["input-x-gradient", "integrated-gradients", "lime", "kernel-shap", "leave-one-out"]
)
def test_a_weight_for_one_of_two_classes_is_a_weight_against_the_other(explainer):
    explanation, other = (fitted().explain(TEXTS[0], explainer=explainer, target=label) for label in ("neg", "pos"))
    assert np.allclose(explanation.weights, -np.array(other.weights), rtol=0, atol=1e-6)
    assert (explanation.target, other.target) == ("neg", "pos")
    assert explanation.label == other.label


def test_a_script_in_a_review_is_shown_and_not_run():
    e = fitted().explain("good <script>alert(1)</script> film")
    for html in (e._repr_html_(), e.to_html()):
        assert "<script" not in html
        assert "alert" in html


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_the_same_text_gets_the_same_explanation_bit_for_bit(explainer):
    first = able(explainer).explain(TEXTS + HARD, explainer=explainer)
    np.random.default_rng().random()
    assert able(explainer).explain(TEXTS + HARD, explainer=explainer) == first


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_the_company_of_a_text_does_not_matter(explainer):
    texts = [*TEXTS[::4], *HARD, "good film " * 12]
    clf = able(explainer)
    together = clf.explain(texts, explainer=explainer)
    for text, e in zip(texts, together, strict=True):
        alone = clf.explain(text, explainer=explainer)
        assert alone.spans == e.spans
        assert np.allclose(alone.weights, e.weights, rtol=0, atol=1e-5)
        assert np.allclose(list(alone.probabilities.values()), list(e.probabilities.values()), rtol=0, atol=1e-5)


def test_an_explainer_may_be_an_object():
    assert fitted().explain(TEXTS[0], explainer=Attention()).weights == fitted().explain(TEXTS[0]).weights
    assert fitted().explain(TEXTS[0], explainer=Attention()).explainer == "attention"


def test_an_explainer_that_nobody_registered_is_called_by_its_class():
    class Mine(Attention):
        pass

    assert fitted().explain(TEXTS[0], explainer=Mine()).explainer == "Mine"


def test_an_explainer_may_have_settings_of_its_own():
    e = fitted().explain(TEXTS[0], explainer=Lime(samples=64, ridge=0.0))
    assert e.explainer == "lime"
    assert e.weights != fitted().explain(TEXTS[0], explainer="lime").weights


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", ["GradientShap", "Saliency", "FeatureAblation", "Occlusion", "ShapleyValueSampling"])
def test_an_explainer_may_be_a_method_of_captum(name):
    import captum.attr

    method = getattr(captum.attr, name)
    texts = [TEXTS[0], HARD[0], "good"]
    result = fitted().explain(texts, explainer=method, target="pos")
    assert [e.explainer for e in result] == [name] * 3
    assert [len(e) for e in result] == [6, 11, 1]
    assert all(any(e.weights) for e in result)
    assert fitted().explain(texts, explainer=method(print), target="pos") == result
    assert fitted().explain(TEXTS[0], explainer=method, target="pos").weights == pytest.approx(
        result[0].weights, abs=1e-6
    )


def test_a_method_of_captum_that_explains_no_inputs_is_refused():
    from captum.attr import DeepLift, LayerIntegratedGradients

    with pytest.raises(UserError, match="LayerIntegratedGradients explains a layer"):
        fitted().explain(TEXTS[0], explainer=LayerIntegratedGradients)
    with pytest.raises(UserError, match="DeepLift replaces activation modules"):
        fitted().explain(TEXTS[0], explainer=DeepLift)


def test_a_target_is_one_of_the_labels():
    assert fitted().explain(TEXTS[0]).target is None
    assert fitted().explain(TEXTS[0], "gradient", target=np.str_("neg")).target == "neg"
    numbered = tiny().fit(TEXTS, [int(label == "pos") for label in LABELS])
    e = numbered.explain(TEXTS[0], "gradient", target=np.int64(1))
    assert json.loads(json.dumps(e.to_dict()))["target"] == 1
    with pytest.raises(UserError, match="unknown label '1': did you mean 1"):
        numbered.explain(TEXTS[0], target="1")
    with pytest.raises(UserError, match="attention is the same for every class"):
        fitted().explain(TEXTS[0], target="neg")
    with pytest.raises(UserError, match="random is the same for every class"):
        fitted().explain(TEXTS[0], "random", target="neg")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"explainer": "atention"}, "unknown explainer 'atention': did you mean 'attention'"),
        ({"explainer": 5}, "unknown explainer 5"),
        ({"explainer": Attention}, "unknown explainer <class"),
        ({"target": "poss"}, "unknown label 'poss': did you mean 'pos'"),
        ({"target": ["pos"]}, "unknown label"),
        ({"target": np.array(["pos", "neg"])}, "unknown label"),
        ({"granularity": "words"}, "unknown granularity 'words': did you mean 'word'"),
    ],
)
def test_a_wrong_request_is_refused_with_the_nearest_name(wrong, sentence):
    with pytest.raises(UserError, match=sentence):
        fitted().explain(TEXTS[0], **wrong)


def test_a_transformers_subwords_are_pooled_into_words_unless_requested(transformer):
    text = "The unbelievable FILM was good, good"
    words, pieces = transformer.explain(text), transformer.explain(text, granularity="piece")
    assert words.tokens == ("The", "unbelievable", "FILM", "was", "good", ",", "good")
    assert len(pieces) > len(words)
    assert "".join(pieces.tokens) == "".join(words.tokens)
    assert (words.granularity, pieces.granularity) == ("word", "piece")
    inside = [w for (start, end), w in zip(pieces.spans, pieces.weights, strict=True) if 4 <= start < end <= 16]
    assert words.weights[1] == pytest.approx(sum(inside))
    assert sum(words.weights) == pytest.approx(sum(pieces.weights)) == pytest.approx(1)


@pytest.mark.parametrize("explainer", ["integrated-gradients", "kernel-shap"])
def test_signed_pieces_are_pooled_into_words_too(explainer, transformer):
    text = "The unbelievable FILM was good, good"
    words, pieces = (transformer.explain(text, explainer, granularity=kind) for kind in ("word", "piece"))
    assert len(pieces) > len(words)
    assert sum(words.weights) == pytest.approx(sum(pieces.weights))
    assert any(words.weights)


def test_a_word_models_words_are_its_pieces():
    word, piece = (fitted().explain(TEXTS[0], granularity=kind) for kind in ("word", "piece"))
    assert (word.tokens, word.weights) == (piece.tokens, piece.weights)


def test_a_truncated_text_reports_its_last_token(transformer):
    with pytest.warns(UserWarning, match="reads only their first 3 tokens"):
        clf = tiny(max_length=3).fit(TEXTS, LABELS)
    with pytest.warns(UserWarning, match="1 of 1 texts were truncated at 3 tokens"):
        e = clf.explain("the film was good and fine")
    assert e.tokens == ("the", "film", "was")
    assert e.read_to == len("the film was")
    assert clf.explain("the film was").read_to is None
    with pytest.warns(UserWarning, match=r"To read whole texts, train a TextClassifier with the setting window=256"):
        assert transformer.explain("good " * 200).read_to < 1000
    with pytest.warns(UserWarning, match="1 of 1 texts were truncated at 3 tokens"):
        same = clf.predict_proba(["the film was good"]), clf.predict_proba(["the film was bad"])
    assert np.array_equal(*same)


@pytest.mark.slow
def test_a_text_of_a_hundred_thousand_words_is_no_trouble():
    text = "good film , " * 33_334
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.warns(UserWarning, match="1 of 2 texts were truncated at 512 tokens"):
        probabilities = fitted().predict_proba([text, TEXTS[0]])
    with pytest.warns(UserWarning, match="1 of 1 texts were truncated at 512 tokens"):
        e = fitted().explain(text)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # KiB
    assert np.isfinite(probabilities).all()
    assert len(e) == 512
    assert e.text[e.read_to :].startswith(" ")
    assert grown < 300_000


def test_a_text_longer_than_the_training_texts_is_read_whole_if_requested():
    clf = tiny(max_length=5_000).fit(TEXTS, LABELS)
    e = clf.explain("good " * 4_000)
    assert len(e) == 4_000
    assert e.read_to is None
