"""What every explainer promises: one number per word, nothing elsewhere, and a model left exactly as it was."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.backends import cudnn

from contract.probing import in_use, state
from contract.tiny import CLASSES, ENCODER_NAMES, TEXTS, batch, classifier, littered, split, widened
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.captum import Captum
from steadygaze.explainers.explainer import Explainer
from steadygaze.models.classifier import Classifier

CAPTUM = {"GradientShap": {}, "FeatureAblation": {}, "ShapleyValueSampling": {"n_samples": 3}}
ABLE = [name for name, kind in EXPLAINERS.items() if kind.requires <= Classifier.capabilities]
"""Tests that need a model that selects are in tests/explainers/test_rationale.py."""
NAMES = [*ABLE, *CAPTUM]
EXPLAINER = pytest.mark.parametrize("name", NAMES)
ENCODERS = {name: ["bilstm", "cnn", "transformer"] for name in EXPLAINERS} | {"attention": ENCODER_NAMES}
EXPLAINER_AND_MODEL = pytest.mark.parametrize(
    ("name", "encoder"), [(name, encoder) for name in NAMES for encoder in ENCODERS.get(name, ["bilstm"])]
)
PAIR = pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])


def made(name: str) -> Explainer:
    """With its own settings; and some methods of Captum, as anybody may bring them."""
    if name in EXPLAINERS:
        return EXPLAINERS[name]()
    import captum.attr

    return Captum(getattr(captum.attr, name), CAPTUM[name])


@pytest.mark.sweep
@PAIR
@EXPLAINER_AND_MODEL
def test_one_number_per_word_none_elsewhere_and_the_logits_of_the_model(name, encoder, pair):
    model, texts = in_use(encoder, pair), widened(batch(split(pair=pair)), 2)
    saliency = made(name).explain(model, texts)
    assert saliency.weights.shape == texts.ids.shape
    assert saliency.weights.isfinite().all()
    assert not saliency.weights[~texts.mask].any()
    assert saliency.weights.any(-1).equal(texts.mask.any(-1))  # a text of one word has its weight, too
    torch.testing.assert_close(saliency.logits, model.eval()(texts).logits, rtol=1e-5, atol=1e-5)
    assert not saliency.weights.requires_grad
    assert not saliency.logits.requires_grad


@pytest.mark.sweep
@EXPLAINER_AND_MODEL
def test_the_model_is_left_as_it_was(name, encoder):
    model = in_use(encoder)
    with cudnn.flags(enabled=True, benchmark=True, deterministic=True, allow_tf32=True):
        before = state(model)
        made(name).explain(model, batch(split()), torch.zeros(len(TEXTS), dtype=torch.long))
        assert state(model) == before


@pytest.mark.sweep
@pytest.mark.parametrize("part", ["encoder", "scorer", "attention", "decoder"])
@EXPLAINER
def test_the_model_is_left_as_it_was_even_when_it_fails_at_any_call(name, part, monkeypatch):
    model, texts, explainer = in_use("bilstm"), batch(split(("sws", "www"))), made(name)
    before = state(model)
    right = getattr(model, part).forward
    left = [10**6]  # calls until it fails

    def failing(*inputs: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("planted")
        return right(*inputs)

    monkeypatch.setattr(getattr(model, part), "forward", failing)
    explainer.explain(model, texts)
    calls = 10**6 - left[0]
    assert calls
    for at in range(min(calls, 4)):
        left[0] = at
        with pytest.raises(RuntimeError, match="planted"):
            explainer.explain(model, texts)
        left[0] = 10**6
        monkeypatch.undo()
        assert state(model) == before
        monkeypatch.setattr(getattr(model, part), "forward", failing)


@pytest.mark.sweep(keep=4)
@PAIR
@EXPLAINER_AND_MODEL
def test_the_same_text_gets_the_same_explanation_again_and_in_any_batch(name, encoder, pair):
    model, explainer, data = in_use(encoder, pair), made(name), split(pair=pair)
    target = torch.arange(len(TEXTS)) % CLASSES
    together = explainer.explain(model, batch(data), target)
    torch.rand(3)
    np.random.random(3)
    again = explainer.explain(model, batch(data), target)
    assert torch.equal(together.weights, again.weights)
    assert torch.equal(together.logits, again.logits)
    for row, text in enumerate(TEXTS):
        alone = explainer.explain(model, widened(batch(data, [row]), 1), target[[row]])
        torch.testing.assert_close(alone.weights[0, : len(text)], together.weights[row, : len(text)], rtol=0, atol=1e-5)


@pytest.mark.sweep(keep=4)
@EXPLAINER_AND_MODEL
def test_what_stands_in_the_padding_and_beside_a_text_changes_nothing(name, encoder):
    model, explainer, texts = in_use(encoder, True), made(name), batch(split(pair=True))
    result = explainer.explain(model, texts).weights
    elsewhere = replace(texts, index=texts.index + 100)  # the same texts in other rows of their split
    assert torch.equal(explainer.explain(model, elsewhere).weights, result)
    torch.testing.assert_close(explainer.explain(model, littered(texts)).weights, result, rtol=0, atol=1e-5)
    turned = torch.arange(len(TEXTS)).flip(0)
    other = explainer.explain(model, batch(split(pair=True), turned.tolist())).weights
    torch.testing.assert_close(other[turned], result, rtol=0, atol=1e-5)


@pytest.mark.sweep(keep=4)
@EXPLAINER
def test_the_explained_class_is_the_predicted_one_unless_another_is_named(name):
    model, explainer, texts = classifier("bilstm"), made(name), batch(split())
    predicted = model(texts).logits.argmax(-1)
    predicted_weights, other = (
        explainer.explain(model, texts, aim).weights for aim in (predicted, (predicted + 1) % CLASSES)
    )
    assert torch.equal(explainer.explain(model, texts).weights, predicted_weights)
    if explainer.class_specific:
        assert (predicted_weights != other).any(-1).equal(texts.mask.any(-1))
    else:
        assert torch.equal(predicted_weights, other)


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("name", [name for name in NAMES if made(name).requires])
def test_vectors_in_place_of_the_texts_own_are_what_is_explained(name):
    """With the words' own vectors, the same as with the words; with those of other words, the result of these."""
    model, explainer, texts = classifier("cnn"), made(name), batch(split())
    assert torch.equal(
        explainer.explain(model, texts, embedded=model.embed(texts)).weights, explainer.explain(model, texts).weights
    )
    moved = 1.5 * model.embed(texts)
    result = explainer.explain(model, texts, embedded=moved)
    torch.testing.assert_close(result.logits, model(texts, moved).logits)
    assert (result.weights != explainer.explain(model, texts).weights).any()


@EXPLAINER
def test_a_batch_without_a_single_word_is_no_trouble(name):
    saliency = made(name).explain(classifier("bilstm"), batch(split(("s", "ss"))))
    assert not saliency.weights.any()
    assert saliency.logits.isfinite().all()


@EXPLAINER
def test_every_explainer_has_a_docstring(name):
    explainer = made(name)
    assert explainer.__doc__
    assert "Does not change the model" not in explainer.__doc__
    assert explainer.forward_passes >= 1


def test_what_reads_words_alone_needs_nothing_but_predictions():
    assert not any(kind.requires for kind in EXPLAINERS.values() if kind.deletes_words)
    assert not EXPLAINERS["random"].requires


@pytest.mark.parametrize("name", EXPLAINERS)
def test_every_explainer_has_a_test_file_of_its_own(name, request):
    assert (request.path.parent.parent / "explainers" / f"test_{name.replace('-', '_')}.py").is_file()
