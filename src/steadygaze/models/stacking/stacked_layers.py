"""Layers of K models as one layer, with the parameters of all models stacked.  (…) -> (K,…)

A row of a batch belongs to model `row mod K`: rows of the models alternate.  Concatenated batches keep this order, so
that a technique's loss, written for one model, computes the losses of all models.

`stack` replaces the layers with parameters; everything else is the code of one model.  Names of parameters stay.
"""

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from steadygaze.core.types import Encoded
from steadygaze.models.attention_layers import Logits, ScaledDot
from steadygaze.models.classifier import Classifier
from steadygaze.models.encoders.word_encoders import Recurrent
from steadygaze.models.stacking.recurrence import recur


class StackedLayer(nn.Module):
    """Stacked parameters, by the names they have in one model."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.count = len(layers)
        for name, first in layers[0].named_parameters(recurse=False):
            values = torch.stack([layer.get_parameter(name).detach() for layer in layers])
            self.register_parameter(name, nn.Parameter(values, first.requires_grad))

    def by_model(self, values: Tensor) -> Tensor:
        """(N,…,E) -> (K,M,E)"""
        rows = values.reshape(len(values) // self.count, self.count, -1, values.shape[-1])
        return rows.transpose(0, 1).reshape(self.count, -1, values.shape[-1])

    def by_row(self, values: Tensor, *shape: int) -> Tensor:
        """(K,M,E) -> (N,…,E) of this shape, without E"""
        rows = values.view(self.count, shape[0] // self.count, -1, values.shape[-1])
        return rows.transpose(0, 1).reshape(*shape, values.shape[-1])


class StackedLinear(StackedLayer):
    """(N,…,E) -> (N,…,H)"""

    weight: nn.Parameter  # (K,H,E)

    def forward(self, values: Tensor) -> Tensor:
        grouped, transposed = self.by_model(values), self.weight.transpose(1, 2)
        bias = self._parameters.get("bias")
        if bias is None:
            return self.by_row(grouped @ transposed, *values.shape[:-1])
        return self.by_row(torch.baddbmm(bias.unsqueeze(1), grouped, transposed), *values.shape[:-1])

    def product(self, values: Tensor) -> Tensor:
        return self.by_row(self.by_model(values) @ self.weight.transpose(1, 2), *values.shape[:-1])


class StackedEmbedding(StackedLayer):
    """(N,T) -> (N,T,E)"""

    weight: nn.Parameter  # (K,V,E)

    def forward(self, ids: Tensor) -> Tensor:
        first = torch.arange(len(ids), device=ids.device) % self.count * self.weight.shape[1]
        vectors = functional.embedding(ids + first.unsqueeze(1), self.weight.flatten(0, 1))
        return vectors.masked_fill((ids == 0).unsqueeze(-1), 0.0)  # padding has no gradient


class StackedConvolution(StackedLayer):
    """(N,E,T) -> (N,H,T)"""

    weight: nn.Parameter  # (K,H,E,width)
    bias: nn.Parameter  # (K,H)

    def forward(self, values: Tensor) -> Tensor:
        texts = values.reshape(len(values) // self.count, -1, values.shape[-1])  # (N/K,K·E,T): one group per model
        kernels = self.weight.flatten(0, 1), self.bias.flatten()
        channels = functional.conv1d(texts, *kernels, padding="same", groups=self.count)
        return channels.reshape(len(values), -1, channels.shape[-1])


class StackedScaledDot(StackedLayer):
    """(N,T,H) -> (N,T)"""

    key: nn.Parameter  # (K,H)

    def forward(self, encoded: Encoded) -> Tensor:
        hidden = encoded.hidden
        products = self.by_model(hidden) @ self.key.unsqueeze(-1)
        scores: Tensor = self.by_row(products, *hidden.shape[:-1]).squeeze(-1) / hidden.shape[-1] ** 0.5
        return scores


class StackedRecurrent(nn.Module):
    """(N,T,E), (N,T) -> (N,T,H), (N,H); both directions are groups of one recurrence."""

    def __init__(self, layers: Sequence[Recurrent]) -> None:
        super().__init__()
        self.kind, self.count, self.size = layers[0].kind, len(layers), layers[0].size
        self.forwards = StackedLayer([layer.forwards for layer in layers])
        both = layers[0].backwards is not None
        self.backwards = StackedLayer([layer.backwards for layer in layers]) if both else None  # type: ignore[misc]

    def forward(self, embedded: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        rows, width, _ = embedded.shape
        texts = rows // self.count
        values = embedded.view(texts, self.count, width, -1).permute(1, 2, 0, 3)  # (K,T,M,E)
        mask = present.view(texts, self.count, width).permute(1, 2, 0)
        if self.backwards is not None:
            values, mask = (torch.cat([tensor, tensor.flip(1)]) for tensor in (values, mask))
        x = torch.baddbmm(
            self._both("bias_ih_l0").unsqueeze(1),
            values.reshape(len(values), width * texts, -1),
            self._both("weight_ih_l0").transpose(1, 2),
        )
        weight, bias = self._both("weight_hh_l0"), self._both("bias_hh_l0")
        hidden = recur(self.kind, x.view(len(x), width, texts, -1), weight, bias, mask)
        last = present.sum(-1, keepdim=True).sub(1).clamp_min(0)  # (N,1)
        if self.backwards is None:
            hidden = self._by_row(hidden)
            return hidden, _take(hidden, last)
        ahead, back = self._by_row(hidden[: self.count]), self._by_row(hidden[self.count :].flip(1))
        return torch.cat([ahead, back], -1), torch.cat([_take(ahead, last), back[:, 0]], -1)

    def _both(self, name: str) -> Tensor:
        """Return a parameter of both directions.  (G,…)"""
        ahead = self.forwards.get_parameter(name)
        return ahead if self.backwards is None else torch.cat([ahead, self.backwards.get_parameter(name)])

    def _by_row(self, hidden: Tensor) -> Tensor:
        """(K,T,M,H) -> (N,T,H)"""
        return hidden.permute(2, 0, 1, 3).flatten(0, 1)


def _take(hidden: Tensor, position: Tensor) -> Tensor:
    """(N,T,H), (N,1) -> (N,H)"""
    return hidden.gather(1, position.unsqueeze(-1).expand(-1, -1, hidden.shape[-1])).squeeze(1)


STACKED: dict[type[nn.Module], Callable[[Sequence[nn.Module]], nn.Module]] = {
    nn.Linear: StackedLinear,
    Logits: StackedLinear,
    nn.Embedding: StackedEmbedding,
    nn.Conv1d: StackedConvolution,
    Recurrent: StackedRecurrent,  # type: ignore[dict-item]
}


def is_stackable(model: nn.Module) -> bool:
    """Return True if every parameter of the model belongs to a layer that can be stacked."""
    if not isinstance(model, Classifier):
        return False
    layers = [layer for _, layer in _layers(model)]
    inside = {parameter for layer in layers for parameter in layer.parameters()}
    return inside == set(model.parameters())


def stack(models: Sequence[Classifier]) -> Classifier:
    """Return one network of all models: K rows of a batch, one per model, alternate."""
    shared = {id(parameter): parameter for parameter in models[0].parameters()}  # not copied
    stacked = copy.deepcopy(models[0], shared)
    for name, layer in list(_layers(models[0])):
        parent, _, attribute = name.rpartition(".")
        make = _stacked_class(layer)
        assert make is not None
        setattr(stacked.get_submodule(parent), attribute, make([model.get_submodule(name) for model in models]))
    return stacked


@torch.no_grad()
def unstack(stacked: Classifier, models: Sequence[Classifier]) -> None:
    """Copy the parameters of the stacked network to the models."""
    values = dict(stacked.named_parameters())
    for number, model in enumerate(models):
        for name, parameter in model.named_parameters():
            parameter.copy_(values[name][number])


def _layers(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the layers that `stack` replaces, by name; not the layers inside them."""
    layers: dict[str, nn.Module] = {}
    for name, layer in model.named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in layers)
        if not inside and _stacked_class(layer) is not None:
            layers[name] = layer
    return list(layers.items())


def _stacked_class(layer: nn.Module) -> Callable[[Sequence[nn.Module]], nn.Module] | None:
    if isinstance(layer, ScaledDot) and isinstance(layer.key, nn.Parameter):
        return StackedScaledDot
    return STACKED.get(type(layer))
