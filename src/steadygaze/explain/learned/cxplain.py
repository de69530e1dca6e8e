"""CXPlain: a network learns how much each unit matters, from what its absence costs; several say how sure that is.

Schwab & Karlen 2019 (arXiv:1910.12336), §3; Ω as effects.py has it, A the network's softmax over units:

    each member minimises    KL(Ω ‖ A(x))    on inputs drawn with replacement
    explained by             the median of the members, between their quantiles

Nothing is selected while it learns, so that no label can travel in a mask: no technique applies.

Departs from the released code: the loss is that of the label the black box gives, which is what is explained, and not
of the true one; the network is L2X's selector; a word is deleted, or its id becomes that of padding; an epoch in which
validation inputs do best is kept for each member.
"""

import warnings
from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from steadygaze.attend import k_subset
from steadygaze.config import Field, settings
from steadygaze.explain.explainer import Explainer, Saliency
from steadygaze.explain.learned.asking import Watch, silent
from steadygaze.explain.learned.effects import TOGETHER, Effects, effects, of_texts, per_word
from steadygaze.explain.learned.kept import Kept
from steadygaze.explain.learned.posthoc import Removal
from steadygaze.explain.learned.text_nets import Selector, as_keras
from steadygaze.explain.learned.texts import Seeing, TextInputs
from steadygaze.explain.learned.views import Views
from steadygaze.infer import inference
from steadygaze.maths import masked
from steadygaze.perturb.units import MOST_UNITS
from steadygaze.reader import Reader
from steadygaze.types import Batch


@settings
class CXPlain:
    """Causal explanations: what the prediction loses without each unit, learnt; with how sure that is."""

    k: Annotated[int, Field(ge=1, le=100_000)] = 10
    """How many words, or patches, are shown."""
    shown: Literal["heaviest", "all"] = "heaviest"
    """Which have a weight: the k heaviest, or all."""
    members: Annotated[int, Field(ge=1, le=1000)] = 5
    """Networks that learn, each from inputs drawn anew; one alone learns from all inputs as they are."""
    sure: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """Share of the members between the low quantile and the high one."""
    removal: Removal = "delete"
    """How a word is taken out: the text closes up, or padding takes its place."""
    most_units: Annotated[int, Field(ge=1)] = MOST_UNITS
    """Words of a text that are taken out one by one; in a text of more, segments of consecutive words."""
    epsilon: Annotated[float, Field(gt=0, le=1)] = 1e-6
    """ε: what a unit without which nothing is lost is worth, in nats."""
    dimension: Annotated[int, Field(ge=1, le=4096)] = 50
    """Size of a word vector."""
    hidden: Annotated[int, Field(ge=1, le=8192)] = 100
    """Units of the layers."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """In the network."""
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Times the inputs are read, at most."""
    patience: Annotated[int, Field(ge=1, le=10_000)] = 12
    """Epochs without a better one after which a member is done."""
    batch_size: Annotated[int, Field(ge=2, le=65_536)] = 64
    """Inputs in a step."""
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-4
    """Size of Adam's steps."""


def text_effects(
    how: CXPlain, model: Reader, inputs: TextInputs, kept: Kept | None = None, watch: Watch = silent
) -> Effects:
    """What each word is worth to a black box that has said `inputs.probs`: as many questions as there are words.

    A text of n words is read n times, n² words in all; above `most_units` words a segment is taken out at once.
    """
    removing = of_texts(model, inputs.data, inputs.table, how.removal, how.most_units)
    found = effects(removing, inputs.probs, inputs.probs.argmax(-1), kept, watch)
    if np.diff(inputs.data.text.starts).max(initial=0) <= how.most_units:
        return found
    words = np.zeros(len(inputs), np.int64)
    for rows in inputs.once(TOGETHER):
        words[rows] = inputs.views(rows).able.sum(-1).cpu().numpy()
    if words.max() > how.most_units:
        warnings.warn(
            f"a text of {words.max():,} words is explained in at most {how.most_units:,} segments of consecutive "
            "words, which share their weight; raise most_units for single words",
            stacklevel=2,
        )
    return per_word(found, words, how.most_units)


def members(how: CXPlain, make: Callable[[], nn.Module]) -> nn.ModuleDict:
    """As many fresh networks, by name."""
    return nn.ModuleDict({f"member-{number}": make() for number in range(how.members)})


def text_member(how: CXPlain, words: int) -> Selector:
    """A fresh network for texts."""
    return as_keras(Selector(words, 0, how.dimension, how.hidden, how.dropout))


def between(how: CXPlain, nets: nn.ModuleDict, views: Views) -> Tensor:
    """Low quantile, median and high quantile of what the members give each unit.  (3,B,D) doubles"""
    with inference(nets):
        given = torch.stack([masked.softmax(net(views).double(), views.able) for net in nets.values()])
    ranked = given.sort(0).values
    outside = (1 - how.sure) / 2
    found = []
    for share in (outside, 0.5, 1 - outside):
        place = share * (len(ranked) - 1)
        below = int(place)
        above = min(below + 1, len(ranked) - 1)
        found.append(torch.lerp(ranked[below], ranked[above], place - below))
    return torch.stack(found)


class Weighing(Explainer):
    """Fitted CXPlain: the k heaviest words by the members' median, or all of them."""

    by_class: ClassVar[bool] = False

    def __init__(self, how: CXPlain, nets: nn.ModuleDict, table: Seeing) -> None:
        self.name, self.how, self.nets, self.table = "cxplain", how, nets, table
        self.selects = how.shown == "heaviest"

    def explain(
        self, model: Reader, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            logits: Tensor = model(batch).logits
        views = self._views(batch)
        low, middle, high = between(self.how, self.nets, views)
        middle = middle.clamp_min(torch.finfo(torch.float64).tiny)  # shown is shown
        shown = k_subset.hard(middle, views.able, self.how.k) if self.how.shown == "heaviest" else views.able
        return Saliency(views.dealt(middle * shown) * batch.mask, logits, (views.dealt(low), views.dealt(high)))

    def bounds(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Between which most members are, of every word, shown or not.  (B,T), (B,T)"""
        views = self._views(batch)
        low, _, high = (views.dealt(one) for one in between(self.how, self.nets, views))
        return low, high

    def _views(self, batch: Batch) -> Views:
        return self.table.views(batch, torch.empty(len(batch), 0))  # the members are not told what the black box says
