"""One model of bench/stability.py: probed, and compared with others."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score

from stability_models import ProbedModel, Study, probed_model
from stability_plan import SELECTION_PROBES, ModelGroup
from steadygaze.audit.audit_case import AuditCase
from steadygaze.audit.protocols.faithfulness import faithfulness
from steadygaze.audit.protocols.stability import stability
from steadygaze.core.maths.collapse import detect_collapse
from steadygaze.core.maths.distributions import jensen_shannon, top_k
from steadygaze.core.types import OnProgress
from steadygaze.data.substitutable_pairs import FUNCTION_WORDS, NEGATIONS
from steadygaze.data.synonym_tables import read_synonyms
from steadygaze.data.vocabulary_lexicon import vocabulary_lexicon
from steadygaze.estimator.model_folder import SavedModel
from steadygaze.explainers.attention import Attention
from steadygaze.models import inference
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.study.cell_record import Output, cell_folder
from steadygaze.techniques.perturbations.word_substitution import MAX_SYNONYMS, Synonyms

OF_PROBES = ("jensen-shannon", "top-k-overlap", "kendall", "prediction-change", "label-flip", "words-substituted")
ITSELF = ("normalized-entropy", "distance-to-uniform", "comprehensiveness", "sufficiency", "pearson/gradient")
"""What is recorded of each probe, and of the attention itself, by the audit's names."""
WORD_PROBES = {
    "1-synonym": ("training", 1),
    "3-synonyms": ("training", 3),
    "3-held-out": ("held-out", 3),
    "1-wordnet": ("wordnet", 1),
}
"""Probe -> the table, and how many words are substituted."""
READINGS = "readings.npz"
"""Attention, probabilities and mask of the test texts."""


def measure(study: Study, group: ModelGroup, seed: int, folder: Path, on_progress: OnProgress) -> Output:
    """The scores and probes of one model."""
    selecting = group.phase == "select"
    examples = study.examples(group.setting, "validation" if selecting else "test")
    probed = probed_model(study, group, seed)
    stored, model = probed.stored, probed.model
    data = stored.data([e.text for e in examples], None)
    label = [stored.description.classes.index(e.label) for e in examples]
    read = inference.split_outputs(model, data)
    probs, predicted = read.logits.double().softmax(-1).numpy(), read.logits.argmax(-1).numpy()
    record: dict[str, Any] = {
        "macro-f1": float(f1_score(label, predicted, average="macro")),
        "accuracy": float(accuracy_score(label, predicted)),
        "confidence": float(probs.max(-1).mean()),
        "n": len(label),
    }
    table = tables(study, probed, [p for p in WORD_PROBES if not selecting or p in SELECTION_PROBES])
    config = ProbeConfig(sample=len(data), radius=ProbeConfig().radius * probed.deviation)
    case = AuditCase(model, data, {"attention": Attention()}, config, substitutions=table)
    measures = answers(case, (stability,) if selecting else (stability, faithfulness))
    record |= {name: float(np.nanmean(values.numpy())) for name, values in measures.items()}
    if selecting:
        return Output(record)
    np.savez(folder / READINGS, weights=read.weights.numpy(), probs=probs, mask=read.mask.numpy())
    record["skipped"] = {name: int(value.isnan().sum()) for name, value in measures.items() if value.isnan().any()}
    if group.row == "vanilla":
        record |= {"guard": guarded(read), **function_words(case, stored)}
    return Output(record | _collapse(study, group, seed, read), (READINGS,))


def _collapse(study: Study, group: ModelGroup, seed: int, read: inference.SplitOutputs) -> dict[str, Any]:
    """The collapse guard, and top-k overlap with the mean attention of the teachers."""
    teachers = [readings(study, group, teacher, group.teachers)["weights"] for teacher in group.teacher_seeds(seed)]
    reference = torch.from_numpy(np.mean(teachers, 0)).double() if teachers else None
    collapse = detect_collapse(read.weights.double(), read.mask, reference, ids=read.ids)
    return {"overlap": collapse.overlap, "collapsed": collapse.collapsed, "reason": collapse.reason}


def readings(study: Study, group: ModelGroup, seed: int, row: str = "") -> Any:
    """Of a model of the group, or of another row of the same setting."""
    return np.load(cell_folder(study.out, replace(group, row=row or group.row).model_id(seed)) / READINGS)


def answers(case: AuditCase, protocols: tuple[Any, ...]) -> dict[str, torch.Tensor]:
    """Measure -> (N,)."""
    values = {}
    for protocol in protocols:
        for finding in protocol(case):
            measure, _, probe = finding.measure.partition("/")
            wanted = finding.measure in ITSELF or (measure in OF_PROBES and probe in case.probes)
            if wanted and finding.values is not None and finding.explainer in (None, "attention"):
                values[finding.measure] = finding.values
    return values


def guarded(read: inference.SplitOutputs) -> dict[str, bool]:
    """Whether the guard recognizes two attentions that never shift: scores / 1000, and the first word alone."""
    weights = read.weights.double()
    even = weights.clamp_min(1e-30).pow(1 / 1000) * read.mask
    first = torch.zeros_like(weights).scatter(1, read.mask.int().argmax(-1, keepdim=True), 1.0)
    return {
        "scores / 1000": detect_collapse(even / even.sum(-1, keepdim=True), read.mask, weights, ids=read.ids).collapsed,
        "first word": detect_collapse(first, read.mask, weights, ids=read.ids).collapsed,
    }


def function_words(case: AuditCase, stored: SavedModel) -> dict[str, float]:
    """Share of substitutions with a function word, or a negation, on either side."""
    names = stored.tokenizer.vocabulary
    shares = {}
    for probe in WORD_PROBES:
        pairs: list[tuple[str, str]] = []
        for _, batch in case.batches():
            moved = case.probes[probe].move(case.model, batch).batch.ids
            changed = moved != batch.ids
            before, after = batch.ids[changed].tolist(), moved[changed].tolist()
            pairs += [(names[i].lower(), names[j].lower()) for i, j in zip(before, after, strict=True)]
        for name, words in (("function-words", FUNCTION_WORDS), ("negations", NEGATIONS)):
            shares[f"{name}/{probe}"] = sum(not words.isdisjoint(pair) for pair in pairs) / max(1, len(pairs))
    return shares


def tables(study: Study, probed: ProbedModel, probes: list[str]) -> dict[str, tuple[Synonyms, int]]:
    """The synonyms of the words of a model; with groups, of the words that a model without groups knows."""
    stored, vocabulary = probed.stored, probed.stored.tokenizer.vocabulary
    known, plain = (vocabulary_lexicon(v, stored.tokenizer.kind) for v in (vocabulary, vocabulary[: probed.words]))
    continues, words = torch.from_numpy(known.continues), torch.from_numpy(known.words)
    device = next(stored.model.parameters()).device
    substitutions = {}
    for probe in probes:
        name, number = WORD_PROBES[probe]
        parts = plain.table(_table(study.synonyms / f"{name}.parquet"), MAX_SYNONYMS)
        ids, count = (_padded(torch.from_numpy(part), len(vocabulary)) for part in parts)
        substitutions[probe] = Synonyms(ids, count, continues, words).to(device), number
    return substitutions


def _padded(values: torch.Tensor, size: int) -> torch.Tensor:
    """Rows of zeros for the last ids, which have no synonyms."""
    return torch.cat([values, values.new_zeros(size - len(values), *values.shape[1:])])


def between(study: Study, group: ModelGroup, folder: Path, on_progress: OnProgress) -> Output:
    """How far the models of one row are apart: means over all pairs of them and all texts."""
    read = [readings(study, group, seed, group.source) for seed in range(group.seeds)]
    mask = torch.from_numpy(read[0]["mask"]).to(study.device)
    weights = [torch.from_numpy(reading["weights"]).double().to(study.device) for reading in read]
    probs = [torch.from_numpy(reading["probs"]).to(study.device) for reading in read]
    k = ProbeConfig().k
    tops, size = [top_k(attention, mask, k) for attention in weights], mask.sum(-1).clamp(1, k)
    shift, shared, change = [], [], []
    for i in range(len(read)):
        for j in range(i):
            shift.append(float(jensen_shannon(weights[i], weights[j], mask).mean()))
            shared.append(float(((tops[i] & tops[j]).sum(-1) / size).mean()))
            change.append(float((probs[i] - probs[j]).abs().sum(-1).mean() / 2))
    return Output(
        {
            "models": len(read),
            "jensen-shannon/seeds": float(np.mean(shift)),
            "top-k-overlap/seeds": float(np.mean(shared)),
            "prediction-change/seeds": float(np.mean(change)),
        }
    )


@cache
def _table(file: Path) -> dict[str, list[str]]:
    return read_synonyms(file)
