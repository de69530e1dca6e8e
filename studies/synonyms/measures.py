"""Measures of one model on texts and their rewrites.

    cf3, wn3           three words substituted by synonyms of either table
    cf-only3, wn-only3 by pairs that the other table does not have
    deletion3, typo3   three words deleted, or with two neighboring letters exchanged: controls

Distances of attention need texts of equal length: a transformer may read a synonym as more pieces.  Such texts count
for labels and probabilities only.

Comprehensiveness is ERASER's: the drop of the predicted probability without the top-weighted words, not divided by
that probability.  It is higher for a more confident model with the same ranking of words.  `scaled` therefore has
comprehensiveness and mean confidence with the logits multiplied by several factors: the control at equal confidence.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from sklearn.metrics import f1_score
from torch import Tensor

from steadygaze.core.maths.distributions import entropy, jensen_shannon, kendall, top_k_overlap
from steadygaze.core.types import Example
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models import inference
from steadygaze.properties.measures import faithfulness_measures
from steadygaze.properties.measures.stability_measures import label_flip, prediction_change
from steadygaze.properties.probes.erasure import erase_words
from studies.synonyms.plan import FACTORS

K = 7
COMPREHENSIVENESS_TEXTS = 500
"""Number of texts that comprehensiveness is computed for."""


@dataclass
class Outputs:
    weights: Tensor
    mask: Tensor
    probs: Tensor


def compute_outputs(clf: TextClassifier, texts: Sequence[str]) -> Outputs:
    model = clf.stored_.model
    outputs = inference.split_outputs(model, clf.stored_.data(texts, None))
    weights, mask, logits = (value.to(model.device) for value in (outputs.weights, outputs.mask, outputs.logits))
    return Outputs(weights.double(), mask, logits.double().softmax(-1))


def measures(
    clf: TextClassifier, examples: Sequence[Example], rewrites: Mapping[str, list[str]], attention_file: Path
) -> dict[str, Any]:
    """Scores on the texts, and shifts under every rewrite; the attention is written to `attention_file`."""
    texts = [example.text for example in examples]
    before = compute_outputs(clf, texts)
    names: list[Any] = list(clf.stored_.description.classes)
    label = [names.index(example.label) for example in examples]
    length = before.mask.sum(-1).double()
    result: dict[str, Any] = {
        "macro-f1": float(f1_score(label, before.probs.argmax(-1).cpu(), average="macro")),
        "accuracy": float(np.mean(np.array(label) == before.probs.argmax(-1).cpu().numpy())),
        "confidence": float(before.probs.amax(-1).mean()),
        "normalized-entropy": float((entropy(before.weights, before.mask) / length.clamp_min(2).log()).mean()),
        **comprehensiveness(clf, texts),
    }
    attention_file.parent.mkdir(parents=True, exist_ok=True)
    temporary = attention_file.with_suffix(f".{os.getpid()}.npz")  # other jobs read complete files only
    np.savez_compressed(temporary, weights=before.weights.float().cpu().numpy(), mask=before.mask.cpu().numpy())
    os.replace(temporary, attention_file)
    for probe, rewritten in rewrites.items():
        changed = torch.tensor([a != b for a, b in zip(rewritten, texts, strict=True)], device=before.mask.device)
        result |= {
            f"{name}/{probe}": value for name, value in shifts(before, compute_outputs(clf, rewritten), changed).items()
        }
    return result


def shifts(before: Outputs, after: Outputs, changed: Tensor) -> dict[str, Any]:
    """Mean changes of labels, probabilities and attention over the changed texts."""
    aligned = changed & (after.mask.sum(-1) == before.mask.sum(-1))
    width = min(before.mask.shape[1], after.mask.shape[1])
    p, q, mask = before.weights[:, :width], after.weights[:, :width], before.mask[:, :width]
    labels = {
        "prediction-change": prediction_change(before.probs, after.probs),
        "label-flip": label_flip(before.probs, after.probs),
    }
    weights = {
        "jensen-shannon": jensen_shannon(p, q, mask),
        "top-7-overlap": top_k_overlap(p, q, mask, K),
        "kendall": kendall(p, q, mask),
    }
    result: dict[str, Any] = {name: float(value[changed].double().nanmean()) for name, value in labels.items()}
    result["texts"] = int(changed.sum())
    if aligned.any():
        result |= {name: float(value[aligned].double().nanmean()) for name, value in weights.items()}
        result["aligned"] = int(aligned.sum())
    return result


@contextmanager
def divide_scores(clf: TextClassifier, temperature: float) -> Iterator[None]:
    """Divide the attention scores of a model by a temperature inside the context."""
    model: Any = clf.stored_.model
    attend = model.attend
    model.attend = lambda scores, mask: attend(scores / temperature, mask)
    try:
        yield
    finally:
        del model.attend


def comprehensiveness(clf: TextClassifier, texts: Sequence[str]) -> dict[str, Any]:
    """Mean comprehensiveness of attention, and the same with confidence at every factor of the logits."""
    model, parts = clf.stored_.model, []
    for _, batch, forward in inference.forwards(model, clf.stored_.data(texts[:COMPREHENSIVENESS_TEXTS], None)):
        full = forward.logits.double().softmax(-1)
        parts.append((full.cpu(), erase_words(model, batch, full, forward.weights)[0].cpu()))
    full, erased = (torch.cat(values) for values in zip(*parts, strict=True))
    scaled = [scaled_comprehensiveness(full, erased, factor) for factor in FACTORS]
    return {"comprehensiveness": scaled[FACTORS.index(1.0)][1], "scaled": scaled}


def scaled_comprehensiveness(full: Tensor, erased: Tensor, factor: float) -> tuple[float, float]:
    """Mean confidence and comprehensiveness if a factor multiplies the logits.  (N,C), (N,K,C) -> two numbers"""
    full, erased = (_scale_logits(probs, factor) for probs in (full, erased))
    drop = faithfulness_measures.comprehensiveness(full, erased)
    return float(full.amax(-1).mean()), float(drop.mean())


def _scale_logits(probs: Tensor, factor: float) -> Tensor:
    """Probabilities after multiplication of the logits; log-probabilities are logits up to a constant."""
    return (factor * probs.clamp_min(torch.finfo(probs.dtype).tiny).log()).softmax(-1)


def distance_to_seeds(attention_file: Path, others: list[Path]) -> float | None:
    """Mean JSD to the attention of other seeds."""
    own = np.load(attention_file)
    mask = torch.from_numpy(own["mask"])
    weights = [torch.from_numpy(np.load(file)["weights"]).double() for file in others if file.exists()]
    p = torch.from_numpy(own["weights"]).double()
    return mean(float(jensen_shannon(p, q, mask).mean()) for q in weights) if weights else None
