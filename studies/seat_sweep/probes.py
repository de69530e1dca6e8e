"""Measures of one model of the sweep: the probes of the audit, and those of the authors on a grid of radii."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from sklearn.metrics import f1_score
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, nll_loss

from steadygaze.adapters.load_and_explain import load
from steadygaze.core.maths.collapse import detect_collapse
from steadygaze.core.maths.distributions import jensen_shannon, top_k_overlap
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.explainers.attention import Attention
from steadygaze.models import inference
from steadygaze.models.inference import Model, with_gradients
from steadygaze.perturbations.gradient_ascent import ascend
from steadygaze.properties.audit_case import AuditCase
from steadygaze.properties.probes.text_perturbations import embedding_noise, pgd_on_attention
from steadygaze.properties.protocols.faithfulness import faithfulness
from steadygaze.properties.protocols.stability import stability
from steadygaze.results.audit_config import ProbeConfig
from studies.seat_sweep.data import Options
from studies.seat_sweep.plan import PROBED
from studies.stability.models import ProbedModel
from studies.stability.probe import measure_values, synonym_tables

K = 7


def measure(options: Options, setting: str, clf: TextClassifier, seed: int, radii: Sequence[float]) -> dict[str, Any]:
    """Scores, collapse statistics, the probes of the audit, and the authors' probes on a grid of radii."""
    stored = clf.stored_
    test = options.examples(setting, "test")
    classes = list(stored.description.classes)
    data = stored.data([e.text for e in test], None)
    outputs = inference.split_outputs(stored.model, data)
    predicted = outputs.logits.argmax(-1).numpy()
    record: dict[str, Any] = {
        "data": setting,
        "seed": seed,
        "macro-f1": float(f1_score([classes.index(e.label) for e in test], predicted, average="macro")),
        "confidence": float(outputs.logits.double().softmax(-1).amax(-1).mean()),
        "margin": float((outputs.logits[:, 1] - outputs.logits[:, 0]).abs().double().mean()),
        "n": len(test),
    }
    probed = test[:: max(1, len(test) // PROBED)]
    data = stored.data([e.text for e in probed], None)
    reference = load(options.reference(setting, seed), device=options.device).stored_
    anchor = inference.split_outputs(reference.model, reference.data([e.text for e in probed], None))
    outputs = inference.split_outputs(stored.model, data)
    weights, mask = outputs.weights.double(), outputs.mask
    collapse = detect_collapse(weights, mask, anchor.weights.double(), K, ids=outputs.ids)
    record |= {
        "normalized-entropy": collapse.normalized_entropy,
        "distance-to-uniform": collapse.distance_to_uniform,
        "collapsed": collapse.collapsed,
        "overlap": collapse.overlap,
        "shift-from-reference": float(jensen_shannon(weights, anchor.weights.double(), mask).mean()),
        "flips-from-reference": float((outputs.logits.argmax(-1) != anchor.logits.argmax(-1)).double().mean()),
        "probed": len(probed),
    }
    plain = ProbedModel(stored, stored.model, stored.tokenizer.size)
    tables = synonym_tables(options, plain, ["3-synonyms"])
    config = ProbeConfig(sample=len(data))
    case = AuditCase(stored.model, data, {"attention": Attention()}, config, substitutions=tables)
    values = measure_values(case, (stability, faithfulness))
    record |= {name: float(value.nanmean()) for name, value in values.items()}
    record["grid"] = [probe for radius in radii for probe in grid_probes(case, radius)]
    return record


def grid_probes(case: AuditCase, radius: float) -> Iterator[dict[str, Any]]:
    """The measures of Table 1 under three perturbations of word vectors, with and without clamping to [0, 1]."""
    key, size = RandomKey(0), torch.tensor(radius)
    moves: dict[str, Callable[[Model, Batch], Any]] = {
        "uniform": lambda m, b: embedding_noise(m, b, size.to(b.ids.device), key.child(1)).embedded,
        "pgd-prediction": lambda m, b: pgd_on_prediction(m, b, radius, key.child(2)),
        "pgd-attention": lambda m, b: pgd_on_attention(m, b, size.to(b.ids.device), key.child(3)).embedded,
    }
    for name, move in moves.items():
        for clamped in (False, True) if name == "pgd-prediction" else (False,):
            parts: dict[str, list[Tensor]] = {}
            for _, batch in case.batches():
                for measure_name, value in shift(case.model, batch, move(case.model, batch), clamped).items():
                    parts.setdefault(measure_name, []).append(value.cpu())
            means = {measure_name: float(torch.cat(values).mean()) for measure_name, values in parts.items()}
            yield {"probe": name, "radius": radius, "clamp": clamped, **means}


def pgd_on_prediction(model: Model, batch: Batch, radius: float, key: RandomKey) -> Tensor:
    """x + r after ten sign steps inside the ball that lower the probability of the predicted class.  (B,T,E)"""
    with inference.inference(model):
        embedded = model.embed(batch)
        predicted = model(batch, embedded).logits.argmax(-1)
    noisy = embedding_noise(model, batch, torch.tensor(radius, device=embedded.device), key).embedded
    assert noisy is not None
    start = noisy - embedded

    def loss(vectors: Tensor) -> Tensor:
        return nll_loss(model(batch, vectors).logits.double().log_softmax(-1), predicted, reduction="none")

    with with_gradients(model):
        options: dict[str, Any] = {"radius": radius, "norm": "linf", "steps": 10, "keep": batch.mask, "best": True}
        return embedded + ascend(loss, start, center=embedded, **options)


def shift(model: Model, batch: Batch, embedded: Tensor, clamped: bool) -> dict[str, Tensor]:
    """Change of attention and prediction.  `bce-with-logits` is the vanilla "TVD" of the authors' code.  (B,) each"""
    with inference.inference(model):
        before = model(batch)
        after = model(batch, embedded.clamp(0, 1) if clamped else embedded)
    old, new = before.weights.double(), after.weights.double()
    p, q = before.logits.double().softmax(-1), after.logits.double().softmax(-1)
    return {
        "jensen-shannon": jensen_shannon(old, new, batch.mask),
        "top-k-overlap": top_k_overlap(old, new, batch.mask, K),
        "tvd": (p - q).abs().sum(-1) / 2,
        "label-flip": (p.argmax(-1) != q.argmax(-1)).double(),
        "bce-with-logits": binary_cross_entropy_with_logits(q[:, 1], p[:, 1], reduction="none"),
    }
