"""Rationaliser: a generator selects a part of a text, and a predictor reads that part alone.

Lei et al. 2016 (arXiv:1606.04155), §3; Yu et al. 2021 (arXiv:2110.13880), §3.1 and §4.1.

    U units: the tokens of a text, or its sentences

    scores       = scorer(states of the units)                                  (B,U)   the generator's own encoder
    probability  = softmax(scores), or sigmoid(scores) where `alone`            (B,U)
    selected     = the sentence of most probability; or the best tokens         (B,T)
    logits       = head(max over selected tokens of the hidden states)          (B,C)   the predictor's encoder

The state of a sentence is the maximum of its tokens' hidden states.  A sentence ends with a token of `ends`, which is
made from the vocabulary and kept with the weights.

What is not selected is not read: its vector is 0 to the predictor, a transformer does not attend to it, and its hidden
state is left out of the maximum.  So with the selection held fixed no other token can change the logits, exactly.  How
many tokens there are, and at which places the selected ones stand, a predictor may see; special tokens it always reads.

The selection itself depends on the whole text, and can carry the label: the generator can select a token that stands
for the label, whatever the token means.  The independent reader detects this (`explainers/rationale.py`).

Texts, vectors: generator and predictor have vectors of their own, so those of a token are the two side by side.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from steadygaze.core.maths import masked, segments
from steadygaze.core.maths.ranking import top_k
from steadygaze.core.maths.windows import best_windows, exact_windows
from steadygaze.core.types import Batch, Encoded
from steadygaze.models.attention_layers import SCORES
from steadygaze.models.classifier import Architecture
from steadygaze.models.encoders.encoder import Encoder
from steadygaze.models.model_protocol import Capability, Model

Granularity = Literal["token", "sentence"]
FAINTEST = 1e-30
"""What is selected has a weight, however little chance it had: that tells it from what is not."""


@dataclass(frozen=True)
class SelectionConfig:
    """What is selected, and who reads it."""

    granularity: Granularity = "sentence"
    predictor_alone: bool = False
    """Whether each unit has a chance of its own; else all units of a text share one."""
    share: float | None = None
    """Share of a text's tokens that is selected; None: those with a chance above one half."""
    spans: int | None = None
    """In at most so many pieces; None: anywhere."""
    selection_heads: tuple[str, ...] = ("hard",)
    """The predictor's output layers."""
    separate_encoders: bool = True
    """Whether the generator has an encoder of its own; else it scores the predictor's hidden states."""


@dataclass(frozen=True, slots=True)
class RationalizerOutput:
    """What is said of a batch."""

    weights: Tensor  # (B,T) probability on what is selected, as shares of the text: 0 elsewhere
    logits: Tensor  # (B,C)
    selected: Tensor  # (B,T) bool
    probability: Tensor  # (B,T) of the unit each token belongs to; 0 outside the mask


@dataclass(frozen=True, slots=True)
class GeneratorOutput:
    """What the generator makes of a batch."""

    hidden: Tensor  # (B,T,H)
    numbers: Tensor | None  # (B,T) the sentence of each token, −1 where it has none; None: each token is a unit
    real: Tensor  # (B,U) bool: the units there are
    scores: Tensor  # (B,U)
    probability: Tensor  # (B,U), 0 where there is no unit

    def spread(self, values: Tensor) -> Tensor:
        """What a unit has, to each of its tokens.  (B,U) -> (B,T)"""
        return values if self.numbers is None else segments.spread(values, self.numbers)


class Generator(nn.Module):
    def __init__(self, encoder: Encoder | None, size: int, architecture: Architecture) -> None:
        super().__init__()
        self.encoder = encoder
        self.scorer = SCORES[architecture.score](size, False)


class Predictor(nn.Module):
    def __init__(self, encoder: Encoder, classes: int, heads: tuple[str, ...]) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict({name: nn.Linear(encoder.size, classes) for name in heads})


class IndependentReader(nn.Module):
    """Predicts the label from a selection: the predictor, trained further on random selections alone.

    It reads the selected tokens and the special ones as a text of their own, without gaps: a selection tells it
    nothing by its position.
    """

    budget: Tensor
    prior: Tensor
    accuracy: float | None = None
    """On the validation texts, where it was measured."""

    def __init__(self, predictor: Predictor, classes: int) -> None:
        super().__init__()
        self.encoder = copy.deepcopy(predictor.encoder)
        self.head = copy.deepcopy(predictor.heads["hard"])
        self.register_buffer("prior", torch.full((classes,), 1 / classes))  # how frequent each class is
        self.register_buffer("budget", torch.zeros(2))  # share and spans of random selections of tokens; 0 spans: any

    def forward(self, ids: Tensor, present: Tensor, mask: Tensor, selected: Tensor) -> Tensor:
        """(B,T) each -> (B,C)"""
        chosen = selected & mask
        keep = present & (chosen | ~mask)
        order = keep.long().argsort(dim=-1, descending=True, stable=True)[:, : max(1, int(keep.sum(-1).max()))]
        ids, keep, chosen = (one.gather(1, order) for one in (ids, keep, chosen))
        hidden: Tensor = self.encoder(self.encoder.embed(ids), keep).hidden
        return _full(self.head(masked.maximum(hidden, chosen)))


class Rationalizer(Model):
    capabilities: ClassVar[frozenset[Capability]] = frozenset({"attention", "embeddings", "selection"})
    ends: Tensor

    def __init__(
        self,
        encoder: Callable[[], Encoder],
        architecture: Architecture,
        classes: int,
        ends: Tensor,
        way: SelectionConfig,
    ) -> None:
        super().__init__()
        self.classes = classes
        self.selection_config = way
        self.predictor = Predictor(encoder(), classes, way.selection_heads)
        self.generator = Generator(
            encoder() if way.separate_encoders else None, self.predictor.encoder.size, architecture
        )
        self.register_buffer("ends", ends)
        self.reader: IndependentReader | None = None  # trained after the model, where it was

    def add_reader(self) -> IndependentReader:
        """An independent reader with the weights of the predictor, to be filled with its own."""
        self.reader = IndependentReader(self.predictor, self.classes)
        return self.reader

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> RationalizerOutput:
        """The same in training as in evaluation, but for dropout: nothing is drawn."""
        to_generator, to_predictor = self._parts(embedded)
        looked = self.generate(batch, to_generator)
        selection = self.select(batch, looked)
        selected, probability = selection > 0, looked.spread(looked.probability)
        logits = self.read(batch, selection, embedded=to_predictor)
        return RationalizerOutput(
            masked.normalize(probability.clamp_min(FAINTEST), selected), logits, selected, probability
        )

    def generate(self, batch: Batch, embedded: Tensor | None = None) -> GeneratorOutput:
        """Scores of the units, and how probable each is."""
        hidden = self._encode(self.generator.encoder or self.predictor.encoder, batch, embedded)
        numbers = None if self.selection_config.granularity == "token" else self.sentences(batch)
        sentences = 0 if numbers is None else max(1, int(segments.count(numbers).max()))
        real = batch.mask if numbers is None else segments.exists(numbers, sentences)
        scores = _full(self.generator.scorer(Encoded(_states(hidden, numbers, sentences))))
        chances = (
            scores.sigmoid().masked_fill(~real, 0.0)
            if self.selection_config.predictor_alone
            else masked.softmax(scores, real)
        )
        return GeneratorOutput(hidden, numbers, real, scores, chances)

    def select(self, batch: Batch, looked: GeneratorOutput) -> Tensor:
        """What is selected where nothing is drawn.  (B,T) bool"""
        if looked.numbers is not None:
            return looked.spread(top_k(looked.scores.detach(), looked.real, 1))
        if self.selection_config.share is None:
            return looked.probability > 0.5
        return best_windows(self.ranks(looked), batch.mask, self.selection_config.share, self.selection_config.spans)

    def ranks(self, looked: GeneratorOutput) -> Tensor:
        """Chances that can still be told apart where they are nearly 1.  (B,U)"""
        return exact_windows(looked.scores).sigmoid() if self.selection_config.predictor_alone else looked.probability

    def read(self, batch: Batch, selection: Tensor, head: str = "hard", embedded: Tensor | None = None) -> Tensor:
        """Logits from what is selected: (B,T) True or False, or numbers from 0 to 1 whose gradient is wanted."""
        encoder = self.predictor.encoder
        vectors = encoder.embed(batch.ids) if embedded is None else embedded
        selection = selection.to(vectors.dtype).masked_fill(~batch.mask, 0.0)
        chosen = selection > 0
        left = torch.where(batch.mask, selection, batch.present.to(vectors.dtype)).unsqueeze(-1)
        # A network that can leave tokens out does; a recurrent one counts places, and reads zeros.
        present = batch.present & (chosen | ~batch.mask) if encoder.allows_gaps else batch.present
        hidden: Tensor = encoder(vectors * left, present).hidden
        return _full(self.predictor.heads[head](masked.maximum(hidden * selection.unsqueeze(-1), chosen)))

    def soft_attention(self, batch: Batch, looked: GeneratorOutput) -> Tensor:
        """Logits from the whole text, its units weighted by their probability.  (B,C)"""
        hidden = (
            self._encode(self.predictor.encoder, batch) if self.selection_config.separate_encoders else looked.hidden
        )
        states = _states(hidden, looked.numbers, looked.real.shape[1])
        context = (looked.probability.to(states.dtype).unsqueeze(1) @ states).squeeze(1)
        return _full(self.predictor.heads["soft"](context))

    def sentences(self, batch: Batch) -> Tensor:
        """The sentence of each token, the first being 0; −1 where it has none.  (B,T)"""
        return segments.segment_ids(batch.ids, batch.mask, self.ends)

    def embed(self, batch: Batch) -> Tensor:
        return torch.cat([encoder.embed(batch.ids) for encoder in self._encoders], -1)

    @property
    def vectors(self) -> Tensor:
        return torch.cat([encoder.vectors for encoder in self._encoders], -1)

    @property
    def _encoders(self) -> list[Encoder]:
        own = self.generator.encoder
        return [self.predictor.encoder] if own is None else [own, self.predictor.encoder]

    def _parts(self, embedded: Tensor | None) -> Sequence[Tensor | None]:
        """The vectors of generator and predictor; None: their own."""
        return (
            [embedded, embedded]
            if embedded is None or not self.selection_config.separate_encoders
            else embedded.chunk(2, -1)
        )

    def _encode(self, encoder: Encoder, batch: Batch, embedded: Tensor | None = None) -> Tensor:
        """(B,T,H) of the whole text."""
        hidden: Tensor = encoder(encoder.embed(batch.ids) if embedded is None else embedded, batch.present).hidden
        return hidden


def _states(hidden: Tensor, numbers: Tensor | None, sentences: int) -> Tensor:
    """Of the units.  (B,T,H) -> (B,U,H)"""
    return hidden if numbers is None else segments.amax(hidden, numbers, sentences)


def _full(values: Tensor) -> Tensor:
    """At least in single precision: in half of it small chances are none, and small gaps between predictors."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
