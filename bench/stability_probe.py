"""One model of bench/stability.py: trained, probed, and compared with others."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score

from stability_ensemble import Ensemble
from stability_plan import SELECTION_PROBES, SETTINGS
from steadygaze.adapters.load_and_explain import load
from steadygaze.audit.audit_case import AuditCase
from steadygaze.audit.protocols.faithfulness import faithfulness
from steadygaze.audit.protocols.stability import stability
from steadygaze.core.maths.collapse import detect_collapse
from steadygaze.core.maths.distributions import jensen_shannon, top_k
from steadygaze.data import word_vectors
from steadygaze.data.substitutable_pairs import FUNCTION_WORDS, NEGATIONS
from steadygaze.data.synonym_tables import read_synonyms
from steadygaze.data.vocabulary_lexicon import vocabulary_lexicon
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.explainers.attention import Attention
from steadygaze.models import inference
from steadygaze.models.inference import Model
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.techniques.perturbations.word_substitution import MAX_SYNONYMS, Synonyms

if TYPE_CHECKING:
    from stability import Study
    from stability_plan import Job

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
K = ProbeConfig().k


def trained(study: "Study", job: "Job", config: dict[str, Any]) -> tuple[TextClassifier, Model]:
    """The estimator, for tokenizer and classes, and the model to probe: the estimator's own but for an ensemble."""
    teachers = [study.out / "models" / one for one in job.teachers]
    if job.row == "ensemble":
        members = [load(folder, device=study.device) for folder in teachers]
        return members[0], Ensemble([member.stored_.model for member in members])
    if job.temperature:
        clf = tempered(load(teachers[0], device=study.device), job.temperature)
        return clf, clf.stored_.model
    _read_vectors_once()
    clf = TextClassifier(
        SETTINGS[job.setting][1],
        job.technique,
        seed=job.seed,
        epochs=study.epochs,
        vectors=study.glove,
        settings={**config, "synonyms": str(study.synonyms / "training.parquet")},
        device=study.device,
        verbose=False,
    )
    held = job.technique in ("anchored", "consensus", "seat")
    reference = [load(folder, device=study.device) for folder in teachers] if held else None
    texts = {split: study.examples(job.setting, split) for split in ("train", "validation")}
    pairs = {split: ([e.text for e in some], [e.label for e in some]) for split, some in texts.items()}
    clf.fit(*pairs["train"], validation=pairs["validation"], reference=reference)
    return clf, clf.stored_.model


def tempered(clf: TextClassifier, temperature: float) -> TextClassifier:
    """The same model with its scores divided: additive scores are linear in their last weights."""
    with torch.no_grad():
        clf.stored_.model.scorer.weigh.weight /= temperature
    return clf


def measured(study: "Study", job: "Job", clf: TextClassifier, model: Model) -> dict[str, Any]:
    selecting = job.phase == "select"
    examples = study.examples(job.setting, "validation" if selecting else "test")
    data = clf.stored_.data([e.text for e in examples], None)
    label = [clf.stored_.description.classes.index(e.label) for e in examples]
    read = inference.split_outputs(model, data)
    probs, predicted = read.logits.double().softmax(-1).numpy(), read.logits.argmax(-1).numpy()
    if job.config is None:
        np.savez(study.seen(job.id), weights=read.weights.numpy(), probs=probs, mask=read.mask.numpy())
    found = {
        "macro-f1": float(f1_score(label, predicted, average="macro")),
        "accuracy": float(accuracy_score(label, predicted)),
        "confidence": float(probs.max(-1).mean()),
        "n": len(label),
    }
    table = tables(study, clf, [p for p in WORD_PROBES if not selecting or p in SELECTION_PROBES])
    case = AuditCase(model, data, {"attention": Attention()}, ProbeConfig(sample=len(data)), substitutions=table)
    asked = answers(case, (stability,) if selecting else (stability, faithfulness))
    found |= {name: float(np.nanmean(values.numpy())) for name, values in asked.items()}
    if selecting:
        return found
    found["skipped"] = {name: int(value.isnan().sum()) for name, value in asked.items() if value.isnan().any()}
    if job.row == "vanilla":
        found |= {"guard": guarded(read), **function_words(case, clf)}
    return found | _collapse(study, job, read)


def _collapse(study: "Study", job: "Job", read: inference.SplitOutputs) -> dict[str, Any]:
    """The collapse guard, and top-k overlap with the mean attention of the teachers."""
    others = [np.load(study.seen(one))["weights"] for one in job.teachers]
    reference = torch.from_numpy(np.mean(others, 0)).double() if others else None
    found = detect_collapse(read.weights.double(), read.mask, reference, ids=read.ids)
    return {"overlap": found.overlap, "collapsed": found.collapsed, "reason": found.reason}


def answers(case: AuditCase, protocols: tuple[Any, ...]) -> dict[str, torch.Tensor]:
    """Measure -> (N,)."""
    found = {}
    for protocol in protocols:
        for one in protocol(case):
            measure, _, probe = one.measure.partition("/")
            wanted = one.measure in ITSELF or (measure in OF_PROBES and probe in case.probes)
            if wanted and one.values is not None and one.explainer in (None, "attention"):
                found[one.measure] = one.values
    return found


def guarded(read: inference.SplitOutputs) -> dict[str, bool]:
    """Whether the guard recognizes two attentions that never shift: scores / 1000, and the first word alone."""
    weights = read.weights.double()
    even = weights.clamp_min(1e-30).pow(1 / 1000) * read.mask
    first = torch.zeros_like(weights).scatter(1, read.mask.int().argmax(-1, keepdim=True), 1.0)
    return {
        "scores / 1000": detect_collapse(even / even.sum(-1, keepdim=True), read.mask, weights, ids=read.ids).collapsed,
        "first word": detect_collapse(first, read.mask, weights, ids=read.ids).collapsed,
    }


def function_words(case: AuditCase, clf: TextClassifier) -> dict[str, float]:
    """Share of substitutions with a function word, or a negation, on either side."""
    names = clf.stored_.tokenizer.vocabulary
    found = {}
    for probe in WORD_PROBES:
        pairs: list[tuple[str, str]] = []
        for _, batch in case.batches():
            moved = case.probes[probe].move(case.model, batch).batch.ids
            changed = moved != batch.ids
            before, after = batch.ids[changed].tolist(), moved[changed].tolist()
            pairs += [(names[i].lower(), names[j].lower()) for i, j in zip(before, after, strict=True)]
        for name, words in (("function-words", FUNCTION_WORDS), ("negations", NEGATIONS)):
            found[f"{name}/{probe}"] = sum(not words.isdisjoint(pair) for pair in pairs) / max(1, len(pairs))
    return found


def tables(study: "Study", clf: TextClassifier, probes: list[str]) -> dict[str, tuple[Synonyms, int]]:
    known = vocabulary_lexicon(clf.stored_.tokenizer.vocabulary, clf.stored_.tokenizer.kind)
    continues, words = torch.from_numpy(known.continues), torch.from_numpy(known.words)
    device = next(clf.stored_.model.parameters()).device
    found = {}
    for probe in probes:
        name, number = WORD_PROBES[probe]
        ids, count = (
            torch.from_numpy(part) for part in known.table(_table(study.synonyms / f"{name}.parquet"), MAX_SYNONYMS)
        )
        found[probe] = Synonyms(ids, count, continues, words).to(device), number
    return found


def between(files: list[Path]) -> dict[str, Any]:
    """How far the models of one row are apart: means over all pairs of them and all texts."""
    read = [np.load(file) for file in files]
    mask = torch.from_numpy(read[0]["mask"])
    weights = [torch.from_numpy(one["weights"]).double() for one in read]
    probs = [torch.from_numpy(one["probs"]) for one in read]
    tops, size = [top_k(one, mask, K) for one in weights], mask.sum(-1).clamp(1, K)
    shift, shared, change = [], [], []
    for i in range(len(read)):
        for j in range(i):
            shift.append(float(jensen_shannon(weights[i], weights[j], mask).mean()))
            shared.append(float(((tops[i] & tops[j]).sum(-1) / size).mean()))
            change.append(float((probs[i] - probs[j]).abs().sum(-1).mean() / 2))
    return {
        "models": len(read),
        "jensen-shannon/seeds": float(np.mean(shift)),
        "top-k-overlap/seeds": float(np.mean(shared)),
        "prediction-change/seeds": float(np.mean(change)),
    }


@cache
def _table(file: Path) -> dict[str, list[str]]:
    return read_synonyms(file)


def _read_vectors_once() -> None:
    """Parses the file of word vectors once per vocabulary and process, not once per model."""
    parse, known = word_vectors._text, _PARSED

    def remembered(path: Path, row_of: dict[str, int]) -> dict[int, Any]:
        key = (path, tuple(row_of))
        if key not in known:
            known[key] = parse(path, row_of)
        return known[key]

    if not known:
        word_vectors._text = remembered


_PARSED: dict[Any, dict[int, Any]] = {}
