"""Faithfulness and cost of explainers on three loaders: which explainer is the default, and which attention replaces.

Measures, higher is better; words of text and question count alike, and the mean is over 1, 5, 10, 20 and 50 % of them:

    comprehensiveness   drop of the predicted probability without the top words
    sufficiency         minus the drop with the top words alone
    replacement         drop when random words of other texts replace the top words: it deletes nothing
    shapley             rank correlation with exact Shapley values, on texts of 4 to 12 words

Cost: CPU time of one thread, in forward passes of the same texts; all candidates alternate, a few texts at a time.

The rule, stated before the records were made.  Only validation texts decide; test texts are reported.

    quality    (value − random) / (best − random), the mean over measures; best: of all eligible candidates
    eligible   signed, and with weights for text and question: neither attention nor gradient norms
    default    the cheapest eligible candidate with a mean quality of 0.8 over the models of its loader; single texts
               and pairs are decided together
    attention  stays the default for single texts of a TextClassifier, which is trained for it, if the 95 % intervals of
               comprehensiveness and sufficiency above random exclude 0 for each model of that loader
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import Tensor

from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.core.random_key import text_key
from steadygaze.core.types import Batch
from steadygaze.data.batches import by_length, collate
from steadygaze.estimator.inputs import read_inputs
from steadygaze.explainers.class_probability import logits_without
from steadygaze.explainers.explainer import Explainer
from steadygaze.explainers.resolve_explainer import configure_explainer
from steadygaze.perturbations.word_removal import Units, take_rows, units_of
from steadygaze.properties.probes.erasure import SHARES, rationale_sizes
from studies import jobs
from studies.default_explainer.models import FUNCTION, SUBJECTS, Subject, examples, inputs
from studies.kernel_shap.run import shapley
from studies.kernel_shap.run import subsets as all_subsets

CANDIDATES: dict[str, tuple[str, dict[str, Any]]] = {
    "random": ("random", {}),
    "attention": ("attention", {}),
    "gradient": ("gradient", {}),
    "input-x-gradient": ("input-x-gradient", {}),
    "integrated-gradients, 5 steps": ("integrated-gradients", {"steps": 5}),
    "integrated-gradients, 10 steps": ("integrated-gradients", {"steps": 10}),
    "integrated-gradients, 20 steps": ("integrated-gradients", {"steps": 20}),
    "integrated-gradients, 50 steps": ("integrated-gradients", {"steps": 50}),
    "integrated-gradients, 20 steps, logit": ("integrated-gradients", {"steps": 20, "output": "logit"}),
    "leave-one-out": ("leave-one-out", {}),
    "leave-one-out, logit": ("leave-one-out", {"output": "logit"}),
    "lime, 250 samples": ("lime", {"samples": 250}),
    "lime, 1000 samples": ("lime", {"samples": 1000}),
    "kernel-shap, 256 samples": ("kernel-shap", {"samples": 256}),
    "kernel-shap, 1024 samples": ("kernel-shap", {"samples": 1024}),
}
UNSIGNED = ("random", "attention", "gradient")
MEASURES = ("comprehensiveness", "sufficiency", "replacement", "shapley")
NEEDED, RESAMPLES = 0.8, 2000
TEXTS, SHORT_TEXTS, SHORT, TIMED = 100, 30, range(4, 13), 3
DRAWS = 2
"""Random replacements of each text."""
MOST_SAMPLES, MOST_SAMPLES_LONG = 1024, 256
"""Samples of candidates, and of those for long texts."""
PART = 256
"""Texts of a forward pass."""


def batches(adapter: ModelAdapter, items: list[Any], size: int, device: str) -> Iterator[Batch]:
    texts, questions, _ = read_inputs(items)
    tokens = adapter.tokens
    data = adapter.data(tokens.place(texts), questions if questions is None else list(questions))
    for rows in by_length(data, size):
        yield collate(data, rows).to(torch.device(device))


def candidates(adapter: ModelAdapter, most_samples: int) -> dict[str, Explainer]:
    """The candidates that can explain the model with at most this many samples."""
    explainers = {
        name: configure_explainer(kind, chosen)
        for name, (kind, chosen) in CANDIDATES.items()
        if chosen.get("samples", 0) <= most_samples
    }
    return {name: x for name, x in explainers.items() if x.requires <= adapter.model.capabilities}


def word_weights(explainer: Explainer, adapter: ModelAdapter, batch: Batch, units: Units) -> Tensor:
    """(B,U); 0 for words that the explainer does not cover"""
    saliency = explainer.explain(adapter.model, batch)
    weights = saliency.weights.double()
    if batch.question_mask is not None:
        question = saliency.question
        empty = torch.zeros(batch.question_mask.shape, dtype=torch.float64, device=weights.device)
        weights = torch.cat([weights, empty if question is None else question.double()], 1)
    return units.total(weights)


def predictions(adapter: ModelAdapter, batch: Batch, rows: Tensor, removed: Tensor) -> Tensor:
    """(K,) rows, (K,W) -> (K,C)"""
    parts = torch.zeros(len(rows), len(adapter.classes), dtype=torch.float64, device=rows.device)
    for group, logits in logits_without(adapter.model, batch, rows, removed):
        parts[group] = logits.double().softmax(-1)
    return parts


def replaced_predictions(adapter: ModelAdapter, batch: Batch, rows: Tensor, removed: Tensor, pool: Tensor) -> Tensor:
    """Mean prediction with random words in place of the removed ones; the draws of a text are always the same."""
    width, mean = batch.ids.shape[1], torch.zeros(())
    for draw in range(DRAWS):
        generator = torch.Generator().manual_seed(draw + int(text_key(batch)[0]) % 2**31)
        drawn = pool[torch.randint(len(pool), (len(batch), removed.shape[1]), generator=generator)].to(rows.device)
        total = []
        for part in torch.split(torch.arange(len(rows), device=rows.device), PART):
            owner, gone = rows[part], removed[part]
            changed = take_rows(batch, owner)
            new = replace(changed, ids=torch.where(gone[:, :width], drawn[owner][:, :width], changed.ids))
            if changed.question_ids is not None:
                question_ids = torch.where(gone[:, width:], drawn[owner][:, width:], changed.question_ids)
                new = replace(new, question_ids=question_ids)
            with torch.no_grad():
                total.append(adapter.model.logits(new).double().softmax(-1))
        mean = mean.to(rows.device) + torch.cat(total) / DRAWS
    return mean


def erasure_scores(
    adapter: ModelAdapter, batch: Batch, pool: Tensor, most_samples: int
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Candidate -> measure -> one number per text."""
    units = units_of(batch)
    with torch.no_grad():
        clean = adapter.model.logits(batch).double().softmax(-1)
    aim = clean.argmax(-1)
    sizes = rationale_sizes(units.mask.sum(-1), SHARES)  # (B,K)
    count, number = len(batch), len(SHARES)
    rows = torch.arange(count, device=aim.device).repeat_interleave(number)
    tie = torch.rand(units.mask.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).argsort(-1)
    tie = tie.to(aim.device)

    def drop(probabilities: Tensor) -> NDArray[np.float64]:
        lost = clean[rows].gather(-1, aim[rows, None]) - probabilities.gather(-1, aim[rows, None])
        return np.asarray(lost.view(count, number).mean(-1).cpu())

    results = {}
    for name, explainer in candidates(adapter, most_samples).items():
        weights = word_weights(explainer, adapter, batch, units).masked_fill(~units.mask, -torch.inf)
        order = tie.gather(-1, weights.gather(-1, tie).argsort(dim=-1, descending=True, stable=True))
        rank = order.argsort(-1).unsqueeze(1)  # (B,1,U)
        top = ((rank < sizes.unsqueeze(-1)) & units.mask.unsqueeze(1)).flatten(0, 1)  # (BK,U)
        others = ~top & units.mask[rows]
        top_tokens, other_tokens = units.tokens(top, rows), units.tokens(others, rows)
        results[name] = {
            "comprehensiveness": drop(predictions(adapter, batch, rows, top_tokens)),
            "sufficiency": -drop(predictions(adapter, batch, rows, other_tokens)),
            "replacement": drop(replaced_predictions(adapter, batch, rows, top_tokens, pool)),
        }
    return results


def shapley_scores(adapter: ModelAdapter, batch: Batch) -> dict[str, float]:
    """Candidate -> rank correlation with the exact Shapley values of one text."""
    units = units_of(batch)
    n = int(units.mask.sum())
    masks = torch.from_numpy(all_subsets(n)).to(batch.ids.device)  # present words
    rows = torch.zeros(len(masks), dtype=torch.long, device=batch.ids.device)
    probabilities = predictions(adapter, batch, rows, units.tokens(~masks, rows))
    exact = shapley(np.asarray(probabilities[:, probabilities[-1].argmax()].cpu()), n)
    correlations = {}
    for name, explainer in candidates(adapter, MOST_SAMPLES).items():
        weights = np.asarray(word_weights(explainer, adapter, batch, units)[0, :n].cpu())
        varied = np.ptp(weights) > 0 and np.ptp(exact) > 0
        correlations[name] = float(spearmanr(weights, exact).statistic) if varied else 0.0
    return correlations


def chosen_texts(
    adapter: ModelAdapter, subject: Subject, split: str, device: str
) -> tuple[list[Any], list[Any], Tensor]:
    """Random texts of at least four words; short texts; and the ids of all words."""
    items = inputs(examples(subject.corpus, split))
    order = np.random.default_rng([len(split), len(items)]).permutation(len(items))[:1500]
    items = [items[i] for i in order]
    texts, questions, _ = read_inputs(items)
    ragged = adapter.tokens.place(texts).ragged
    pool = torch.from_numpy(np.asarray(ragged.ids)[np.asarray(ragged.words)].astype(np.int64))
    lengths = [len(spans) for spans in (adapter.for_pairs(questions is not None).tokens.place(texts).groups)]
    if questions is not None:
        placed = adapter.tokens.place(questions, question=True).groups
        lengths = [first + len(second) for first, second in zip(lengths, placed, strict=True)]
    long = [item for item, words in zip(items, lengths, strict=True) if words >= SHORT.start]
    short = [item for item, words in zip(items, lengths, strict=True) if words in SHORT]
    return long[:TEXTS], short[:SHORT_TEXTS], pool


def _most_samples(subject: Subject) -> int:
    return MOST_SAMPLES_LONG if subject.corpus == "imdb" else MOST_SAMPLES


def measure(subject: Subject, split: str, folder: Path, device: str) -> list[dict[str, Any]]:
    """One record per candidate."""
    torch.set_num_threads(1)
    adapter = subject.load(folder, device)
    adapter = adapter.for_pairs(subject.corpus == "snli")
    where = str(adapter.model.device)
    items, short, pool = chosen_texts(adapter, subject, split, where)
    values: dict[str, dict[str, list[float]]] = {}
    for batch in batches(adapter, items, 25, where):
        for name, scores in erasure_scores(adapter, batch, pool, _most_samples(subject)).items():
            for key, numbers in scores.items():
                values.setdefault(name, {}).setdefault(key, []).extend(np.round(numbers, 5).tolist())
    for batch in batches(adapter, short, 1, where) if short else ():
        for name, number in shapley_scores(adapter, batch).items():
            values[name].setdefault("shapley", []).append(round(number, 4))
    about = {"loader": subject.loader, "network": subject.network, "corpus": subject.corpus, "split": split}
    return [{**about, "candidate": name, **scores} for name, scores in values.items()]


def cost(subject: Subject, folder: Path) -> list[dict[str, Any]]:
    """CPU seconds per text and forward passes, on validation texts; the candidates alternate."""
    torch.set_num_threads(1)
    adapter = subject.load(folder, "cpu").for_pairs(subject.corpus == "snli")
    items, _, _ = chosen_texts(adapter, subject, "validation", "cpu")
    explainers = candidates(adapter, _most_samples(subject))
    seconds: dict[str, float] = dict.fromkeys(["forward pass", *explainers], 0.0)
    for round_number, batch in enumerate(batches(adapter, items[: 2 * TIMED + 2], 2, "cpu")):
        for name in np.random.default_rng(round_number).permutation(list(seconds)):
            adapter.model.clear_cache()
            start = time.process_time()
            if name == "forward pass":
                with torch.no_grad():
                    adapter.model.logits(batch)
            else:
                explainers[name].explain(adapter.model, batch)
            seconds[name] += (time.process_time() - start) * (round_number > 0)  # the first batch warms up
    about = {"loader": subject.loader, "network": subject.network, "corpus": subject.corpus, "split": "cost"}
    texts, one = len(items[2 : 2 * TIMED + 2]), seconds.pop("forward pass")
    return [
        {**about, "candidate": name, "seconds": round(spent / texts, 5), "passes": round(spent / one, 2)}
        for name, spent in seconds.items()
    ]


@dataclass(frozen=True)
class Job(jobs.Job):
    """Training of the model of a subject, measures on a split, or cost."""

    subject: int
    """Index in SUBJECTS."""
    part: Literal["train", "validation", "test", "cost"]


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """Models are trained in OUT/models."""


def plan() -> list[Job]:
    parts: tuple[Literal["validation", "cost", "test"], ...] = ("validation", "cost", "test")
    return training() + [Job(i, part) for part in parts for i in range(len(SUBJECTS))]


def training() -> list[Job]:
    return [Job(i, "train") for i, subject in enumerate(SUBJECTS) if subject.loader != FUNCTION]


def needs(job: Job) -> tuple[str, ...]:
    """All models of the corpus: a function predicts with that of another subject."""
    corpus = SUBJECTS[job.subject].corpus
    return () if job.part == "train" else tuple(x.id for x in training() if SUBJECTS[x.subject].corpus == corpus)


def run_job(models: Path, device: str, job: Job) -> dict[str, Any]:
    subject = SUBJECTS[job.subject]
    if job.part == "train":
        subject.load(models, device)
        return {"rows": []}
    return {"rows": cost(subject, models) if job.part == "cost" else measure(subject, job.part, models, device)}


def run(options: Options) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    models = options.out / "models"
    models.mkdir(parents=True, exist_ok=True)
    jobs.run(options, plan, partial(run_job, models, options.device), needs=needs)
