"""The explained output: the probability or the logit of a class."""

from types import SimpleNamespace

import captum.attr
import pytest
import torch

from contract.tiny import assert_close
from explainers.worked import SLOPE, WORTH, Line, texts
from steadygaze.core.errors import UserError
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.captum import Captum
from steadygaze.explainers.resolve_explainer import with_output

EXACT = ["leave-one-out", "kernel-shap", "input-x-gradient", "integrated-gradients"]


class LinearLogit(Line):
    """Logits (0, Σ vector · SLOPE): the logit of class 1 is linear, its probability is not."""

    def forward(self, batch, embedded=None):
        vectors = self.embed(batch) if embedded is None else embedded
        logit = ((vectors @ torch.tensor(SLOPE, dtype=vectors.dtype)) * batch.present).sum(-1)
        return SimpleNamespace(weights=None, logits=torch.stack([torch.zeros_like(logit), logit], -1))


@pytest.mark.parametrize("name", EXACT)
def test_of_a_linear_logit_every_word_has_the_weight_that_it_adds(name):
    explainer = with_output(EXPLAINERS[name](), name, "logit")
    words = texts([1, 2, 4], [6, 6])
    weights = explainer.explain(LinearLogit(), words, torch.tensor([1, 1])).weights
    expected = torch.tensor([[WORTH[1], WORTH[2], WORTH[4]], [WORTH[6], WORTH[6], 0.0]], dtype=torch.float64)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-6)
    probability = EXPLAINERS[name]().explain(LinearLogit(), words, torch.tensor([1, 1])).weights
    assert (probability - expected).abs().max() > 0.01  # the derivative of the logistic function is at most 1/4


def test_gradient_and_captum_explain_the_logit():
    words, target = texts([1, 2]), torch.tensor([1])
    norm = torch.tensor(SLOPE, dtype=torch.float64).norm()
    gradient = with_output(EXPLAINERS["gradient"](), "gradient", "logit")
    assert_close(gradient.explain(LinearLogit(), words, target).weights, norm.expand(1, 2))
    product = with_output(Captum(captum.attr.InputXGradient), "InputXGradient", "logit")
    assert_close(product.explain(LinearLogit(), words, target).weights, torch.tensor([WORTH[1:3]], dtype=torch.float64))


@pytest.mark.parametrize("name", ["attention", "rationale", "random"])
def test_an_explainer_without_an_output_refuses_the_logit(name):
    assert with_output(EXPLAINERS[name](), name, "probability")
    with pytest.raises(UserError, match=f"{name} does not explain an output"):
        with_output(EXPLAINERS[name](), name, "logit")
