"""Every probe as one kind of call, models in the middle of their training, and spies: what tests of probes are made of.

A probe is called on a batch and gives tensors of one row per text: (B,T) about its tokens, or something else about it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.backends import cudnn

from contract.tiny import VOCABULARY, classifier
from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.types import Batch
from steadygaze.models.classifier import Classifier
from steadygaze.perturbations.word_removal import Removal, units_of
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.properties.probes import added_words, erasure, text_perturbations
from steadygaze.properties.probes.counterfactual_attention import (
    hidden_states,
    permuted_predictions,
    randomized_copy,
    search_attention,
)
from steadygaze.properties.probes.text_perturbations import (
    Observation,
    PerturbedBatch,
    gradient,
    observe,
    substitute_synonyms,
)

Probe = Callable[[Classifier, Batch], tuple[Tensor, ...]]
KEY = RandomKey(5)
RADIUS = 0.3
SHARES = (0.1, 0.5, 1.0)
EVERYTHING, NOTHING = (1.0,), (0.0,)


def synonyms() -> Synonyms:
    """The next id but one stands for every id but each third, for those of special tokens too."""
    ids = torch.arange(VOCABULARY)
    following = (ids + 2).clamp_max(VOCABULARY - 1) - 2 * (ids > VOCABULARY - 3)
    return Synonyms(following.unsqueeze(-1), (ids % 3 > 0).long(), torch.zeros(VOCABULARY, dtype=torch.bool))


def shown(seen: Observation) -> tuple[Tensor, Tensor]:
    return seen.weights, seen.probs


def after(model: Classifier, moved: PerturbedBatch) -> Observation:
    """What the model shows of what a probe left."""
    return observe(model, moved.batch, moved.embedded)


def seen(model: Classifier, moved: PerturbedBatch) -> tuple[Tensor, ...]:
    return *shown(after(model, moved)), moved.touched


def erased(
    model: Classifier,
    batch: Batch,
    half: int = 0,
    removal: Removal = "delete",
    shares: tuple[float, ...] = SHARES,
) -> tuple[Tensor, ...]:
    """Half 0: without the top words; 1: with these alone."""
    clean = observe(model, batch)
    return (erasure.erase_words(model, batch, clean.probs, clean.weights, erasure.Erasure(shares, removal))[half],)


def extended(model: Classifier, batch: Batch, removal: Removal = "delete") -> tuple[Tensor, ...]:
    """Half of the words, then with others: all sets of short texts, random ones of long texts."""
    units = units_of(batch, question=False)
    counts = added_words.top_words(units, 0.5).unsqueeze(-1)
    weight = units.total(observe(model, batch).weights).unsqueeze(1)
    selected = erasure.top_units(text_key(batch), units, weight, counts).squeeze(1)
    how = added_words.Additions(2, 5, KEY), erasure.Erasure(removal=removal)
    predicted = added_words.predict_extended(model, batch, selected, text_key(batch), *how)
    return predicted.alone, predicted.extended.nanmean(1)


def attacked(model: Classifier, batch: Batch) -> tuple[Tensor, ...]:
    held = hidden_states(model, batch)
    result = search_attention(held, batch, KEY, restarts=2, steps=3)
    return result.weights, held.read(result.weights.unsqueeze(1)).squeeze(1).detach(), result.distance, result.change


PROBES: dict[str, Probe] = {
    "look": lambda m, b: shown(observe(m, b)),
    "noise": lambda m, b: seen(m, text_perturbations.embedding_noise(m, b, RADIUS, KEY)),
    "fgm-label": lambda m, b: seen(m, text_perturbations.fgm_on_label(m, b, RADIUS)),
    "pgd-attention": lambda m, b: seen(m, text_perturbations.pgd_on_attention(m, b, RADIUS, KEY)),
    "words-substituted": lambda m, b: seen(m, substitute_synonyms(b, synonyms(), 2, KEY)),
    "erased": erased,
    "kept": partial(erased, half=1),
    "padded": partial(erased, removal="pad"),
    "zeroed": partial(erased, removal="zero"),
    "words-added": extended,
    "words-added-to-zeros": partial(extended, removal="zero"),
    "permuted": lambda m, b: (permuted_predictions(m, b, KEY.child(1), 3),),
    "adversary": attacked,
    "randomized": lambda m, b: shown(observe(randomized_copy(m, KEY), b)),
    "gradient": lambda m, b: (gradient(m, b),),
    "gradient-through-attention": lambda m, b: (gradient(m, b, detach_attention=False),),
}
IDLE: dict[str, Probe] = {  # of strength zero
    "noise": lambda m, b: shown(after(m, text_perturbations.embedding_noise(m, b, 0.0, KEY))),
    "fgm-label": lambda m, b: shown(after(m, text_perturbations.fgm_on_label(m, b, 0.0))),
    "pgd-attention": lambda m, b: shown(after(m, text_perturbations.pgd_on_attention(m, b, 0.0, KEY))),
    "words-substituted": lambda m, b: shown(after(m, substitute_synonyms(b, synonyms(), 0, KEY))),
    **{removal: partial(erased, shares=NOTHING, removal=removal) for removal in ("delete", "pad", "zero")},
    **{f"keep-{how}": partial(erased, shares=EVERYTHING, removal=how, half=1) for how in ("delete", "pad", "zero")},
}


def in_use(encoder: str, pair: bool = False) -> Classifier:
    """In the middle of its training: modes mixed, dropout on, a part frozen, gradients half gathered, a hook."""
    model = classifier(encoder, pair, torch.float32).train()
    model.scorer.eval()
    if hasattr(model.encoder, "dropout"):  # a transformer has dropout of its own
        model.encoder.dropout.p = 0.5
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    model.decoder.output.weight.requires_grad_(False)
    model.decoder.output.bias.grad = None
    model.scorer.register_forward_hook(lambda *_: None)
    return model


def state(model: nn.Module) -> tuple[object, ...]:
    """All that a probe could leave behind, on the model and beside it."""
    parameters = list(model.parameters())
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return (
        [module.training for module in model.modules()],
        [parameter.requires_grad for parameter in parameters],
        [list(getattr(module, kind)) for module in model.modules() for kind in kinds],
        [[] if parameter.grad is None else parameter.grad.tolist() for parameter in parameters],
        {name: value.tolist() for name, value in model.state_dict().items()},
        (torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), np.random.get_state()[2]),
        (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32, torch.is_grad_enabled()),
    )


class PlantedError(Exception):
    pass


@contextmanager
def failing(model: Classifier, extension_point: str, at: int) -> Iterator[list[str]]:
    """The extension point, of copies too, fails at its call `at`, from 0; -1: never.  Yields the calls so far."""
    calls: list[str] = []
    right = getattr(type(model), extension_point)

    def wrong(self: Classifier, *inputs: object) -> object:
        calls.append(extension_point)
        if len(calls) == at + 1:
            raise PlantedError
        return right(self, *inputs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model), extension_point, wrong)
        yield calls


@contextmanager
def spied(model: Classifier) -> Iterator[list[tuple[Batch, Tensor | None]]]:
    """What reaches the encoder: every batch, and the embeddings in its place."""
    seen: list[tuple[Batch, Tensor | None]] = []
    right = type(model).encode

    def encode(
        self: Classifier, batch: Batch, embedded: Tensor | None = None, question: Tensor | None = None
    ) -> object:
        seen.append((batch, None if embedded is None else embedded.detach().clone()))
        return right(self, batch, embedded, question)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model), "encode", encode)
        yield seen
