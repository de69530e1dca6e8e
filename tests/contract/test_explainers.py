"""What every explainer promises: one number per word, nothing elsewhere, and a model left exactly as it was."""

import pytest
import torch
from torch import nn

from contract.tiny import CLASSES, ENCODER_NAMES, TEXTS, batch, classifier, split, widened
from steadygaze.explain import EXPLAINERS

EXPLAINER = pytest.mark.parametrize("name", EXPLAINERS)
MODEL = pytest.mark.parametrize("encoder", ENCODER_NAMES)
PAIR = pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])


def in_use(encoder: str, pair: bool = False) -> nn.Module:
    """A model in the middle of its training: modes mixed, gradients half gathered."""
    model = classifier(encoder, pair, torch.float32).train()
    model.scorer.eval()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    return model


def look(model: nn.Module) -> tuple[object, ...]:
    """All that an explainer could leave behind on a model."""
    modes = [module.training for module in model.modules()]
    asks = [parameter.requires_grad for parameter in model.parameters()]
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    hooks = [list(getattr(module, kind)) for module in model.modules() for kind in kinds]
    values = [value.clone() for value in model.state_dict().values()]
    gradients = [None if parameter.grad is None else parameter.grad.clone() for parameter in model.parameters()]
    return modes, asks, hooks, torch.is_grad_enabled(), values, gradients


def assert_untouched(model: nn.Module, before: tuple[object, ...]) -> None:
    after = look(model)
    assert after[:-2] == before[:-2]
    torch.testing.assert_close(after[-2:], before[-2:], rtol=0, atol=0)


@PAIR
@MODEL
@EXPLAINER
def test_one_number_per_word_none_elsewhere_and_the_logits_of_the_model(name, encoder, pair):
    model, texts = in_use(encoder, pair), widened(batch(split(pair=pair)), 2)
    saliency = EXPLAINERS[name]().explain(model, texts)
    assert saliency.weights.shape == texts.ids.shape
    assert saliency.weights.isfinite().all()
    assert not saliency.weights[~texts.mask].any()
    assert saliency.weights[texts.mask].any()
    torch.testing.assert_close(saliency.logits, model.eval()(texts).logits, rtol=1e-5, atol=1e-5)
    assert not saliency.weights.requires_grad
    assert not saliency.logits.requires_grad


@MODEL
@EXPLAINER
def test_the_model_is_left_as_it_was(name, encoder):
    model = in_use(encoder)
    before = look(model)
    EXPLAINERS[name]().explain(model, batch(split()), torch.zeros(len(TEXTS), dtype=torch.long))
    assert_untouched(model, before)


@pytest.mark.parametrize("part", ["encoder", "scorer", "attention", "decoder"])
@EXPLAINER
def test_the_model_is_left_as_it_was_even_when_it_fails(name, part, monkeypatch):
    model = in_use("bilstm")
    before = look(model)

    def fail(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(getattr(model, part), "forward", fail)
    with pytest.raises(RuntimeError, match="planted"):
        EXPLAINERS[name]().explain(model, batch(split()))
    monkeypatch.undo()
    assert_untouched(model, before)


@PAIR
@MODEL
@EXPLAINER
def test_the_same_text_gets_the_same_explanation_again_and_in_any_batch(name, encoder, pair):
    model, explainer, data = in_use(encoder, pair), EXPLAINERS[name](), split(pair=pair)
    target = torch.arange(len(TEXTS)) % CLASSES
    together = explainer.explain(model, batch(data), target)
    again = explainer.explain(model, batch(data), target)
    assert torch.equal(together.weights, again.weights)
    assert torch.equal(together.logits, again.logits)
    for row, text in enumerate(TEXTS):
        alone = explainer.explain(model, widened(batch(data, [row]), 1), target[[row]])
        torch.testing.assert_close(alone.weights[0, : len(text)], together.weights[row, : len(text)], rtol=0, atol=1e-5)


@EXPLAINER
def test_every_explainer_says_what_it_is(name):
    assert EXPLAINERS[name].__doc__
    assert "Leaves the model" not in EXPLAINERS[name].__doc__
