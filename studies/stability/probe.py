"""Measures of one model of the study under all probes, and comparison of models of different seeds."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score

from steadygaze.core.maths.collapse import detect_collapse
from steadygaze.core.maths.distributions import jensen_shannon, top_k
from steadygaze.data.substitutable_pairs import FUNCTION_WORDS, NEGATIONS
from steadygaze.data.synonym_tables import read_synonyms
from steadygaze.data.vocabulary_lexicon import vocabulary_lexicon
from steadygaze.estimator.model_folder import SavedModel
from steadygaze.explainers.attention import Attention
from steadygaze.models import inference
from steadygaze.perturbations.word_substitution import MAX_SYNONYMS, Synonyms
from steadygaze.properties.audit_case import AuditCase
from steadygaze.properties.protocols.faithfulness import faithfulness
from steadygaze.properties.protocols.stability import stability
from steadygaze.results.audit_config import ProbeConfig
from studies.stability.models import ModelOptions, ProbedModel, probed_model
from studies.stability.plan import SELECTION_PROBES, ModelGroup

PROBE_MEASURES = ("jensen-shannon", "top-k-overlap", "kendall", "prediction-change", "label-flip", "words-substituted")
ATTENTION_MEASURES = (
    "normalized-entropy",
    "distance-to-uniform",
    "comprehensiveness",
    "sufficiency",
    "pearson/gradient",
)
"""Measures of the audit in a record: of each probe, and of the attention without perturbation."""
WORD_PROBES = {
    "1-synonym": ("training", 1),
    "3-synonyms": ("training", 3),
    "3-held-out": ("held-out", 3),
    "1-wordnet": ("wordnet", 1),
}
"""Probe -> synonym table, and number of substituted words."""


def measure(options: ModelOptions, group: ModelGroup, seed: int) -> dict[str, Any]:
    """The scores and probes of one model."""
    selecting = group.phase == "select"
    examples = options.examples(group.setting, "validation" if selecting else "test")
    probed = probed_model(options, group, seed)
    stored, model = probed.stored, probed.model
    data = stored.data([e.text for e in examples], None)
    label = [stored.description.classes.index(e.label) for e in examples]
    outputs = inference.split_outputs(model, data)
    probs, predicted = outputs.logits.double().softmax(-1).numpy(), outputs.logits.argmax(-1).numpy()
    record: dict[str, Any] = {
        "macro-f1": float(f1_score(label, predicted, average="macro")),
        "accuracy": float(accuracy_score(label, predicted)),
        "confidence": float(probs.max(-1).mean()),
        "n": len(label),
    }
    table = synonym_tables(options, probed, [p for p in WORD_PROBES if not selecting or p in SELECTION_PROBES])
    config = ProbeConfig(sample=len(data), radius=ProbeConfig().radius * probed.deviation)
    case = AuditCase(model, data, {"attention": Attention()}, config, substitutions=table)
    measures = measure_values(case, (stability,) if selecting else (stability, faithfulness))
    record |= {name: float(np.nanmean(values.numpy())) for name, values in measures.items()}
    if selecting:
        return record
    file = options.outputs(group, seed)
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, weights=outputs.weights.numpy(), probs=probs, mask=outputs.mask.numpy())
    record["skipped"] = {name: int(value.isnan().sum()) for name, value in measures.items() if value.isnan().any()}
    if group.row == "vanilla":
        record |= {"guard": check_guard(outputs), **function_words(case, stored)}
    return record | _collapse(options, group, seed, outputs)


def _collapse(options: ModelOptions, group: ModelGroup, seed: int, outputs: inference.SplitOutputs) -> dict[str, Any]:
    """The collapse guard, and top-k overlap with the mean attention of the teachers."""
    row = group.sibling(group.teachers)
    teachers = [np.load(options.outputs(row, teacher))["weights"] for teacher in group.teacher_seeds(seed)]
    reference = torch.from_numpy(np.mean(teachers, 0)).double() if teachers else None
    collapse = detect_collapse(outputs.weights.double(), outputs.mask, reference, ids=outputs.ids)
    return {"overlap": collapse.overlap, "collapsed": collapse.collapsed, "reason": collapse.reason}


def measure_values(case: AuditCase, protocols: tuple[Any, ...]) -> dict[str, torch.Tensor]:
    """Measure -> its value for each text.  (N,)"""
    values = {}
    for protocol in protocols:
        for finding in protocol(case):
            measure, _, probe = finding.measure.partition("/")
            is_recorded = finding.measure in ATTENTION_MEASURES or (measure in PROBE_MEASURES and probe in case.probes)
            if is_recorded and finding.values is not None and finding.explainer in (None, "attention"):
                values[finding.measure] = finding.values
    return values


def check_guard(outputs: inference.SplitOutputs) -> dict[str, bool]:
    """Whether the collapse guard detects two attentions that never shift: scores / 1000, and the first word alone."""
    weights = outputs.weights.double()
    even = weights.clamp_min(1e-30).pow(1 / 1000) * outputs.mask
    first = torch.zeros_like(weights).scatter(1, outputs.mask.int().argmax(-1, keepdim=True), 1.0)
    return {
        "scores / 1000": detect_collapse(
            even / even.sum(-1, keepdim=True), outputs.mask, weights, ids=outputs.ids
        ).collapsed,
        "first word": detect_collapse(first, outputs.mask, weights, ids=outputs.ids).collapsed,
    }


def function_words(case: AuditCase, stored: SavedModel) -> dict[str, float]:
    """Share of substitutions with a function word, or a negation, on either side."""
    names = stored.tokenizer.vocabulary
    shares = {}
    for probe in WORD_PROBES:
        pairs: list[tuple[str, str]] = []
        for _, batch in case.batches():
            perturbed = case.probes[probe].move(case.model, batch).batch.ids
            changed = perturbed != batch.ids
            before, after = batch.ids[changed].tolist(), perturbed[changed].tolist()
            pairs += [(names[i].lower(), names[j].lower()) for i, j in zip(before, after, strict=True)]
        for name, words in (("function-words", FUNCTION_WORDS), ("negations", NEGATIONS)):
            shares[f"{name}/{probe}"] = sum(not words.isdisjoint(pair) for pair in pairs) / max(1, len(pairs))
    return shares


def synonym_tables(options: ModelOptions, probed: ProbedModel, probes: list[str]) -> dict[str, tuple[Synonyms, int]]:
    """Probe -> synonyms of the vocabulary; with groups, of the vocabulary of a model without groups."""
    stored, vocabulary = probed.stored, probed.stored.tokenizer.vocabulary
    known, plain = (vocabulary_lexicon(v, stored.tokenizer.kind) for v in (vocabulary, vocabulary[: probed.words]))
    continues, words = torch.from_numpy(known.continues), torch.from_numpy(known.words)
    device = next(stored.model.parameters()).device
    substitutions = {}
    for probe in probes:
        name, number = WORD_PROBES[probe]
        parts = plain.table(_read_table(options.synonyms / f"{name}.parquet"), MAX_SYNONYMS)
        ids, count = (_pad_rows(torch.from_numpy(part), len(vocabulary)) for part in parts)
        substitutions[probe] = Synonyms(ids, count, continues, words).to(device), number
    return substitutions


def _pad_rows(values: torch.Tensor, size: int) -> torch.Tensor:
    """Append rows of zeros: the last ids have no synonyms."""
    return torch.cat([values, values.new_zeros(size - len(values), *values.shape[1:])])


def compare_seeds(options: ModelOptions, group: ModelGroup) -> dict[str, Any]:
    """Differences between the models of one row: means over all pairs of models and all texts."""
    row = group.sibling(group.source) if group.source else group
    outputs = [np.load(options.outputs(row, seed)) for seed in range(group.seeds)]
    mask = torch.from_numpy(outputs[0]["mask"]).to(options.device)
    weights = [torch.from_numpy(output["weights"]).double().to(options.device) for output in outputs]
    probs = [torch.from_numpy(output["probs"]).to(options.device) for output in outputs]
    k = ProbeConfig().k
    tops, size = [top_k(attention, mask, k) for attention in weights], mask.sum(-1).clamp(1, k)
    shift, shared, change = [], [], []
    for i in range(len(outputs)):
        for j in range(i):
            shift.append(float(jensen_shannon(weights[i], weights[j], mask).mean()))
            shared.append(float(((tops[i] & tops[j]).sum(-1) / size).mean()))
            change.append(float((probs[i] - probs[j]).abs().sum(-1).mean() / 2))
    return {
        "models": len(outputs),
        "jensen-shannon/seeds": float(np.mean(shift)),
        "top-k-overlap/seeds": float(np.mean(shared)),
        "prediction-change/seeds": float(np.mean(change)),
    }


@cache
def _read_table(file: Path) -> dict[str, list[str]]:
    return read_synonyms(file)
