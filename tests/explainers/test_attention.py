"""The attention explainer: the model's own weights, for one forward pass."""

from contract.tiny import assert_close, batch, classifier, split
from steadygaze.explainers.attention import Attention


def test_it_gives_the_models_own_weights_and_logits():
    model, texts = classifier(), batch(split())
    saliency = Attention().explain(model, texts)
    forward = model(texts)
    assert_close(saliency.weights, forward.weights)
    assert_close(saliency.logits, forward.logits)
    assert_close(saliency.weights.sum(-1), texts.mask.any(-1).double())


def test_it_takes_one_forward_pass():
    model, passes = classifier(), []
    model.encoder.register_forward_hook(lambda *_: passes.append("encoder"))
    model.decoder.register_forward_hook(lambda *_: passes.append("decoder"))
    Attention().explain(model, batch(split()))
    assert passes == ["encoder", "decoder"]
