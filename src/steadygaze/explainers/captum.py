"""Attribution methods of Captum, applied to word vectors.

    f(x) = p_c(x)         probability of the explained class, x (T,E) the word vectors

Texts are explained one at a time: random draws then depend on the text alone, and methods never see padding.  A word is
one feature; its baseline is the padding vector.  Tokens that are not words stay unchanged and get weight 0.

Captum is an extra, and is imported lazily because the import takes most of a second.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, signature
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from steadygaze.core.errors import UserError
from steadygaze.core.random_key import text_key
from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import Output, max_tokens
from steadygaze.explainers.gradient import ExplainedBatch, VectorExplainer, gradient_tokens
from steadygaze.perturbations.word_removal import words_of


@dataclass(frozen=True)
class Captum(VectorExplainer):
    """Any method of Captum on word vectors; one text at a time.

    clf.explain(texts, explainer=captum.attr.GradientShap)
    clf.explain(texts, explainer=Captum(captum.attr.GradientShap, {"n_samples": 50}))
    clf.explain(texts, explainer=Captum(lambda f: NoiseTunnel(Saliency(f)), {"nt_samples": 10}))
    """

    forward_passes: ClassVar[int] = 100

    method: Any
    """A class of Captum, a factory that takes the function, or an object, which is copied with a new function."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `attribute`: n_samples, n_steps …"""
    output: Output = "probability"
    """The explained output: the probability or the logit of the class."""

    def __post_init__(self) -> None:
        kind, base = self._kind, _captum().Attribution
        if isinstance(kind, type) and issubclass(kind, base):
            _refuse(kind)
            _refuse_alone(self.method, self.name)
        elif isinstance(kind, base):
            _refuse_instance(kind)
        elif not callable(kind):
            raise UserError(f"{kind!r:.80} is not a method of Captum or a factory of one; pass a class of captum.attr")

    @property
    def _kind(self) -> Any:
        return self.method.func if isinstance(self.method, partial) else self.method

    @property
    def name(self) -> str:
        """Name of the explainer in explanations."""
        kind = self._kind if isinstance(self._kind, type) else type(self._kind)
        return kind.__name__ if kind.__module__.startswith("captum.") else "Captum"

    def groups(self, batch: Batch) -> Iterator[Tensor]:
        return iter(words_of(batch).any(-1).nonzero())

    def weigh(self, explained: ExplainedBatch) -> Tensor:
        with _seeded(int(text_key(explained.batch)), explained.vectors.device):
            return self._attribute(explained)

    def _attribute(self, explained: ExplainedBatch) -> Tensor:
        """(1,T,E) -> (1,T)"""
        method = _with_function(self.method, explained.f)
        inner = getattr(method, "attribution_method", method)  # NoiseTunnel passes other arguments on
        parameters = {**signature(method.attribute).parameters, **signature(inner.attribute).parameters}
        arguments = {name: value for name, value in _arguments(explained).items() if name in parameters}
        attributions = method.attribute(explained.vectors, **{**arguments, **self.settings})
        attributions = attributions[0] if isinstance(attributions, tuple) else attributions
        if not isinstance(attributions, Tensor) or attributions.shape != explained.vectors.shape:
            raise UserError(
                f"{self.name} must return one number for each entry of the word vectors; use another method"
            )
        # Perturbation methods treat a word as one feature and repeat its value in each entry of the vector.
        values = attributions.detach().double()
        return values.mean(-1) if {"feature_mask", "sliding_window_shapes"} & parameters.keys() else values.sum(-1)


def is_captum(explainer: object) -> bool:
    """True for a class of Captum, a partial of one, or an object of one."""
    if sys.modules.get("captum") is None:  # its objects exist only after its import
        return False
    base = _captum().Attribution
    kind = explainer.func if isinstance(explainer, partial) else explainer
    return isinstance(kind, base) or (isinstance(kind, type) and issubclass(kind, base))


def _captum() -> Any:
    try:
        from captum import attr
    except ImportError:
        raise UserError("methods of Captum need an extra package: pip install 'steadygaze[captum]'") from None
    return attr


def _refuse(kind: type[Any]) -> None:
    """Refuse methods that do not explain words or would be wrong for these networks."""
    attr, name, parameters = _captum(), kind.__name__, signature(kind.attribute).parameters
    if issubclass(kind, attr.LayerAttribution | attr.NeuronAttribution):
        raise UserError(f"{name} explains a layer or a neuron inside a network; use a method that explains inputs")
    if "model" in signature(kind).parameters:
        raise UserError(f"{name} replaces activation modules, which these models do not have; try integrated-gradients")
    if issubclass(kind, attr.FeaturePermutation):
        raise UserError(f"{name} permutes words between texts; try leave-one-out, which deletes each word")
    if not {"additional_forward_args", "nt_type"} & parameters.keys():
        raise UserError(f"{name} does not explain the inputs of a function; try integrated-gradients")


def _refuse_instance(instance: Any) -> None:
    _refuse(type(instance))
    if hasattr(instance, "attribution_method"):
        _refuse_instance(instance.attribution_method)


def _refuse_alone(factory: Any, name: str) -> None:
    """Refuse a class, or a partial of it, that needs other arguments than the function."""
    required = [p.name for p in signature(factory).parameters.values() if p.default is Parameter.empty]
    if required != ["forward_func"]:
        raise UserError(
            f"{name} needs the arguments {', '.join(required)}; pass an object of it, made with any function"
        )


def _with_function(method: Any, f: Callable[..., Tensor]) -> Any:
    base = _captum().Attribution
    if not isinstance(method, base):
        instance = method(f)
        if not isinstance(instance, base):
            raise UserError(f"expected a factory of a Captum method, found one that returns {instance!r:.80}")
        _refuse_instance(instance)
        return instance
    instance = copy(method)
    if hasattr(instance, "attribution_method"):
        instance.attribution_method = _with_function(instance.attribution_method, f)
    instance.forward_func = f
    return instance


def _arguments(explained: ExplainedBatch) -> dict[str, Any]:
    """Optional arguments of `attribute`."""
    _, width, size = explained.vectors.shape
    mask = words_of(explained.batch)
    word = mask.cumsum(-1) * mask  # 0: tokens that are not words and never change
    word = word - word.min()
    return {
        "additional_forward_args": (explained.rows,),
        "baselines": explained.baseline,
        "feature_mask": word.unsqueeze(-1).expand(-1, -1, size).contiguous(),
        "sliding_window_shapes": (1, size),
        "perturbations_per_eval": max(1, max_tokens(explained.vectors) // width),
        "internal_batch_size": max(1, gradient_tokens(explained.vectors) // width),
    }


@contextmanager
def _seeded(key: int, device: torch.device) -> Iterator[None]:
    """Seed the global generators that Captum draws from, and restore their states afterward."""
    state = np.random.get_state()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(key)
        if device.type == "cuda":
            torch.cuda.manual_seed(key)
        np.random.seed(key % (1 << 32))
        try:
            yield
        finally:
            np.random.set_state(state)
