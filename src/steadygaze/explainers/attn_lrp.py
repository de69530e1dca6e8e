"""AttnLRP: relevance of the word vectors of a transformer, in one backward pass.

Achtibat et al., "AttnLRP: Attention-Aware Layer-Wise Relevance Propagation for Transformers", ICML 2024
(arXiv:2402.05602).  R(·) is the relevance of a value; that of the explained logit is the logit.

    product O = A V            R(A_ji) = ½ Σ_p A_ji V_ip R(O_jp) / O_jp, and so R(V_ip)
    activation y = f(x)        R(x) = R(y)
    normalization              its divisor is a constant
    softmax s = softmax(x)     R(x_i) = x_i (R(s_i) − s_i Σ_j R(s_j))
    linear map y = W x, sum    R(x_i) = x_i Σ_j W_ji R(y_j) / y_j                    the ε-rule with ε = 0

With R(x) = x · g(x), each rule is one for g: half of it for each factor of a product, f(x)/x in place of f′(x), none
through a divisor, the ordinary gradient elsewhere.  So g is a backward pass, and the relevance of a word is Σ_d x_td
g_td.  Products, activations, normalization and linear maps without bias conserve Σ R; softmax, biases and position
vectors keep a part of it.

The rules replace torch's own functions inside a context, whatever the architecture.
"""

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from steadygaze.core.settings import settings
from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import Output
from steadygaze.explainers.explainer import Saliency
from steadygaze.explainers.gradient import ExplainedBatch, InputXGradient
from steadygaze.models.inference import Capability, Model

Rule = Callable[..., Any]
"""(torch's function, its arguments) -> its value, with the gradient of the rule."""


class _Sloped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(slope)
        return y.view_as(y)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return gradients[0] * ctx.saved_tensors[0], None, None


def with_slope(x: Tensor, y: Tensor, slope: Tensor) -> Tensor:
    """The value y with the derivative `slope` by x."""
    sloped: Tensor = _Sloped.apply(x, y.detach(), slope)  # type: ignore[no-untyped-call]
    return sloped


def _share(value: Any, parts: int) -> Any:
    """The value, with this part of its gradient."""
    if not isinstance(value, Tensor) or not value.requires_grad:
        return value
    return with_slope(value, value, value.new_tensor(1 / parts))


def _product(function: Rule, *factors: Any, **more: Any) -> Any:
    varies = sum(isinstance(factor, Tensor) and factor.requires_grad for factor in factors)
    return function(*(_share(factor, varies) for factor in factors), **more)


def _sum_and_product(function: Rule, term: Tensor, *factors: Any, **more: Any) -> Any:
    return _product(partial(function, term), *factors, **more)


def _attention(function: Rule, query: Tensor, key: Tensor, value: Tensor, *others: Any, **more: Any) -> Any:
    """Half of a product's relevance reaches the values; a quarter each, by way of the softmax, query and key."""
    return function(_share(query, 4), _share(key, 4), _share(value, 2), *others, **more)


def _secant(x: Tensor, y: Tensor) -> Tensor:
    """f(x)/x"""
    return torch.where(x == 0, 0.0, y / x).detach()


def _activation(function: Rule, x: Tensor, *others: Any, **more: Any) -> Any:
    y = function(x.detach(), *others, **more)
    return with_slope(x, y, _secant(x, y))


def _divisor(function: Rule, *values: Any, **more: Any) -> Any:
    return function(*values, **more).detach()


def _quotient(function: Rule, dividend: Any, divisor: Any, **more: Any) -> Any:
    return function(dividend, divisor.detach() if isinstance(divisor, Tensor) else divisor, **more)


def _power(function: Rule, base: Any, exponent: Any, **more: Any) -> Any:
    value = function(base, exponent, **more)
    return value.detach() if isinstance(exponent, int | float) and exponent < 0 else value


def _layer_norm(
    function: Rule,
    x: Tensor,
    shape: Iterable[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    centered = x - x.mean(tuple(range(-len(tuple(shape)), 0)), keepdim=True)
    normal = _rms_norm(function, centered, shape, weight, eps)
    return normal if bias is None else normal + bias


def _rms_norm(
    function: Rule, x: Tensor, shape: Iterable[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    square = x.detach().square().mean(tuple(range(-len(tuple(shape)), 0)), keepdim=True)
    normal = x * (square + (torch.finfo(x.dtype).eps if eps is None else eps)).rsqrt()
    return normal if weight is None else normal * weight


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("matmul", "bmm", "mul", "einsum"), _product),
    "baddbmm": _sum_and_product,
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(("gelu", "silu", "relu", "relu6", "leaky_relu", "elu", "mish", "tanh"), _activation),
    **dict.fromkeys(("rsqrt", "reciprocal", "__rdiv__", "__rtruediv__"), _divisor),
    "div": _quotient,
    "pow": _power,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
}
"""By the name of torch's function; one without a rule has its ordinary gradient."""
ACTIVATIONS = "transformers.activations"
"""Module of activations that consist of several of torch's functions."""


class RelevanceRules(TorchFunctionMode):
    """A context in which gradients of variable tensors are those of the rules."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        rule = RULES.get(getattr(func, "__name__", ""))
        varies = any(isinstance(value, Tensor) and value.requires_grad for value in args)
        more = kwargs or {}
        return func(*args, **more) if rule is None or not varies else rule(func, *args, **more)


def with_constant_weights(model: Model) -> Model:
    """A copy on the same weights: they have no gradient, so that only what depends on a text varies."""
    weights = {id(weight): nn.Parameter(weight.detach(), requires_grad=False) for weight in model.parameters()}
    twin = copy.deepcopy(model, {**weights, **{id(buffer): buffer for buffer in model.buffers()}})
    for module in twin.modules():
        if type(module).__module__ == ACTIVATIONS:
            module.register_forward_hook(lambda _, values, y: with_slope(values[0], y, _secant(values[0], y)))
    return twin


@settings
class AttnLrp(InputXGradient):
    """AttnLRP: relevance of each word vector of a transformer, by rules for its layers (Achtibat et al. 2024)."""

    requires: ClassVar[frozenset[Capability]] = frozenset({"embeddings", "transformer"})

    output: Output = "logit"
    """The explained output: the probability or the logit of the class; the paper's is the logit."""

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        return super().explain(with_constant_weights(model), batch, target, embedded)

    def weigh(self, explained: ExplainedBatch) -> Tensor:
        with RelevanceRules():
            return super().weigh(explained)
