"""One model of bench/stability.py: trained, probed, and compared with others."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score

from steadygaze import TextClassifier, infer, load
from steadygaze.audit.case import Case, Plan
from steadygaze.audit.protocol.holds_still import holds_still
from steadygaze.audit.protocol.matters import matters
from steadygaze.explain.attention import Attention
from steadygaze.maths.collapse import judge
from steadygaze.maths.divergence import jensen_shannon
from steadygaze.perturb.words import MOST, Synonyms, by_vectors, without
from steadygaze.tokens.synonyms import lexicon, read_synonyms
from steadygaze.tokens.vectors import read_vectors

if TYPE_CHECKING:
    from stability import Study
    from stability_plan import Job

EPOCHS = 3
"""Of a transformer."""
RECORDED = ("jensen-shannon", "prediction-change", "flipped", "exchanged", "pearson")
"""What is kept of each probe."""
NAMES = {
    "evenness": "evenness",
    "from-uniform": "distance-to-uniform",
    "comprehensiveness": "comprehensiveness",
    "sufficiency": "sufficiency",
}
"""What is kept of the attention itself: as the audit calls it, and as the records do."""


def fitted(study: "Study", job: "Job", config: dict[str, Any]) -> TextClassifier:
    from stability_plan import SETTINGS

    name, encoder = SETTINGS[job.setting]
    corpus, words = study.corpus(name), not encoder.startswith("transformer")
    splits = {
        s: ([e.text for e in corpus.splits[s]], [e.label for e in corpus.splits[s]]) for s in ("train", "validation")
    }
    settings = {**config, "synonyms": str(study.data / "synonyms" / "counter_fitted.parquet")}
    clf = TextClassifier(
        encoder if words else study.minilm,
        job.technique,
        seed=job.seed,
        epochs=study.epochs or (None if words else EPOCHS),
        vectors=study.glove if words else None,
        settings=settings,
        device=study.device,
        verbose=False,
    )
    if job.temper:
        return tempered(load(study.out / "models" / job.teachers[0], study.device), job.temper)
    anchored = job.technique in ("anchored", "consensus") or (
        job.technique == "seat" and not job.row.startswith("seat-released")
    )
    given = [load(study.out / "models" / one, study.device) for one in job.teachers] if anchored else None
    return clf.fit(*splits["train"], validation=splits["validation"], reference=given)


def tempered(clf: TextClassifier, temperature: float) -> TextClassifier:
    """The same model with its scores divided: additive scores are linear in their last weights."""
    with torch.no_grad():
        clf.stored_.model.scorer.weigh.weight /= temperature
    return clf


def measured(study: "Study", job: "Job", clf: TextClassifier, split: str) -> dict[str, Any]:
    from stability_plan import SETTINGS

    examples = study.corpus(SETTINGS[job.setting][0]).splits[split]
    data = clf.stored_.data([e.text for e in examples], None)
    model, label = clf.stored_.model, [clf.stored_.description.classes.index(e.label) for e in examples]
    read = infer.readings(model, data)
    predicted = read.logits.argmax(-1).numpy()
    seen = read.weights.numpy(), read.logits.double().softmax(-1).numpy(), read.mask.numpy()
    if job.config is None:
        np.savez(study.out / "seen" / f"{job.id}.npz", weights=seen[0], probs=seen[1], mask=seen[2])
    others = [np.load(study.out / "seen" / f"{one}.npz")["weights"] for one in job.teachers]
    reference = torch.from_numpy(np.mean(others, 0)) if others else None
    found = judge(read.weights.double(), read.mask, None if reference is None else reference.double(), ids=read.ids)
    asked = answers(Case(model, data, {"attention": Attention()}, Plan(synonyms=tables(study, clf), sample=len(data))))
    return {
        "macro-f1": float(f1_score(label, predicted, average="macro")),
        "accuracy": float(accuracy_score(label, predicted)),
        "validation-macro-f1": clf.stored_.description.kept["macro-f1"],
        "confidence": float(seen[1].max(-1).mean()),
        "n": len(label),
        **{name: float(np.nanmean(values.numpy())) for name, values in asked.items()},
        "skipped": {name: int(values.isnan().sum()) for name, values in asked.items() if values.isnan().any()},
        "guard": guarded(read) if job.row == "vanilla" else {},
        "overlap": found.overlap,
        "from-habit": found.from_habit,
        "collapsed": found.collapsed,
        "reason": found.reason,
    }


def answers(case: Case) -> dict[str, torch.Tensor]:
    """Question -> (N,), under the names that the records have had from the beginning."""
    found = {}
    for protocol in (holds_still, matters):
        for one in protocol(case):
            measure, probed, _ = one.measure.partition("/")
            name = one.measure if probed and measure in RECORDED else NAMES.get(one.measure)
            if name is not None and one.values is not None and one.explainer in (None, "attention"):
                found[name] = one.values
    return found


def guarded(read: infer.Readings) -> dict[str, bool]:
    """Whether the guard sees through two attentions that never move: scores by 1000, and the first word alone."""
    weights = read.weights.double()
    even = weights.clamp_min(1e-30).pow(1 / 1000) * read.mask
    first = torch.zeros_like(weights).scatter(1, read.mask.int().argmax(-1, keepdim=True), 1.0)
    return {
        "scores / 1000": judge(even / even.sum(-1, keepdim=True), read.mask, weights, ids=read.ids).collapsed,
        "first word": judge(first, read.mask, weights, ids=read.ids).collapsed,
    }


def tables(study: "Study", clf: TextClassifier) -> dict[str, tuple[Synonyms, int]]:
    """Synonyms the techniques may have trained on, and neighbours by GloVe that none has seen."""
    known = lexicon(clf.stored_.tokenizer.vocabulary, clf.stored_.tokenizer.kind)
    continues, words = torch.from_numpy(known.continues), torch.from_numpy(known.words)
    ids, count = (torch.from_numpy(part) for part in known.table(read_synonyms(_synonyms(study)), MOST))
    real = Synonyms(ids, count, continues, words).to(_device(clf))
    vectors = torch.from_numpy(read_vectors(study.glove, known.names, seed=0).matrix)
    near = unlike(by_vectors(vectors, without(len(known.names), continues, words)), ids, count).to(_device(clf))
    return {"1-synonym": (real, 1), "3-synonyms": (real, 3), "3-neighbours": (near, 3)}


def unlike(near: Synonyms, ids: torch.Tensor, count: torch.Tensor) -> Synonyms:
    """Neighbours that are not synonyms as well: those some techniques have trained on.  Order kept."""
    real = torch.arange(ids.shape[1]) < count.unsqueeze(-1)  # (V,K)
    known = ((near.table.unsqueeze(-1) == ids.unsqueeze(1)) & real.unsqueeze(1)).any(-1)  # (V,K)
    kept = (torch.arange(near.table.shape[1]) < near.count.unsqueeze(-1)) & ~known
    order = (~kept).to(torch.uint8).argsort(dim=-1, stable=True)
    return replace(near, table=near.table.gather(-1, order), count=kept.sum(-1))


def between(files: list[Path]) -> dict[str, Any]:
    """How far the models of one row are apart, over all pairs of them."""
    read = [np.load(file) for file in files]
    mask = torch.from_numpy(read[0]["mask"])
    weights = [torch.from_numpy(one["weights"]).double() for one in read]
    probs = [torch.from_numpy(one["probs"]) for one in read]
    apart, change = [], []
    for i in range(len(read)):
        for j in range(i):
            apart.append(float(jensen_shannon(weights[i], weights[j], mask).mean()))
            change.append(float((probs[i] - probs[j]).abs().sum(-1).mean() / 2))
    return {
        "models": len(read),
        "jensen-shannon/seeds": float(np.mean(apart)),
        "prediction-change/seeds": float(np.mean(change)),
    }


def _synonyms(study: "Study") -> Path:
    return study.data / "synonyms" / "counter_fitted.parquet"


def _device(clf: TextClassifier) -> torch.device:
    return next(clf.stored_.model.parameters()).device
