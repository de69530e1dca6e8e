"""Any method of Captum, asked about the vectors of the words.

    f(x) = p_c(x)         how likely the class asked about is, x (T,E) the vectors of the words

One text at a time: what a method draws then belongs to the text, and no method need know of padding.  A word is one
feature; its baseline is the vector of padding.  Other tokens than words stay as they are and are given nothing.

Captum takes most of a second to import, so it is imported where it is used.
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
from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import clean_prediction, max_tokens
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.explainers.gradient import ExplainedBatch, asked_of, at_once, shortest
from steadygaze.models.inference import with_gradients
from steadygaze.models.model_protocol import Capability, Model
from steadygaze.techniques.perturbations.word_removal import take_rows, text_key, words_of


@dataclass(frozen=True)
class Captum(Explainer):
    """Any method of Captum on word vectors; one text at a time.

    clf.explain(texts, explainer=captum.attr.GradientShap)
    clf.explain(texts, explainer=Captum(captum.attr.GradientShap, {"n_samples": 50}))
    clf.explain(texts, explainer=Captum(lambda f: NoiseTunnel(Saliency(f)), {"nt_samples": 10}))
    """

    requires: ClassVar[frozenset[Capability]] = frozenset({"embeddings"})
    forward_passes: ClassVar[int] = 100

    method: Any
    """A class, whatever makes an object from a function, or an object: its function is replaced, on a copy of it."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What `attribute` is to be given besides the vectors: n_samples, n_steps …"""

    def __post_init__(self) -> None:
        from captum.attr import Attribution

        kind = self._kind
        if isinstance(kind, type) and issubclass(kind, Attribution):
            _refuse(kind)
            _refuse_alone(self.method, self.name)
        elif isinstance(kind, Attribution):
            _refuse_made(kind)
        elif not callable(kind):
            raise UserError(f"{kind!r:.80} is no method of Captum, nor anything that makes one from a function")

    @property
    def _kind(self) -> Any:
        return self.method.func if isinstance(self.method, partial) else self.method

    @property
    def name(self) -> str:
        """As explanations call it."""
        kind = self._kind if isinstance(self._kind, type) else type(self._kind)
        return kind.__name__ if kind.__module__.startswith("captum.") else "Captum"

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        seen = clean_prediction(model, batch, target, embedded)
        device = batch.ids.device
        weights = torch.zeros(batch.ids.shape, dtype=torch.float64, device=device)
        question = None if batch.question_mask is None else weights.new_zeros(batch.question_mask.shape)
        keys = text_key(batch).tolist()
        with with_gradients(model):
            for row in words_of(batch).any(-1).nonzero().flatten().tolist():
                one = torch.tensor([row], device=device)
                part = shortest(take_rows(batch, one))
                width, words = part.ids.shape[1], words_of(part)
                with _seeded(keys[row], device):
                    own = None if embedded is None else embedded[one, :width].detach()
                    found = self._one(asked_of(model, part, seen.target_class[one], own), words).masked_fill(
                        ~words[0], 0.0
                    )
                weights[row, :width] = found[:width]
                if question is not None:
                    question[row, : len(found) - width] = found[width:]
        return Saliency(weights, seen.logits, question=question)

    def _one(self, asked: ExplainedBatch, mask: Tensor) -> Tensor:
        """(1,T,E) -> (T,)"""
        made = _anew(self.method, asked.f)
        inner = getattr(made, "attribution_method", made)  # NoiseTunnel hands on what it does not take itself
        takes = {**signature(made.attribute).parameters, **signature(inner.attribute).parameters}
        given = {name: value for name, value in _offered(asked, mask).items() if name in takes}
        found = made.attribute(asked.vectors, **{**given, **self.settings})
        found = found[0] if isinstance(found, tuple) else found
        if not isinstance(found, Tensor) or found.shape != asked.vectors.shape:
            raise UserError(f"{self.name} gives no number for each entry of the vectors it was asked about")
        # A word is one feature to those that perturb: they give each entry of its vector what the whole is worth.
        values = found[0].detach().double()
        return values.mean(-1) if {"feature_mask", "sliding_window_shapes"} & takes.keys() else values.sum(-1)


def is_captum(given: object) -> bool:
    """A class of Captum, a partial of one, or an object of one."""
    if "captum" not in sys.modules:
        return False
    from captum.attr import Attribution

    kind = given.func if isinstance(given, partial) else given
    return isinstance(kind, Attribution) or (isinstance(kind, type) and issubclass(kind, Attribution))


def _refuse(kind: type[Any]) -> None:
    """What cannot say anything of words, or would not be true of these networks."""
    from captum.attr import FeaturePermutation, LayerAttribution, NeuronAttribution

    name, takes = kind.__name__, signature(kind.attribute).parameters
    if issubclass(kind, LayerAttribution | NeuronAttribution):
        raise UserError(f"{name} explains a layer or a neuron inside a network; a text needs one that explains inputs")
    if "model" in signature(kind).parameters:
        raise UserError(
            f"{name} rewires the activation modules of a network, which these do without; try integrated-gradients"
        )
    if issubclass(kind, FeaturePermutation):
        raise UserError(f"{name} exchanges words between texts; try leave-one-out, which takes each word out")
    if not {"additional_forward_args", "nt_type"} & takes.keys():
        raise UserError(f"{name} does not explain the inputs of a function; try integrated-gradients")


def _refuse_made(made: Any) -> None:
    _refuse(type(made))
    if hasattr(made, "attribution_method"):
        _refuse_made(made.attribution_method)


def _refuse_alone(make: Any, name: str) -> None:
    """A class, or a partial of it, that wants more than a function, or something else."""
    wants = [p.name for p in signature(make).parameters.values() if p.default is Parameter.empty]
    if wants != ["forward_func"]:
        raise UserError(f"{name} is made from {', '.join(wants)}; give an object of it, made from any function")


def _anew(method: Any, f: Callable[..., Tensor]) -> Any:
    """The method, asked about f."""
    from captum.attr import Attribution

    if not isinstance(method, Attribution):
        made = method(f)
        if not isinstance(made, Attribution):
            raise UserError(f"expected something that makes a method of Captum, found what makes {made!r:.80}")
        _refuse_made(made)
        return made
    made = copy(method)
    if hasattr(made, "attribution_method"):
        made.attribution_method = _anew(made.attribution_method, f)
    made.forward_func = f
    return made


def _offered(asked: ExplainedBatch, mask: Tensor) -> dict[str, Any]:
    """What methods may ask for beside the vectors."""
    _, width, size = asked.vectors.shape
    word = mask.cumsum(-1) * mask  # 0: all that is no word, and never changes
    word = word - word.min()
    return {
        "additional_forward_args": (asked.rows,),
        "baselines": asked.baseline,
        "feature_mask": word.unsqueeze(-1).expand(-1, -1, size).contiguous(),
        "sliding_window_shapes": (1, size),
        "perturbations_per_eval": max(1, max_tokens(asked.vectors) // width),
        "internal_batch_size": at_once(asked.vectors),
    }


@contextmanager
def _seeded(key: int, device: torch.device) -> Iterator[None]:
    """Captum draws from the generators of the process: they begin where the text says, and get back what they had."""
    known = np.random.get_state()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(key)
        if device.type == "cuda":
            torch.cuda.manual_seed(key)
        np.random.seed(key % (1 << 32))
        try:
            yield
        finally:
            np.random.set_state(known)
