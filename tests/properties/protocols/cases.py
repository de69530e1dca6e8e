"""Cases for protocols: what they find by name, and toys of which everything is known.

The toy: "good" or "bad" among words that mean nothing.
"""

from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from steadygaze.core.ragged import TokenArray, row_starts
from steadygaze.core.types import Batch, Encoded
from steadygaze.data.batches import Data
from steadygaze.explainers.attention import Attention
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.models.inference import Capability, Model, inference
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.properties.audit_case import AuditCase, Finding
from steadygaze.results.audit_config import ProbeConfig, Runtime

Protocol = Callable[[AuditCase], Iterator[Finding]]


Substitutions = dict[str, tuple[Synonyms, int]]


def case_of(
    model: Model,
    data: Data,
    config: ProbeConfig | None = None,
    substitutions: Substitutions | None = None,
    batch_size: int = 256,
    **explainers: Explainer,
) -> AuditCase:
    """The explainer is attention unless others are named."""
    runtime, chosen = Runtime(batch_size=batch_size), explainers or {"attention": Attention()}
    return AuditCase(model, data, chosen, config or ProbeConfig(), substitutions=substitutions or {}, runtime=runtime)


def findings_by(protocol: Protocol, case: AuditCase, explainer: str = "attention") -> dict[str, Tensor]:
    """The values of one explainer and of the predictions, by measure; no measure comes twice."""
    findings = [
        finding for finding in protocol(case) if finding.explainer in (None, explainer) and finding.values is not None
    ]
    values = {finding.measure: finding.values for finding in findings if finding.values is not None}
    assert len(values) == len(findings)
    return values


def absences(protocol: Protocol, case: AuditCase) -> dict[tuple[str, str | None], str]:
    """Why there is no number, by measure and explainer."""
    return {(finding.measure, finding.explainer): str(finding.absent) for finding in protocol(case) if finding.absent}


def row_of(data: Data, row: int) -> Data:
    question = None if data.question is None else data.question.select([row])
    return Data(data.text.select([row]), question, data.label[[row]])


class Signed(Explainer):
    """A saliency that is a function of ids and place alone, of both signs; of so many passes that a sample will do."""

    requires: ClassVar[frozenset[Capability]] = frozenset()
    forward_passes: ClassVar[int] = 1000

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        places = torch.arange(batch.ids.shape[1], device=batch.ids.device)
        with inference(model):
            logits = model(batch, embedded).logits
        return Saliency((batch.ids * 7.0 + places).sin().masked_fill(~batch.mask, 0.0), logits)


class Target(Explainer):
    """Records the explained class; all weight is on the first position."""

    requires: ClassVar[frozenset[Capability]] = frozenset()

    def __init__(self) -> None:
        self.targets: list[Tensor | None] = []

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        self.targets.append(target)
        places = torch.arange(batch.ids.shape[1])
        return Saliency((places == 0) * 1.0 * batch.mask, model(batch).logits)


class BlackBox(Model):
    """Reads ids and shows nothing: the class is the remainder of their sum."""

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> object:
        total = (batch.ids * batch.present).sum(-1) % 3
        logits = torch.nn.functional.one_hot(total, 3).double()
        return type("Output", (), {"weights": None, "logits": logits})


class Shut(Model):
    """A foreign model: it shows weights and has vectors, but no extension points."""

    capabilities: frozenset[Capability] = frozenset({"attention", "embeddings"})

    def __init__(self, inner: Classifier) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> object:
        return self.inner(batch, embedded)

    def embed(self, batch: Batch) -> Tensor:
        return self.inner.embed(batch)


class ByPlace(nn.Module):
    """Weights that halve from word to word, whatever the text."""

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        weights = 0.5 ** mask.cumsum(-1).to(scores.dtype) * mask + 0 * scores
        return weights / weights.sum(-1, keepdim=True).clamp_min(1e-9)


GOOD, BAD, CHATTER, ALSO = 2, 3, 4, 5
LENGTH = 10


def toy() -> tuple[Data, Tensor]:
    """20 texts of ten words, one of them good or bad; and where it stands."""
    random = np.random.default_rng(0)
    ids = random.choice([CHATTER, ALSO], (20, LENGTH)).astype(np.int32)
    place = random.integers(0, LENGTH, 20)
    label = np.arange(20) % 2
    ids[np.arange(20), place] = np.where(label == 1, GOOD, BAD)
    starts = row_starts(np.full(20, LENGTH, np.int64))
    flat = TokenArray(ids.ravel(), np.ones(ids.size, np.bool_), starts, np.zeros(20, np.bool_))
    return Data(flat, None, label.astype(np.int64)), torch.from_numpy(place)


def opposites() -> Synonyms:
    """Good and bad stand for each other, nothing else for anything."""
    swap = torch.tensor([0, 1, BAD, GOOD, CHATTER, ALSO])
    return Synonyms(swap.unsqueeze(-1), torch.tensor([0, 0, 1, 1, 0, 0]), torch.zeros(6, dtype=torch.bool))


def planted_classifier(looks_at: float) -> Classifier:
    """Three hidden units, of good, bad and chatter; scores `looks_at` for the first two and its opposite for chatter.

    Attention at good and bad alone for +20, at chatter alone for −20.  Logits ±10 by the context.
    """
    shape = Architecture(hidden=2, dimension=4, score="dot")
    model = Classifier(word_encoder("average", shape, 6, False), shape, 2, False).double().eval()
    basis = torch.eye(4, dtype=torch.float64)
    model.encoder.embedding.weight.data = torch.stack(
        [0 * basis[0], 0 * basis[0], basis[0], basis[1], basis[2], basis[2] + basis[3] / 9]
    )
    model.encoder.text.project.weight.data = basis * torch.tensor([[1.0], [1.0], [1.0], [0.0]])
    model.encoder.text.project.bias.data.zero_()
    model.scorer.key.data = looks_at * torch.tensor([1.0, 1.0, -1.0, 0.0], dtype=torch.float64)
    model.decoder.output.weight.data = 10 * torch.tensor([[0.0, 1, 0, 0], [1, 0, 0, 0]], dtype=torch.float64)
    model.decoder.output.bias.data.zero_()
    return model


class Highest(nn.Module):
    """A decoder that takes each hidden unit at its highest, and no notice of the weights."""

    def __init__(self, output: nn.Linear) -> None:
        super().__init__()
        self.output = output

    def forward(self, encoded: Encoded, weights: Tensor) -> Tensor:
        logits: Tensor = self.output(encoded.hidden.amax(1))
        return logits
