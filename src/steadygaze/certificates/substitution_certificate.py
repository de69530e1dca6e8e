"""Certify that no substitution of words by a table changes the label or the top-k words of a text.

Rewrites.  A rewrite x′ of a text x substitutes words by alternatives from the table: x′_t ∈ A(x_t) ∪ {x_t}.  It
substitutes any number of words, or at most r that the model reads differently.  Alternatives that the model reads the
same as the word (members of its synonym group) change nothing, any number of them at once.

exact      The model distinguishes few rewrites: at most `samples`.  All of them are evaluated.  The label, or the set
           of top-k words, is certified if it is the same for all, with a margin above rounding.  This is about the
           model itself.  Otherwise the rewrite with the lowest margin, if it is negative, is a counterexample.
           A margin is the probability of the label minus the largest of the others.
           With the encoders `average` and `cnn`, also for more rewrites: worst_rewrites.py finds the worst one.

sampling   Randomized smoothing (SAFER; Ye, Gong & Liu 2020, arXiv:2005.14424) for any model f, black boxes included.
           X_t is drawn uniformly from the perturbation set P(x_t) (data/substitutions.py).  The smoothed model is

               g(x) = argmax_c p_c(x),   p_c(x) = P(f(X) = c)      v_t(x) = P(word t is a top-k word of X)

           q = 1 − Π (1 − d_t)                                         d_t = max TV(P(x_t), P(a)), a ∈ A(x_t)

           With at most r changes, d_t counts at the r positions that increase q most.  At all others only alternatives
           that the model reads the same count.  Their d_t is 0, except between words outside the vocabulary.

           For every rewrite x′ and every c and t:  |p_c(x) − p_c(x′)| ≤ q,   |v_t(x) − v_t(x′)| ≤ q,
           and for the mean weight E w_t of a word, with weights in [0, 1]:  |E w_t(x) − E w_t(x′)| ≤ q.
           Hence g(x′) = A for every x′ if p_A(x) − max_{c≠A} p_c(x) > 2q.  The k words with the largest v stay the same
           if the smallest of their v exceeds the largest other v by more than 2q.  Samples bound p and v (Clopper &
           Pearson); both claims hold at once with probability `confidence`, for each text.  If the model has word
           weights, each claim gets half of the error.

none       None of this is possible: q ≥ 1/2 leaves no margin, so that no sample is drawn.

Differs from the paper: total variation with sets of different sizes; exact bounds instead of Hoeffding's; several
classes; words that the model reads alike are one; the top-k words.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.certificates.substitution_plans import Plan, model_substitutions, plans
from steadygaze.certificates.worst_rewrites import WorstRewrites, WorstRewriteSearch, has_local_states
from steadygaze.core.maths.smoothing_bounds import Floats, binomial_bounds, is_separated
from steadygaze.core.types import Batch, OnProgress, no_progress
from steadygaze.data.substitutions import Substitutions
from steadygaze.data.synonym_tables import as_table
from steadygaze.estimator.inputs import is_single_text, join_questions, read_texts
from steadygaze.models import inference
from steadygaze.results.audit_config import SubstitutionConfig
from steadygaze.results.substitution_certificates import SubstitutionCertificate, SubstitutionCertificates

ROWS = 1 << 13
"""Rewrites that are evaluated together."""
ROUNDING = 2e-5
"""Least margin of probabilities and weights: they depend on the batch by up to 1e-5."""


@dataclass(frozen=True)
class Outputs:
    """Outputs of the model for the rewrites of a text."""

    probabilities: Floats  # (M,C)
    weights: Floats | None  # (M,L) of each word; None: unknown, or the number of words differs
    explained: bool
    """True if the model has word weights."""
    words: int | None = None
    """Words of the text that the model reads; None: the model has no word weights."""


def certify_substitutions(
    adapter: ModelAdapter,
    texts: Any,
    table: Any,
    config: SubstitutionConfig,
    batch_size: int,
    on_progress: OnProgress = no_progress,
) -> SubstitutionCertificates:
    """One certificate per text or pair; words of a question are not substituted."""
    read, questions = read_texts([texts] if is_single_text(texts) else texts)
    adapter = adapter.for_pairs(questions is not None)
    pairs = as_table(table, folded=True)
    substitutions = model_substitutions(adapter.tokens, pairs, config.set_size)
    adapter.check_classes()
    adapter.plan_queries(config.samples, read)
    adapter = adapter.with_noise(join_questions(read, questions))
    rows = certificate_rows(adapter, read, questions, substitutions, config, batch_size, on_progress)
    total = sum(len({*synonyms} - {word}) for word, synonyms in pairs.items())
    return SubstitutionCertificates(tuple(rows), config, total, total - substitutions.pairs, health=adapter.health)


def certificate_rows(
    adapter: ModelAdapter,
    read: Sequence[str],
    questions: Sequence[str] | None,
    substitutions: Substitutions,
    config: SubstitutionConfig,
    batch_size: int,
    on_progress: OnProgress = no_progress,
) -> list[SubstitutionCertificate]:
    """One certificate per text or pair, by the substitutions of a table that was prepared for the model."""
    adapter = adapter.for_pairs(questions is not None)
    adapter.check_classes()
    search = None
    if has_local_states(adapter):
        search = WorstRewriteSearch(adapter, read, questions, config.max_substitutions, config.samples)
    rows: list[SubstitutionCertificate] = []
    for chunk in _in_chunks(plans(adapter.tokens, read, substitutions, config, search)):
        chunk_questions = None if questions is None else questions[len(rows) : len(rows) + len(chunk)]
        outputs = _outputs(adapter, chunk, chunk_questions, batch_size)
        for i, (plan, output) in enumerate(zip(chunk, outputs, strict=True)):
            question = None if chunk_questions is None else chunk_questions[i]
            rows.append(_certificate(plan, output, adapter, config, question))
        on_progress("certifying", len(rows), len(read))
    return rows


def _in_chunks(plans: Iterable[Plan]) -> Iterator[list[Plan]]:
    chunk, rows = list[Plan](), 0
    for plan in plans:
        chunk.append(plan)
        rows += len(plan.texts)
        if rows >= ROWS:
            yield chunk
            chunk, rows = [], 0
    if chunk:
        yield chunk


def _outputs(
    adapter: ModelAdapter, plans: Sequence[Plan], questions: Sequence[str] | None, batch_size: int
) -> Iterator[Outputs]:
    """The outputs for the rewrites of each plan."""
    texts = [text for plan in plans for text in plan.texts]
    sizes = [len(plan.texts) for plan in plans]
    repeated = None
    if questions is not None:
        repeated = [question for question, size in zip(questions, sizes, strict=True) for _ in range(size)]
    data = adapter.data(adapter.tokens.place(texts), repeated)
    width = int(data.text.lengths.max(initial=1))
    rows: list[NDArray[np.int64]] = []
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    explained = bool({"attention", "selection"} & adapter.model.capabilities)
    for indices, batch, forward in inference.forwards(adapter.model, data, batch_size):
        rows.append(indices)
        weights, counts = _word_weights(batch, forward.weights if explained else None, width)
        parts.append((forward.logits.double().softmax(-1).cpu(), weights, counts))
    order = inference.original_order(rows)
    arrays = [torch.cat(values)[order].numpy() for values in zip(*parts, strict=True)]
    for end, size in zip(np.cumsum(sizes).tolist(), sizes, strict=True):
        probabilities, words, lengths = (array[end - size : end] for array in arrays)
        count = int(lengths[0]) if explained else None
        aligned = explained and lengths.min() == lengths.max()
        yield Outputs(probabilities, words[:, : lengths[0]] if aligned else None, explained, count)


def _word_weights(batch: Batch, weights: Tensor | None, width: int) -> tuple[Tensor, Tensor]:
    """The weight of each word, the sum over its tokens, and the number of words.  (B,T) -> (B,width), (B,)"""
    starts = (batch.mask if batch.word_starts is None else batch.word_starts & batch.mask).long()
    words = torch.zeros(len(batch), width, dtype=torch.float64)
    if weights is not None:
        index = (starts.cumsum(-1) - 1).clamp_min(0).cpu()
        words.scatter_add_(1, index, weights.double().masked_fill(~batch.mask, 0.0).cpu())
    return words, starts.sum(-1).cpu()


def _certificate(
    plan: Plan, outputs: Outputs, adapter: ModelAdapter, config: SubstitutionConfig, question: str | None
) -> SubstitutionCertificate:
    claims = {"exact": _exact_claims, "sampling": _sampled_claims, "none": _no_claims}[plan.method](
        plan, outputs, config
    )
    label = adapter.classes[claims.pop("predicted")]
    return SubstitutionCertificate(
        label=label,
        model_label=adapter.classes[int(outputs.probabilities[0].argmax())],
        method=plan.method,
        total_variation=plan.total_variation,
        evaluated=len(plan.texts),
        words=outputs.words,
        question=question,
        **claims,
        **plan.counts,
    )


def _exact_claims(plan: Plan, outputs: Outputs, config: SubstitutionConfig) -> dict[str, Any]:
    if plan.worst is not None:
        return _worst_case_claims(plan.worst, plan, outputs, config)
    probabilities, weights = outputs.probabilities, outputs.weights
    label = int(probabilities[0].argmax())
    least = 0.0 if len(plan.texts) == 1 else ROUNDING  # a single rewrite is the text itself
    margins = probabilities[:, label] - np.delete(probabilities, label, axis=1).max(1)
    lowest = int(margins.argmin())
    claims: dict[str, Any] = {
        "predicted": label,
        "certified": bool(margins[lowest] > least or len(plan.texts) == 1),
        "probability": float(probabilities[:, label].min()),
        "counterexample": plan.texts[lowest] if margins[lowest] < 0 else None,
        "top_k_certified": False if outputs.explained else None,
        "weight_shift": None,
    }
    if weights is not None:
        top = _top(weights[0], config.k)
        gaps = weights[:, top].min(1) - weights[:, ~top].max(1) if 0 < top.sum() < len(top) else np.array([np.inf])
        claims["top_k_certified"] = bool(gaps.min() > least or len(plan.texts) == 1)
        claims["weight_shift"] = float(np.abs(weights - weights[0]).max(initial=0.0))
    return claims


def _worst_case_claims(
    worst: WorstRewrites, plan: Plan, outputs: Outputs, config: SubstitutionConfig
) -> dict[str, Any]:
    """The rows after the first are the worst rewrites."""
    probabilities = outputs.probabilities
    margins = probabilities[:, worst.label] - np.delete(probabilities, worst.label, axis=1).max(1)
    lowest = int(margins.argmin())
    weights, (low, high) = worst.weights, worst.weight_bounds()
    return {
        "predicted": worst.label,
        "certified": bool(min(worst.margin, margins[lowest]) > ROUNDING),
        "probability": worst.probability,
        "counterexample": plan.texts[lowest] if margins[lowest] < 0 else None,
        "top_k_certified": worst.top_k_margin(_top(weights, config.k)) > ROUNDING,
        "weight_shift": float(np.maximum(high - weights, weights - low).max()),
    }


def _sampled_claims(plan: Plan, outputs: Outputs, config: SubstitutionConfig) -> dict[str, Any]:
    """The first row is the text itself, not a sample."""
    probabilities, n, q = outputs.probabilities[1:], len(plan.texts) - 1, plan.total_variation or 0.0
    error = (1 - config.confidence) / (2 if outputs.explained else 1)
    votes = np.bincount(probabilities.argmax(1), minlength=probabilities.shape[1])
    label = int(votes.argmax())
    chosen = np.arange(len(votes)) == label
    low, high = binomial_bounds(votes, n, error)
    high = np.minimum(high, 1 - low[label])
    claims: dict[str, Any] = {
        "predicted": label,
        "certified": is_separated(low, high, chosen, q),
        "probability": max(float(low[label]) - q, 0.0),
        "top_k_certified": False if outputs.explained else None,
        "weight_shift": None,
    }
    if outputs.weights is not None:
        counts = _top(outputs.weights[1:], config.k).sum(0)
        bounds = binomial_bounds(counts, n, error)
        claims["top_k_certified"] = is_separated(*bounds, _top(counts, config.k), q)
        claims["weight_shift"] = q
    return claims


def _no_claims(plan: Plan, outputs: Outputs, config: SubstitutionConfig) -> dict[str, Any]:
    known = False if outputs.explained else None
    label = int(outputs.probabilities[0].argmax())
    return {"predicted": label, "certified": False, "probability": None, "top_k_certified": known, "weight_shift": None}


def _top(weights: Floats | NDArray[np.int64], k: int) -> NDArray[np.bool_]:
    """True on the k largest; ties: the earlier.  (…,L) -> (…,L)"""
    order = np.argsort(-weights, axis=-1, kind="stable")[..., :k]
    top = np.zeros(weights.shape, np.bool_)
    np.put_along_axis(top, order, True, axis=-1)
    return top
