"""Measures of one model of bench/synonym_groups.py on texts and their rewrites.

    cf3, wn3           three words substituted by synonyms of either table
    cf-only3, wn-only3 by pairs that the other table does not have
    deletion3, typo3   three words deleted, or with two neighboring letters exchanged: controls

Distances of attention need texts of equal length: a transformer may read a synonym as more pieces.  Such texts count
for labels and probabilities only.
"""

import os
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from sklearn.metrics import f1_score

from steadygaze.audit.audit_case import AuditCase
from steadygaze.audit.measures.stability_measures import label_flip, prediction_change
from steadygaze.audit.protocols.faithfulness import faithfulness
from steadygaze.core.maths.distributions import entropy, jensen_shannon
from steadygaze.core.maths.ranking import kendall, top_k_overlap
from steadygaze.explainers.attention import Attention
from steadygaze.models import inference
from steadygaze.results.audit_config import ProbeConfig

K = 7


@dataclass
class Outputs:
    weights: Any
    mask: Any
    probs: Any


def outputs(clf: Any, texts: list[str]) -> Outputs:
    read = inference.split_outputs(clf.stored_.model, clf.stored_.data(texts, None))
    return Outputs(read.weights.double(), read.mask, read.logits.double().softmax(-1))


def measures(clf: Any, examples: list[Any], rewrites: Mapping[str, list[str]], seen: Path) -> dict[str, Any]:
    """Scores on the texts, and shifts under every rewrite; the attention is written to `seen`."""
    texts = [example.text for example in examples]
    before = outputs(clf, texts)
    label = [clf.stored_.description.classes.index(example.label) for example in examples]
    length = before.mask.sum(-1).double()
    result: dict[str, Any] = {
        "macro-f1": float(f1_score(label, before.probs.argmax(-1), average="macro")),
        "normalized-entropy": float((entropy(before.weights, before.mask) / length.clamp_min(2).log()).mean()),
        "comprehensiveness": comprehensiveness(clf, texts),
    }
    seen.parent.mkdir(parents=True, exist_ok=True)
    new = seen.with_suffix(f".{os.getpid()}.npz")  # other jobs read complete files only
    np.savez_compressed(new, weights=before.weights.float().numpy(), mask=before.mask.numpy())
    os.replace(new, seen)
    for probe, rewritten in rewrites.items():
        changed = torch.tensor([a != b for a, b in zip(rewritten, texts, strict=True)])
        result |= {f"{name}/{probe}": value for name, value in shifts(before, outputs(clf, rewritten), changed).items()}
    return result


def shifts(before: Outputs, after: Outputs, changed: Any) -> dict[str, Any]:
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
def tempered(clf: Any, temperature: float) -> Any:
    """The model with its attention scores divided by a temperature."""
    model = clf.stored_.model
    attend = model.attend
    model.attend = lambda scores, mask: attend(scores / temperature, mask)
    try:
        yield
    finally:
        del model.attend


def comprehensiveness(clf: Any, texts: list[str]) -> float:
    data = clf.stored_.data(texts[:500], None)
    case = AuditCase(clf.stored_.model, data, {"attention": Attention()}, ProbeConfig(sample=len(data)))
    for answer in faithfulness(case):
        named = answer.measure == "comprehensiveness" and answer.explainer in (None, "attention")
        if named and answer.values is not None:
            return float(np.nanmean(answer.values.numpy()))
    raise KeyError("comprehensiveness")


def distance_to_seeds(seen: Path, others: list[Path]) -> float | None:
    """Mean JSD to the attention of other seeds."""
    own = np.load(seen)
    mask = torch.from_numpy(own["mask"])
    weights = [torch.from_numpy(np.load(file)["weights"]).double() for file in others if file.exists()]
    p = torch.from_numpy(own["weights"]).double()
    return mean(float(jensen_shannon(p, q, mask).mean()) for q in weights) if weights else None
