"""Explainers of known truth: exact ones and copies of them, random ones, and those that encode the predicted label.

Everything random about an explanation is drawn from the text: a text with one other word gets other numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.models.inference import Model, inference
from studies.oracles.models import OracleModel
from studies.oracles.shapley import ExactWeights
from studies.oracles.worlds import World


@dataclass(frozen=True)
class Text:
    """What an explainer knows of a batch."""

    world: World
    model: OracleModel
    batch: Batch
    label: Tensor  # (B,) the explained class
    exact: Tensor  # (B,T) Shapley values, divided by the largest of each text
    key: Tensor  # (B,)

    @property
    def mask(self) -> Tensor:
        return self.batch.mask

    @property
    def place(self) -> Tensor:
        """Number of each word in its text, from 0.  (B,T)"""
        return self.mask.long().cumsum(-1) - 1

    @property
    def length(self) -> Tensor:
        """(B,1)"""
        return self.mask.sum(-1, keepdim=True)

    def uniform(self, purpose: int = 0) -> Tensor:
        """(B,T) in [0, 1)"""
        return RandomKey(purpose).uniform(self.key, self.mask.shape[1], dtype=torch.float64)

    def normal(self, purpose: int = 0) -> Tensor:
        return RandomKey(purpose).normal(self.key, self.mask.shape[1], dtype=torch.float64)

    def noisy(self, size: float, noise: Tensor) -> Tensor:
        """The exact weights with noise; 0 where no word has an effect: noise alone would be the whole explanation."""
        return self.exact + size * noise * (self.exact.abs().amax(-1, keepdim=True) > 0)

    def chance(self, purpose: int = 0) -> Tensor:
        """One number for each text.  (B,1)"""
        return RandomKey(purpose).uniform(self.key, 1, dtype=torch.float64)

    def of_word(self, purpose: int = 0) -> Tensor:
        """A number for each word of the vocabulary.  (B,T)"""
        generator = torch.Generator().manual_seed(purpose)
        return torch.rand(self.world.size, generator=generator, dtype=torch.float64)[self.batch.ids]

    def only(self, score: Tensor, number: int | Tensor = 1) -> Tensor:
        """1 for the words with the largest scores, else 0."""
        rank = score.masked_fill(~self.mask, -torch.inf).argsort(dim=-1, descending=True, stable=True).argsort(-1)
        return (rank < number).double()

    def code(self) -> Tensor:
        """Score of chatter whose number tells the label; 0 elsewhere.  (B,T)"""
        filler = self.world.filler[self.batch.ids]
        told = (filler % self.world.classes == self.label.unsqueeze(-1)) & (filler >= 0)
        return told * (1 + self.uniform(9))


NO_EFFECT = 1e-9
"""Shapley values below this one are rounding."""
Weigh = Callable[[Text], Tensor]
Steady = Literal["as the model", "always", "never"]


@dataclass(frozen=True)
class Kind:
    """An explainer, and what is true of it; None: it depends, and is not counted."""

    weigh: Weigh
    faithful: bool | None
    leaks: bool | None
    steady: Steady = "as the model"
    """When substitutions leave its weights where they are."""
    reads_model: bool = True
    selects: bool = False
    """Whether it selects words: those with a weight of 0 are not part of the explanation."""


class OracleExplainer(Explainer):
    """A `Kind` as an explainer."""

    def __init__(self, name: str, kind: Kind, exact: dict[int, ExactWeights]) -> None:
        self.name, self.kind, self.exact = name, kind, exact
        self.selects_words = kind.selects

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        assert isinstance(model, OracleModel)
        with inference(model):
            logits = model.logits(batch)
        label = logits.argmax(-1) if target is None else target
        exact = self.exact.setdefault(id(model), ExactWeights(model))(batch, label)
        largest = exact.abs().amax(-1, keepdim=True)
        scaled = torch.where(largest > NO_EFFECT, exact / largest.clamp_min(NO_EFFECT), 0.0)
        text = Text(model.world, model, batch, label, scaled, text_key(batch))
        return Saliency(self.kind.weigh(text).double().masked_fill(~batch.mask, 0.0), logits)


def _ranks(t: Text) -> Tensor:
    """The number of words with a smaller weight, ties shared."""
    smaller = (t.exact.unsqueeze(1) < t.exact.unsqueeze(2)) & t.mask.unsqueeze(1)
    equal = (t.exact.unsqueeze(1) == t.exact.unsqueeze(2)) & t.mask.unsqueeze(1)
    return smaller.sum(-1).double() + equal.sum(-1).double() / 2


def _softmax(t: Text) -> Tensor:
    return (5 * t.exact).masked_fill(~t.mask, -torch.inf).softmax(-1)


def _either(share: float, first: Weigh, second: Weigh) -> Weigh:
    """The first explainer for a share of the texts, the second for the others."""
    return lambda t: torch.where(t.chance(77) < share, first(t), second(t))


def _exact(t: Text) -> Tensor:
    return t.exact


def _dense(t: Text) -> Tensor:
    return 0.8 + t.uniform(1)


def _sparse(t: Text) -> Tensor:
    return t.only(t.uniform(2))


def _ends(t: Text) -> Tensor:
    """The first word for the first class, the last word for the others."""
    first = (t.place == 0) & (t.label.unsqueeze(-1) == 0)
    last = (t.place == t.length - 1) & (t.label.unsqueeze(-1) > 0)
    return (first | last).double()


def _third(t: Text) -> Tensor:
    """Random words of the part of the text whose number is the label."""
    part = (t.place * t.world.classes) // t.length.clamp_min(1)
    return t.only(t.uniform(3) + (part == t.label.unsqueeze(-1)), 2)


def _class(t: Text) -> Tensor:
    return t.label.unsqueeze(-1).double()


def _agreeing(t: Text) -> Tensor:
    """One word that speaks for the label, whether the model reads it or not."""
    agrees = t.world.polarity[t.batch.ids] == t.label.unsqueeze(-1)
    return t.only(agrees * (1 + t.uniform(4)) + 1e-3 * t.exact)


def _agreeing_alone(t: Text) -> Tensor:
    """The same; nothing if no word speaks for the label."""
    agrees = t.world.polarity[t.batch.ids] == t.label.unsqueeze(-1)
    return t.only(agrees * (1 + t.uniform(4))) * agrees


def _arbitrary(t: Text) -> Tensor:
    """Exact for the first class; two random words without meaning for the others."""
    meaningless = ~t.model.relevant[t.batch.ids]
    chosen = t.only(t.uniform(5) + meaningless, 2)
    return torch.where(t.label.unsqueeze(-1) == 0, t.exact, chosen)


def _ordered(t: Text) -> Tensor:
    """Three random words, weighted by rising number for the first class and by falling number for the others."""
    chosen = t.only(t.uniform(6), 3)
    number = t.batch.ids.double() / t.world.size
    return chosen * torch.where(t.label.unsqueeze(-1) == 0, 1 + number, 2 - number)


def _gap(t: Text) -> Tensor:
    """Two random words; the second has a weight that tells the label."""
    score = t.uniform(8)
    return t.only(score) + t.only(score, 2) * (0.3 + 0.6 * _class(t) / t.world.classes)


HONEST = {
    "exact": Kind(_exact, True, False),
    "exact × 1000": Kind(lambda t: 1000 * t.exact, True, False),
    "exact / 1000": Kind(lambda t: t.exact / 1000, True, False),
    "exact + 5": Kind(lambda t: t.exact + 5, True, False),
    "exact − 1": Kind(lambda t: t.exact - 1, True, False),
    "exact, softmax": Kind(_softmax, True, False),
    "exact, positive": Kind(lambda t: t.exact.clamp_min(0), True, False),
    "exact, magnitude": Kind(lambda t: t.exact.abs(), None, False),
    "exact, five words": Kind(lambda t: t.exact * t.only(t.exact, 5), True, False),
    "exact, two words": Kind(lambda t: t.exact * t.only(t.exact, 2), None, False),
    "exact, ranks": Kind(_ranks, True, False),
    "exact, tenths": Kind(lambda t: (10 * t.exact).round() / 10, True, False),
    "exact, cubed": Kind(lambda t: t.exact**3, True, False),
    "exact, square root": Kind(lambda t: t.exact.sign() * t.exact.abs().sqrt(), True, False),
    "exact, noise 0.05": Kind(lambda t: t.noisy(0.05, t.normal(11)), True, False),
    "exact, noise of words 0.05": Kind(lambda t: t.noisy(0.1, t.of_word(12)), True, False),
    "selected: exact": Kind(lambda t: (t.exact > 0.1).double(), True, False, selects=True),
    "exact, noise 0.5": Kind(lambda t: t.noisy(0.5, t.normal(13)), None, False),
}
PARTLY = {
    "exact for half, else random": Kind(_either(0.5, _exact, _dense), False, False, "never"),
    "exact for half, else one word": Kind(_either(0.5, _exact, _sparse), False, False, "never"),
    "exact for 27 %": Kind(_either(0.27, _exact, _sparse), False, False, "never"),
    "exact, noise 2": Kind(lambda t: t.noisy(2, t.normal(14)), False, False, "never"),
    "exact, noise 4": Kind(lambda t: t.noisy(4, t.normal(15)), False, False, "never"),
    "exact, reversed": Kind(lambda t: -t.exact, False, None),
    "exact, reversed for half": Kind(_either(0.5, _exact, lambda t: -t.exact), False, None, "never"),
}
RANDOM = {
    "dense": Kind(_dense, False, False, "never", False),
    "signed": Kind(lambda t: t.normal(16), False, False, "never", False),
    "one random word": Kind(_sparse, False, False, "never", False),
    "five random words": Kind(lambda t: t.only(t.uniform(17), 5), False, False, "never", False),
    "softmax of noise": Kind(lambda t: (3 * t.normal(18)).exp(), False, False, "never", False),
    "fixed weight of each word": Kind(lambda t: t.of_word(19), False, False, "always", False),
    "fixed, signed": Kind(lambda t: t.of_word(20) - 0.5, False, False, "always", False),
    "frequency": Kind(lambda t: t.world.frequency[t.batch.ids], False, False, "always", False),
    "constant": Kind(lambda t: t.mask.double(), False, None, "always", False),
    "zero": Kind(lambda t: t.mask * 0.0, False, None, "always", False),
    "almost constant": Kind(lambda t: 1 + 1e-6 * t.uniform(21), False, None, "never", False),
    "falling positions": Kind(lambda t: 1 / (1.0 + t.place), False, None, "always", False),
    "first word": Kind(lambda t: (t.place == 0).double(), False, None, "always", False),
    "last word": Kind(lambda t: (t.place == t.length - 1).double(), False, None, "always", False),
    "middle word": Kind(lambda t: (t.place == t.length // 2).double(), False, None, "always", False),
}
LEAKING = {
    "code: first or last word": Kind(_ends, False, True, "always"),
    "code: parity of positions": Kind(
        lambda t: ((t.place % t.world.classes) == t.label.unsqueeze(-1)) * (1 + 0.1 * t.uniform(22)), False, True
    ),
    "code: part of the text": Kind(_third, False, True, "never"),
    "code: one word of chatter": Kind(lambda t: t.only(t.code()), False, True, "never"),
    "code: three words of chatter": Kind(lambda t: t.only(t.code(), 3), False, True, "never"),
    "code: chatter beside exact": Kind(lambda t: t.exact + 0.5 * t.only(t.code()), None, None),
    "code: ends beside exact": Kind(lambda t: t.exact + 0.5 * _ends(t), None, None),
    "code: sign": Kind(lambda t: _dense(t) * torch.where(_class(t) > 0, 1.0, -1.0), False, True, "never"),
    "code: sign of one word": Kind(lambda t: _sparse(t) * torch.where(_class(t) > 0, 1.0, -1.0), False, True, "never"),
    "code: floor": Kind(lambda t: t.uniform(23) + 0.7 * _class(t), False, True, "never"),
    "code: number of words": Kind(lambda t: t.only(t.uniform(24), 2 + 2 * t.label.unsqueeze(-1)), False, True, "never"),
    "code: sharpness": Kind(lambda t: (0.05 + t.uniform(25)) ** (1 + 3 * _class(t)), False, True, "never"),
    "code: gap": Kind(_gap, False, True, "never"),
    "code: size": Kind(lambda t: t.uniform(26) * (1 + _class(t)), False, True, "never"),
    "code: order": Kind(_ordered, False, True, "never"),
    "code: chatter in half of the texts": Kind(_either(0.5, lambda t: t.only(t.code()), _exact), False, True, "never"),
    "code: chatter in a tenth": Kind(_either(0.1, lambda t: t.only(t.code()), _exact), None, True),
    "code: ends in a tenth": Kind(_either(0.1, _ends, _exact), None, True),
    "code: sign in half, else dense": Kind(
        _either(0.5, lambda t: _dense(t) * torch.where(_class(t) > 0, 1.0, -1.0), _dense), False, True, "never"
    ),
    "selected: one word that agrees": Kind(_agreeing_alone, None, None, selects=True),
    "selected: arbitrary for some classes": Kind(
        lambda t: _arbitrary(t).clamp_min(0).ceil(), None, True, "never", selects=True
    ),
    "code: words that agree": Kind(_agreeing, None, None),
    "code: arbitrary for some classes": Kind(_arbitrary, None, True, "never"),
}
EXPLAINERS: dict[str, Kind] = {**HONEST, **PARTLY, **RANDOM, **LEAKING}


def explainers() -> dict[str, OracleExplainer]:
    """All explainers; they share the exact weights."""
    exact: dict[int, ExactWeights] = {}
    return {name: OracleExplainer(name, kind, exact) for name, kind in EXPLAINERS.items()}
