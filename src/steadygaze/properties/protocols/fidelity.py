"""F-Fidelity: does the label change when a random part of the explanation, or of the other words, is masked?

Zheng et al., ICLR 2025 (arXiv:2410.02970); the equations are in measures/faithfulness_measures.py.

    fidelity-plus     masks in the top-weighted words: higher is better
    fidelity-minus    masks in the other words: lower is better

Means over DRAWS random masks for each share of SHARES.  A word is masked with the probability min(α, β·T/s), as in the
released code: a text of few words has no whole number of words to mask.  Masked words are removed as `removal` says.
The masks depend on the text, and a word has the same draws for every explainer.  NaN for fewer than two words.

The protocol runs on a sample of the texts, in a thorough audit only.  Equal masked texts are predicted once.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.types import Batch
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import row_chunks, take_rows, units_of
from steadygaze.properties.audit_case import (
    RANDOM,
    AuditCase,
    Finding,
    Rows,
    lacks,
    missing_findings,
    other_explainers,
    random_weights,
)
from steadygaze.properties.measures.faithfulness_measures import fidelity_minus, fidelity_plus
from steadygaze.properties.probes.erasure import Erasure, predict_erased, rationale_sizes, top_units
from steadygaze.results.note import Note, NoteCode

SHARES = (0.1, 0.2, 0.5)
"""Sizes of the explanation."""
PART = 0.5
"""Share of the explanation, or of the other words, that is masked: α⁺ and α⁻ of the paper."""
MOST = 0.1
"""Largest expected share of the text that is masked: β of the paper."""
DRAWS = 20
"""Masks for each size."""
CELLS = 1 << 22
"""Tokens of the masked texts that are in memory together."""
FIDELITY_ROWS = ("fidelity-plus", "fidelity-minus")
NOT_FINE_TUNED = Note(NoteCode.NOT_TRAINED_UNDER_MASKS)


def fidelity(case: AuditCase) -> Iterator[Finding]:
    removal = case.config.removal
    if removal == "zero" and "embeddings" not in case.model.capabilities:
        yield from missing_findings(FIDELITY_ROWS, lacks("embeddings"))
        return
    erasure = Erasure(SHARES, removal, case.runtime.max_tokens)
    random_key = RandomKey(case.config.seed).child(18)
    sizes = ",".join(f"{100 * share:g}" for share in SHARES)
    settings: dict[str, str | int | float] = {
        "draws": DRAWS,
        "erase": removal,
        "masked": f"{MOST:.0%}",
        "part": f"{PART:.0%}",
        "sizes": f"{sizes}%",
    }
    for name in (RANDOM, *other_explainers(case)):

        def work(rows: Rows, batch: Batch, name: str = name) -> dict[str, Tensor]:
            full = case.probs[torch.from_numpy(rows)].to(batch.ids.device)
            weights = random_weights(case, name, rows, batch)
            plus, minus = _masked_fidelity(case.model, batch, full, weights, erasure, random_key)
            short = units_of(batch, question=False).mask.sum(-1) < 2
            values = dict(zip(FIDELITY_ROWS, (plus, minus), strict=True))
            return {row: value.masked_fill(short, torch.nan) for row, value in values.items()}

        for row, values in case.gather(masked_task(name), work, case.sample).items():
            yield Finding(row, values, name, settings, (NOT_FINE_TUNED,))


def masked_task(name: str) -> str:
    return f"words masked by {name}"


def _masked_fidelity(
    model: Model, batch: Batch, full: Tensor, saliency: Tensor, erasure: Erasure, random_key: RandomKey
) -> tuple[Tensor, Tensor]:
    """Fidelity-plus and fidelity-minus; `full`: the predictions.  (B,C), (B,T) -> (B,), (B,)"""
    parts = []
    for rows in row_chunks(batch, max(1, CELLS // (2 * DRAWS * len(erasure.shares) * batch.ids.shape[1]))):
        chunk = take_rows(batch, rows)
        masked = _random_masks(chunk, saliency[rows], erasure.shares, random_key)  # (b,2KD,T)
        clean = full[rows].double()
        probs = clean.unsqueeze(1).repeat(1, masked.shape[1], 1)
        texts, number = masked.any(-1).nonzero(as_tuple=True)
        if len(texts):
            probs[texts, number] = predict_erased(model, chunk, texts, masked[texts, number], erasure)
        top, rest = probs.chunk(2, 1)
        parts.append((fidelity_plus(clean, top), fidelity_minus(clean, rest)))
    plus, minus = (torch.cat(values) for values in zip(*parts, strict=True))
    return plus, minus


def _random_masks(batch: Batch, saliency: Tensor, shares: tuple[float, ...], random_key: RandomKey) -> Tensor:
    """Masked tokens: DRAWS times in the explanation of each size, then in the other words.  (B,T) -> (B,2KD,T) bool"""
    units, key = units_of(batch, question=False), text_key(batch)
    words = units.mask.sum(-1)  # (B,)
    weight = units.total(saliency).unsqueeze(1).expand(-1, len(shares), -1)
    top = top_units(key, units, weight, rationale_sizes(words, shares))  # (B,K,U)
    parts = torch.cat([top, units.mask.unsqueeze(1) & ~top], 1)  # (B,2K,U)
    rate = (MOST * words.unsqueeze(-1) / parts.sum(-1)).clamp_max(PART)  # no word: ∞, clamped
    row_keys = random_key.scramble(key.unsqueeze(-1) + torch.arange(len(shares) * DRAWS, device=key.device))
    drawn = random_key.uniform(row_keys.flatten(), parts.shape[-1], dtype=torch.float64)
    drawn = drawn.view(len(batch), len(shares), DRAWS, -1).repeat(1, 2, 1, 1)  # (B,2K,D,U)
    masked = (drawn < rate[..., None, None]) & parts.unsqueeze(2)
    owner = torch.arange(len(batch), device=key.device).repeat_interleave(parts.shape[1] * DRAWS)
    return units.tokens(masked.flatten(0, 2), owner).view(len(batch), -1, batch.ids.shape[1])
