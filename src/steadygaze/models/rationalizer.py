"""Rationalizer: a generator selects a part of a text, and a predictor reads that part alone.

Lei et al. 2016 (arXiv:1606.04155), §3; Yu et al. 2021 (arXiv:2110.13880), §3.1 and §4.1.

    U units: the tokens of a text, or its sentences

    scores       = scorer(states of the units)                                  (B,U)   the generator's own encoder
    probability  = softmax(scores), or sigmoid(scores) if `independent_units`   (B,U)
    selected     = the sentence with the highest probability; or the top tokens (B,T)
    logits       = head(max over selected tokens of the hidden states)          (B,C)   the predictor's encoder

The state of a sentence is the maximum of its tokens' hidden states.  Sentences are those of the data, if given
(`Batch.sentences`); else they end as in core/maths/sentence_ends.py, and `ends` (V,) marks the ids that can end one.

The predictor does not read unselected tokens: their vectors are 0, a transformer does not attend to them, and the
maximum excludes their hidden states.  With a fixed selection, other tokens do not affect the logits at all.  The
predictor can depend on the number of tokens and the positions of the selected ones.  It always reads special tokens.

The selection depends on the whole text, and can leak the label: the generator can select a token as a signal for the
label, independent of its meaning.  The independent reader detects this (`explainers/rationale.py`).

With `saliency` (FRESH, techniques/fresh.py), the generator is a classifier of the whole text.  The attention or the
gradient of its own prediction scores the units.

Generator and predictor have separate word vectors; `vectors` and `embed` concatenate the two.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from steadygaze.core.maths import distributions
from steadygaze.core.maths.distributions import top_k
from steadygaze.core.maths.rationale_windows import best_windows, highest_precision
from steadygaze.core.maths.sentence_ends import can_end
from steadygaze.core.ragged import (
    segment_count,
    segment_exists,
    segment_ids,
    segment_max,
    segment_spread,
    segment_sum,
)
from steadygaze.core.types import Batch, Encoded
from steadygaze.models.attention_layers import SCORES
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.models.encoders.word_encoders import Encoder
from steadygaze.models.inference import Capability, Model
from steadygaze.models.token_saliency import Saliency, token_saliency

Granularity = Literal["token", "sentence"]
MIN_WEIGHT = 1e-30
"""Minimum weight of a selected token, which distinguishes it from unselected ones."""
TIE_DECIMALS = 5
"""Scores are ranked to this precision.  Another batch changes them by about 1e-7, also in a repeated phrase."""


@dataclass(frozen=True)
class SelectionConfig:
    """Unit and size of the selection, and the heads of the predictor."""

    granularity: Granularity = "sentence"
    independent_units: bool = False
    """Independent probabilities of the units (sigmoid); otherwise a softmax over the text."""
    share: float | None = None
    """Share of tokens to select; None: those with probability above one half."""
    spans: int | None = None
    """Maximum number of contiguous pieces; None: no limit."""
    selection_heads: tuple[str, ...] = ("hard",)
    """The predictor's output layers."""
    separate_encoders: bool = True
    """Give the generator its own encoder; otherwise it scores the predictor's hidden states."""
    saliency: Saliency | None = None
    """The generator is a classifier of the whole text, and this explains it; None: the generator has a scorer."""


@dataclass(frozen=True, slots=True)
class RationalizerOutput:
    """Output of a rationalizer for a batch."""

    weights: Tensor  # (B,T) probability of the selected tokens, normalized over the text; 0 elsewhere
    logits: Tensor  # (B,C)
    selected: Tensor  # (B,T) bool
    probability: Tensor  # (B,T) of the unit each token belongs to; 0 outside the mask


@dataclass(frozen=True, slots=True)
class GeneratorOutput:
    """Output of the generator for a batch."""

    hidden: Tensor  # (B,T,H)
    numbers: Tensor | None  # (B,T) the sentence of each token, −1 without one; None: each token is a unit
    real: Tensor  # (B,U) bool: existing units
    scores: Tensor  # (B,U)
    probability: Tensor  # (B,U), 0 on padding

    def spread(self, values: Tensor) -> Tensor:
        """Copy a unit's value to each of its tokens.  (B,U) -> (B,T)"""
        return values if self.numbers is None else segment_spread(values, self.numbers)


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
    """Predicts the label from a selection: the predictor, trained further on random selections only.

    It reads the selected and the special tokens as a separate text, without gaps, so that positions cannot leak the
    label.
    """

    budget: Tensor
    prior: Tensor
    accuracy: float | None = None
    """Accuracy on the validation texts, if measured."""
    arbitrary: Mapping[str, tuple[int, int]]
    """By predicted class: the validation texts with an arbitrary selection, and all."""

    def __init__(self, predictor: Predictor, classes: int) -> None:
        super().__init__()
        self.arbitrary = {}
        self.encoder = copy.deepcopy(predictor.encoder)
        self.head = copy.deepcopy(predictor.heads["hard"])
        self.register_buffer("prior", torch.full((classes,), 1 / classes))  # class frequencies
        self.register_buffer(
            "budget", torch.zeros(2)
        )  # share and spans of random selections of tokens; 0 spans: no limit

    def forward(self, ids: Tensor, present: Tensor, mask: Tensor, selected: Tensor) -> Tensor:
        """(B,T) each -> (B,C)"""
        chosen = selected & mask
        keep = present & (chosen | ~mask)
        order = keep.long().argsort(dim=-1, descending=True, stable=True)[:, : max(1, int(keep.sum(-1).max()))]
        ids, keep, chosen = (values.gather(1, order) for values in (ids, keep, chosen))
        hidden: Tensor = self.encoder(self.encoder.embed(ids), keep).hidden
        return _single_precision(self.head(distributions.maximum(hidden, chosen)))


class Rationalizer(Model):
    capabilities: frozenset[Capability] = frozenset({"attention", "embeddings", "selection", "threads"})
    ends: Tensor
    roles: Tensor

    def __init__(
        self,
        encoder: Callable[[], Encoder],
        architecture: Architecture,
        classes: int,
        roles: Tensor,
        config: SelectionConfig,
    ) -> None:
        super().__init__()
        self.classes = classes
        self.selection_config = config
        # First, so that it has the initial weights of a vanilla model of the same seed.
        classifier = None if config.saliency is None else Classifier(encoder(), architecture, classes, pair=False)
        self.predictor = Predictor(encoder(), classes, config.selection_heads)
        self.generator: Generator | Classifier = classifier or Generator(
            encoder() if config.separate_encoders else None, self.predictor.encoder.size, architecture
        )
        self.register_buffer("ends", can_end(roles))
        self.register_buffer("roles", roles, persistent=False)  # the vocabulary determines them
        self.reader: IndependentReader | None = None  # trained after the model, optional

    def add_reader(self) -> IndependentReader:
        """Add an independent reader, initialized with the predictor's weights."""
        self.reader = IndependentReader(self.predictor, self.classes)
        return self.reader

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> RationalizerOutput:
        """Return the output without sampling, in training too."""
        to_generator, to_predictor = self._parts(embedded)
        output = self.generate(batch, to_generator)
        selection = self.select(batch, output)
        selected, probability = selection > 0, output.spread(output.probability)
        logits = self.read(batch, selection, embedded=to_predictor)
        return RationalizerOutput(
            distributions.normalize(probability.clamp_min(MIN_WEIGHT), selected), logits, selected, probability
        )

    def generate(self, batch: Batch, embedded: Tensor | None = None) -> GeneratorOutput:
        """Return the scores and probabilities of the units."""
        numbers = None if self.selection_config.granularity == "token" else self.sentences(batch)
        sentences = 0 if numbers is None else max(1, int(segment_count(numbers).max()))
        real = batch.mask if numbers is None else segment_exists(numbers, sentences)
        if self.selection_config.saliency is not None:
            return self._explain_generator(batch, embedded, numbers, real)
        hidden = self._encode(self.generator.encoder or self.predictor.encoder, batch, embedded)
        scores = _single_precision(self.generator.scorer(Encoded(_states(hidden, numbers, sentences))))
        probabilities = (
            scores.sigmoid().masked_fill(~real, 0.0)
            if self.selection_config.independent_units
            else distributions.softmax(scores, real)
        )
        return GeneratorOutput(hidden, numbers, real, scores, probabilities)

    def _explain_generator(
        self, batch: Batch, embedded: Tensor | None, numbers: Tensor | None, real: Tensor
    ) -> GeneratorOutput:
        """Return the saliency of the units to the generator; a sentence has the sum over its tokens."""
        assert isinstance(self.generator, Classifier)
        assert self.selection_config.saliency is not None
        hidden, saliency = token_saliency(self.generator, batch, self.selection_config.saliency, embedded)
        saliency = _single_precision(saliency)
        probability = saliency if numbers is None else segment_sum(saliency, numbers, real.shape[1])
        scores = probability.clamp_min(torch.finfo(probability.dtype).tiny).log()
        return GeneratorOutput(hidden, numbers, real, scores, probability)

    def select(self, batch: Batch, output: GeneratorOutput) -> Tensor:
        """Return the selection without sampling.  (B,T) bool"""
        if output.numbers is not None:
            return output.spread(top_k(_tied(output.scores), output.real, 1))
        if self.selection_config.share is None:
            return output.probability > 0.5
        return best_windows(self.ranks(output), batch.mask, self.selection_config.share, self.selection_config.spans)

    def ranks(self, output: GeneratorOutput) -> Tensor:
        """Return probabilities that stay distinct close to 1, and tie if they differ only by rounding.  (B,U)"""
        independent = self.selection_config.independent_units
        return _tied(output.scores).sigmoid() if independent else _tied(output.probability.log()).exp()

    def read(self, batch: Batch, selection: Tensor, head: str = "hard", embedded: Tensor | None = None) -> Tensor:
        """Return the logits of a selection (B,T): bool, or values from 0 to 1 with a gradient."""
        encoder = self.predictor.encoder
        vectors = encoder.embed(batch.ids) if embedded is None else embedded
        selection = selection.to(vectors.dtype).masked_fill(~batch.mask, 0.0)
        chosen = selection > 0
        visible = torch.where(batch.mask, selection, batch.present.to(vectors.dtype)).unsqueeze(-1)
        # A transformer omits unselected tokens; a recurrent network reads zeros.
        present = batch.present & (chosen | ~batch.mask) if encoder.allows_gaps else batch.present
        hidden: Tensor = encoder(vectors * visible, present).hidden
        return _single_precision(
            self.predictor.heads[head](distributions.maximum(hidden * selection.unsqueeze(-1), chosen))
        )

    def soft_attention(self, batch: Batch, output: GeneratorOutput) -> Tensor:
        """Return the logits of the whole text, with units weighted by probability.  (B,C)"""
        hidden = (
            self._encode(self.predictor.encoder, batch) if self.selection_config.separate_encoders else output.hidden
        )
        states = _states(hidden, output.numbers, output.real.shape[1])
        context = (output.probability.to(states.dtype).unsqueeze(1) @ states).squeeze(1)
        return _single_precision(self.predictor.heads["soft"](context))

    def sentences(self, batch: Batch) -> Tensor:
        """Return the sentence of each token, from 0; −1 without one.  (B,T)"""
        return segment_ids(batch.ids, batch.mask, self.roles, batch.sentences)

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
        """Split the vectors of generator and predictor; None: their own."""
        return (
            [embedded, embedded]
            if embedded is None or not self.selection_config.separate_encoders
            else embedded.chunk(2, -1)
        )

    def _encode(self, encoder: Encoder, batch: Batch, embedded: Tensor | None = None) -> Tensor:
        """Encode the whole text.  (B,T,H)"""
        hidden: Tensor = encoder(encoder.embed(batch.ids) if embedded is None else embedded, batch.present).hidden
        return hidden


def _states(hidden: Tensor, numbers: Tensor | None, sentences: int) -> Tensor:
    """Return the states of the units.  (B,T,H) -> (B,U,H)"""
    return hidden if numbers is None else segment_max(hidden, numbers, sentences)


def _tied(scores: Tensor) -> Tensor:
    """Round scores: units that differ by less than another batch changes them tie, and the first one is selected."""
    return highest_precision(scores).round(decimals=TIE_DECIMALS)


def _single_precision(values: Tensor) -> Tensor:
    """Convert to at least single precision: half precision loses small probabilities."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
