"""One backward pass for the gradient at the embeddings and those of the parameters.

Adversarial training needs the gradient of the clean loss at the embeddings before the second forward pass, and the
gradients of the parameters at the end.  Computed apart, the clean pass is run back twice: 2.3 plain steps instead of 2.

    g_x, g_θ  =  ∂(Σ ℓ) / ∂(x, θ)            once; the activations of the clean pass are then freed
    ∂(c Σ ℓ) / ∂(x, θ)  =  c g_x, c g_θ        in the backward pass of the whole loss

The factor c of all texts is the same: `StableTrainer` minimizes a mean, and the losses are a term as they are.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from steadygaze.core.errors import UserError
from steadygaze.perturbations.gradient_ascent import LOSS_SCALE
from steadygaze.techniques.technique import Differentiate


class KnownGradient(torch.autograd.Function):
    """The losses, with the known gradient of their sum at some tensors."""

    @staticmethod
    def forward(ctx: Any, losses: Tensor, gradients: Sequence[Tensor], *tensors: Tensor) -> Tensor:
        ctx.gradients = gradients
        return losses.clone()

    @staticmethod
    def backward(ctx: Any, *factors: Tensor) -> Any:
        if not bool((factors[0] == factors[0][0]).all()):
            raise UserError(
                "the technique weighs the losses that `differentiate` returned, by text: return them as a term, and "
                "weigh the other terms"
            )
        factor = factors[0][0] / LOSS_SCALE
        return None, None, *(gradient * factor.to(gradient.dtype) for gradient in ctx.gradients)


def differentiate_once(network: nn.Module, layer: nn.Module) -> Differentiate:
    """`layer`: the embeddings, whose parameters have a gradient through the embedded texts alone."""
    embedding = set(layer.parameters())
    parameters = [value for value in network.parameters() if value.requires_grad and value not in embedding]

    def differentiate(losses: Tensor, embedded: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        tensors = [embedded, *parameters]
        scale = torch.full_like(losses, LOSS_SCALE)  # small gradients vanish in half precision
        gradients: Sequence[Tensor | None] = torch.autograd.grad(losses, tensors, scale, allow_unused=True)
        used = [(tensor, value) for tensor, value in zip(tensors, gradients, strict=True) if value is not None]
        values = [value for _, value in used]
        known = KnownGradient.apply(losses.detach(), values, *(tensor for tensor, _ in used))  # type: ignore[no-untyped-call]
        return known, values[0].masked_fill(~mask.unsqueeze(-1), 0.0)

    return differentiate
