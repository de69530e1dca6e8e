"""Any method of Captum on word vectors, seeded by the text; unsupported methods are refused."""

import sys
from functools import partial

import captum.attr as attr
import numpy as np
import pytest
import torch

from contract.tiny import assert_close, batch, cached_classifier, split
from explainers.worked import WORTH, Line, random_texts, row, texts
from steadygaze.core.errors import UserError
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.captum import Captum, is_captum
from steadygaze.explainers.gradient import InputXGradient, IntegratedGradients
from steadygaze.explainers.kernel_shap import KernelShap

EXACT = {  # where p is a straight line, each of these gives every word what it adds
    "InputXGradient": {},
    "IntegratedGradients": {"n_steps": 2},
    "GradientShap": {},
    "FeatureAblation": {},
    "Occlusion": {},
    "ShapleyValueSampling": {"n_samples": 2},
    "ShapleyValues": {},
    "KernelShap": {"n_samples": 60},
}


@pytest.mark.parametrize("name", EXACT)
def test_of_a_straight_line_every_method_gives_every_word_what_it_adds(name):
    """The first token of each row is no word: it is never taken out, and given nothing."""
    words = texts([6, 1, 2, 4], [6, 3, 5], [6], specials=True)
    result = Captum(getattr(attr, name), EXACT[name]).explain(Line(), words, torch.tensor([1, 0, 1]))
    expected = torch.tensor(WORTH, dtype=torch.float64)[words.ids] * torch.tensor([[1.0], [-1.0], [1.0]]) * words.mask
    torch.testing.assert_close(
        result.weights, expected, rtol=0, atol=1e-5
    )  # Captum works in single precision at places


def test_the_slopes_of_saliency_are_added_up_without_sign():
    """|0.03| + |−0.04| = 0.07 for every word."""
    words = texts([1, 2, 4], [3])
    assert_close(Captum(attr.Saliency).explain(Line(), words).weights, 0.07 * words.mask.double())


@pytest.mark.parametrize("encoder", ["bilstm", "transformer"])
def test_named_methods_give_the_same_one_text_at_a_time(encoder):
    model, words = cached_classifier(encoder), batch(split())
    for theirs, ours in ((attr.InputXGradient, InputXGradient()), (attr.IntegratedGradients, IntegratedGradients())):
        result, expected = Captum(theirs).explain(model, words), ours.explain(model, words)
        torch.testing.assert_close(result.weights, expected.weights, rtol=0, atol=1e-9)
        torch.testing.assert_close(result.logits, expected.logits, rtol=0, atol=1e-9)


def test_a_class_a_partial_a_maker_and_an_object_are_one():
    model, words = cached_classifier("cnn"), batch(split())
    ways = (
        attr.IntegratedGradients,
        partial(attr.IntegratedGradients, multiply_by_inputs=True),
        lambda f: attr.IntegratedGradients(f),
        attr.IntegratedGradients(print),
    )
    first, *rest = (Captum(way, {"n_steps": 5}).explain(model, words).weights for way in ways)
    assert all(torch.equal(first, other) for other in rest)


def test_an_objects_own_function_is_neither_called_nor_lost():
    inputs = attr.NoiseTunnel(attr.Saliency(print))
    Captum(inputs, {"nt_samples": 2}).explain(cached_classifier("cnn"), batch(split()))
    assert inputs.attribution_method.forward_func is print


def test_settings_are_handed_on():
    model, words = cached_classifier("bilstm"), random_texts(4)
    exact = IntegratedGradients(steps=100).explain(model, words).weights
    few, more = (Captum(attr.IntegratedGradients, {"n_steps": n}).explain(model, words).weights for n in (1, 30))
    assert (more - exact).norm() < 1e-6 < (few - exact).norm()
    configured = Captum(attr.IntegratedGradients, {"n_steps": 30, "return_convergence_delta": True})
    assert_close(configured.explain(model, words).weights, more)


@pytest.mark.parametrize(
    "make", [attr.GradientShap, attr.ShapleyValueSampling, lambda f: attr.NoiseTunnel(attr.Saliency(f))]
)
def test_what_is_drawn_belongs_to_the_text(make):
    model, words = cached_classifier("cnn"), random_texts(5, 9, 5)
    explainer = Captum(make)
    together = explainer.explain(model, words).weights
    torch.rand(1)
    np.random.random()
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()
    for place in range(3):
        alone = explainer.explain(model, row(words, place)).weights[0]
        torch.testing.assert_close(alone, together[place, : len(alone)], rtol=0, atol=1e-9)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (attr.LayerIntegratedGradients, "LayerIntegratedGradients explains a layer or a neuron inside a network"),
        (attr.NeuronGradient, "NeuronGradient explains a layer or a neuron"),
        (attr.LayerActivation(print, None), "LayerActivation explains a layer"),
        (attr.DeepLift, "DeepLift replaces activation modules, .* try integrated-gradients"),
        (attr.GuidedBackprop, "GuidedBackprop replaces activation modules"),
        (attr.LRP, "LRP replaces activation modules"),
        (attr.NoiseTunnel(attr.DeepLift(torch.nn.ReLU())), "DeepLift replaces activation modules"),
        (attr.FeaturePermutation, "FeaturePermutation permutes words between texts"),
        (attr.DataLoaderAttribution, "DataLoaderAttribution does not explain the inputs of a function"),
        (attr.NoiseTunnel, "NoiseTunnel needs the arguments attribution_method; pass an object"),
        (attr.LimeBase, "LimeBase needs the arguments forward_func, interpretable_model"),
        (5, "5 is not a method of Captum"),
    ],
)
def test_an_unsupported_method_is_refused_before_anything_is_read(method, sentence):
    with pytest.raises(UserError, match=sentence):
        Captum(method)


def test_a_maker_of_something_else_is_refused_when_it_is_seen():
    model, words = Line(), texts([1, 2])
    with pytest.raises(UserError, match="expected a factory of a Captum method, found one that returns 5"):
        Captum(lambda _: 5).explain(model, words)
    with pytest.raises(UserError, match="DeepLift replaces activation modules"):
        Captum(lambda _: attr.DeepLift(model)).explain(model, words)


def test_a_method_that_answers_something_else_than_numbers_for_vectors_is_refused():
    with pytest.raises(UserError, match="KernelShap must return one number for each entry"):
        Captum(attr.KernelShap, {"return_input_shape": False}).explain(Line(), texts([1, 2, 3]))


def test_methods_of_captum_are_recognized():
    assert is_captum(attr.Saliency)
    assert is_captum(attr.Saliency(print))
    assert is_captum(partial(attr.Saliency))
    assert not any(map(is_captum, ("lime", 5, None, print, KernelShap, KernelShap(), attr)))
    assert [Captum(method).name for method in (attr.Saliency, attr.Saliency(print), partial(attr.Saliency))] == [
        "Saliency"
    ] * 3
    assert Captum(lambda f: attr.Saliency(f)).name == "Captum"


def test_without_captum_only_its_own_methods_are_refused(monkeypatch):
    from steadygaze.explainers.resolve_explainer import resolve_explainer

    for name in ("captum", "captum.attr"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=r"pip install 'steadygaze\[captum\]'"):
        Captum(lambda f: f)
    for name in EXPLAINERS:
        assert resolve_explainer(name)[0] == name
    with pytest.raises(UserError, match="unknown explainer 'GradientShap'"):
        resolve_explainer("GradientShap")
