"""Soft stability: how often does the label of the top words stay when random other words of the text are added?

Jin et al., "Probabilistic Stability Guarantees for Feature Attributions", 2025 (arXiv:2504.13787).  α is the selection
of the k top-weighted of the n words, x ⊙ α the text with these words alone.  The soft stability rate is

    τ_r  =  P( f(x ⊙ α′) predicts the class of f(x ⊙ α) )        α′ uniform over  { α′ ⊇ α : |α′ ∖ α| ≤ r }

It needs no gradient: any model, any explainer.  The set has Σ_{j≤r} C(n − k, j) members.

exact      There are at most `samples` sets: all of them are evaluated, and τ_r is their share.
sampling   `samples` sets are drawn uniformly (properties/probes/added_words.py), with random numbers of the text.  The
           class stays in K of N draws, and τ_r is in the interval of Clopper & Pearson (1934), which is exact for a
           binomial K: it contains τ_r with a probability of at least `confidence`, for each text.

|K/N − τ_r| ≤ ε with probability 1 − δ if N ≥ ln(2/δ) / (2ε²), by Hoeffding's inequality: 185 samples for ε = δ = 0.1,
and 1,000 samples for ε = 0.052 and δ = 0.01.

τ_r = 1 is hard stability up to r words.  τ_r may rise or fall with r: larger sets are others.

Departs from the paper: bounds by Clopper and Pearson instead of Hoeffding; small sets are listed; features are whole
words; words outside α′ are removed by default, instead of masked.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.text_explainer import TextExplainer, check_removal
from steadygaze.core.errors import UserError
from steadygaze.core.maths.smoothing_bounds import binomial_bounds
from steadygaze.core.ragged import TokenizedTexts
from steadygaze.core.random_key import RandomKey, pair_key
from steadygaze.core.types import Batch, OnProgress, Removal, Span, no_progress
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.data.token_alignment import merge_words
from steadygaze.estimator.explain_request import ExplainRequest
from steadygaze.estimator.explain_texts import ResolvedRequest, resolve_request
from steadygaze.estimator.inputs import is_single_text, join_questions, read_texts
from steadygaze.explainers.explainer import finite_weights
from steadygaze.perturbations.word_removal import units_of
from steadygaze.properties.probes.added_words import Additions
from steadygaze.properties.probes.erasure import Erasure
from steadygaze.properties.protocols.soft_stability import selected_words, stability_rates
from steadygaze.results.audit_config import SoftStabilityConfig, SubstitutionConfig
from steadygaze.results.soft_stability import SoftStabilities, SoftStability


def certify_soft_stability(
    adapter: ModelAdapter,
    texts: Any,
    soft_stability: tuple[float, int],
    explainer: Any,
    removal: Removal,
    sampling: SubstitutionConfig,
    batch_size: int,
    on_progress: OnProgress = no_progress,
) -> SoftStabilities:
    """One rate per text or pair; words of a question stay.  `sampling`: samples, confidence and seed; see `certify`."""
    top, added = soft_stability
    samples, confidence, seed = sampling.samples, sampling.confidence, sampling.seed
    config = SoftStabilityConfig(
        top=top, added=added, removal=removal, samples=samples, confidence=confidence, seed=seed
    )
    read, questions = read_texts([texts] if is_single_text(texts) else texts)
    adapter = adapter.for_pairs(questions is not None)
    adapter.check_classes()
    check_removal(adapter, config.removal)
    adapter.plan_queries(config.samples, read)
    adapter = adapter.with_noise(join_questions(read, questions))
    method = explainer.for_adapter(adapter) if isinstance(explainer, TextExplainer) else explainer
    request = ExplainRequest(None, method, seed=config.seed, batch_size=batch_size)
    resolved = resolve_request(
        request, adapter.model, adapter.classes, pair=bool(adapter.pair), model_name=adapter.name
    )
    placed = adapter.tokens.place(read)
    data = adapter.data(placed, questions)
    _check_lengths(data, config)
    config = replace(config, explainer=resolved.name)
    certificates: dict[int, SoftStability] = {}
    for rows in by_length(data, batch_size, adapter.model.tokens_per_pass):
        batch = collate(data, rows).to(adapter.model.device)
        for row, values in zip(rows.tolist(), _values(adapter, batch, resolved, config), strict=True):
            values["selected"] = _words(read[row], _word_spans(placed, row, data), values["selected"])
            question = None if questions is None else questions[row]
            certificates[row] = SoftStability(text=read[row], question=question, **values)
        on_progress("certifying", len(certificates), len(read))
    return SoftStabilities(tuple(certificates[row] for row in range(len(read))), config, health=adapter.health)


def _check_lengths(data: Data, config: SoftStabilityConfig) -> None:
    """Refuse a number of top words that leaves no word to add in any text."""
    longest = int(data.text.counts(data.text.words if data.word_starts is None else data.word_starts).max(initial=0))
    if config.top >= max(longest, 1):
        raise UserError(
            f"soft_stability selects {config.top_words} words, but the longest text has {longest:,}: no word can be "
            "added; pass a smaller number, or a share such as 0.2"
        )


def _values(
    adapter: ModelAdapter, batch: Batch, resolved: ResolvedRequest, config: SoftStabilityConfig
) -> list[dict[str, Any]]:
    """The fields of each certificate; `selected`: the numbers of the words."""
    key = pair_key(batch)
    saliency = resolved.explainer.explain(adapter.model, batch, None)
    selected = selected_words(batch, finite_weights(saliency, batch), key, config.top)
    additions = Additions(config.added, config.samples, RandomKey(config.seed).child(19))
    rates = stability_rates(adapter.model, batch, selected, key, additions, Erasure(removal=config.removal))
    low, high = _bounds(rates["rate"], rates["sets"], rates["exact"], config.confidence)
    columns = [rates[name].tolist() for name in ("rate", "exact", "sets", "label")]
    words = units_of(batch, question=False).mask.sum(-1).tolist()
    labels = saliency.logits.argmax(-1).tolist()
    return [
        {
            "label": adapter.classes[label],
            "model_label": adapter.classes[model_label],
            "rate": rate,
            "low": float(low[row]),
            "high": float(high[row]),
            "exact": exact,
            "evaluated": sets,
            "words": words[row],
            "selected": selected[row].nonzero().squeeze(-1).tolist(),
        }
        for row, (rate, exact, sets, label, model_label) in enumerate(zip(*columns, labels, strict=True))
    ]


def _bounds(rate: Tensor, sets: Tensor, exact: Tensor, confidence: float) -> tuple[NDArray[np.float64], ...]:
    """Lower and upper bounds of the rates; the rate itself where it is exact.  (B,) each"""
    share, known = rate.cpu().numpy(), exact.cpu().numpy()
    low, high = share.copy(), share.copy()
    for row in np.flatnonzero(~known):
        count, number = int(torch.round(rate[row] * sets[row])), int(sets[row])
        (low[row],), (high[row],) = binomial_bounds(np.array([count]), number, 1 - confidence)
    return low, high


def _word_spans(placed: TokenizedTexts, row: int, data: Data) -> list[Span]:
    """The characters of each word, or of each token where these are the words."""
    spans = placed.spans[row]
    return spans if data.word_starts is None else merge_words("", spans, placed.groups[row], np.zeros(len(spans)))[1]


def _words(text: str, spans: Sequence[Span], selected: Sequence[int]) -> tuple[str, ...]:
    return tuple(text[slice(*spans[word])] for word in selected)
