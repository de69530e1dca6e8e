"""Flip radius: the smallest change of the top-weighted words' embeddings that flips the label.

Yin et al., ACL 2022 (arXiv:2104.08782), who call it sensitivity.

    R_q = min ‖δ‖_F   such that   argmax f(x + δ) ≠ argmax f(x),   δ_t = 0 unless t is among the ⌈q·n⌉ top words

The radius grows until the label flips; bisection on a log scale follows.  Each round runs projected gradient ascent on
the margin max_{j≠c} z_j − z_c inside ‖δ‖ ≤ R, from the last δ.  Larger sets start from the result of smaller ones.

    flip-radius                the area under R_q: lower is better
    flip-radius/above-random   the same minus that of random words: below 0 is better than chance
    seat-sensitivity           Hu et al. 2022: all words perturbed adversarially.  It ignores the explanation

Radii are in mean embedding norms, SEAT's in the units of the embeddings.  The protocol runs on a sample of the texts.

Departs from the paper: no code was released; sizes, steps and rounds are ours.  The result is an upper bound of R_q.
SEAT clamps perturbed embeddings to [0, 1]; here they are not clamped.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from steadygaze.core.maths.distributions import top_k
from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.types import Batch
from steadygaze.models.inference import Model, inference, with_gradients
from steadygaze.perturbations.gradient_ascent import ascend, embedding_norm
from steadygaze.perturbations.word_removal import row_chunks, take_rows, units_of
from steadygaze.properties.audit_case import (
    NO_LABELS,
    ONLY_RANDOM,
    RANDOM,
    AuditCase,
    Finding,
    Rows,
    lacks,
    missing_findings,
    other_explainers,
    random_weights,
    texts_without_selection,
)
from steadygaze.properties.measures import faithfulness_measures as measure
from steadygaze.properties.measures.faithfulness_measures import LARGEST, RADII, SHARES
from steadygaze.properties.probes.erasure import rationale_sizes
from steadygaze.properties.probes.text_perturbations import observe
from steadygaze.results.note import Note, NoteCode, note

SMALLEST = LARGEST / 1024
GROWTH = 4
"""Factor between successive radii until the label flips: six radii from SMALLEST to LARGEST."""
ROUNDS = 10
"""Six radii and four bisections: the radius is within 9 %."""
STEPS = 2
"""Gradient steps in each round."""
SEAT_STEPS = 10
TOKENS = 1 << 12
"""Tokens in one backward pass."""
SEAT_TASK = "all words perturbed"
FLIP_ROWS = ("flip-radius", "flip-radius/above-random", "seat-sensitivity")


def flip_radius(case: AuditCase) -> Iterator[Finding]:
    if "embeddings" not in case.model.capabilities:
        yield from missing_findings(FLIP_ROWS, lacks("embeddings"))
        return
    sizes = ",".join(f"{100 * share:g}" for share in SHARES)
    settings: dict[str, str | int | float] = {"sizes": f"{sizes}%", "largest": LARGEST}
    unit = embedding_norm(case.model.vectors)
    baseline = _radii(case, RANDOM, unit)
    yield Finding("flip-radius", measure.flip_radius(baseline), RANDOM, settings, _unflipped(baseline))
    if not other_explainers(case):
        yield from missing_findings(["flip-radius/above-random"], ONLY_RANDOM)
    for name in other_explainers(case):
        radii = _radii(case, name, unit)
        yield Finding("flip-radius", measure.flip_radius(radii), name, settings, _unflipped(radii))
        yield Finding("flip-radius/above-random", measure.flip_radius_above_random(radii, baseline), name, settings)
    yield _seat(case)


def _radii(case: AuditCase, name: str, unit: Tensor) -> Tensor:
    """(N,K); NaN for texts outside the sample, without words or with an empty selection."""

    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        weights = random_weights(case, name, rows, batch)

        def chunk_radii(chunk: Tensor) -> Tensor:
            return smallest(case.model, take_rows(batch, chunk), weights[chunk], unit)

        return {"radii": _in_chunks(batch, chunk_radii)}

    radii = case.gather(radius_task(name), work, case.sample)["radii"]
    return radii.masked_fill(texts_without_selection(case, name).unsqueeze(-1), torch.nan)


def radius_task(name: str) -> str:
    return f"flip radius of {name}"


def _in_chunks(batch: Batch, work: Callable[[Tensor], Tensor]) -> Tensor:
    return torch.cat([work(rows) for rows in row_chunks(batch, max(1, TOKENS // batch.ids.shape[1]))])


def _unflipped(radii: Tensor) -> tuple[Note, ...]:
    valid = ~radii.isnan().any(-1)
    unflipped = int((radii[valid] >= LARGEST).any(-1).sum())
    if not unflipped:
        return ()
    return (note(NoteCode.UNFLIPPED, unflipped=unflipped, texts=int(valid.sum()), largest=LARGEST),)


def smallest(model: Model, batch: Batch, weights: Tensor, unit: Tensor) -> Tensor:
    """The flip radius of the top-weighted words, by size; LARGEST if the label does not flip.  -> (B,K)

    `unit`: the mean norm of an embedding.
    """
    with inference(model):
        embedded = model.embed(batch)
    predicted = observe(model, batch).probs.argmax(-1, keepdim=True)

    def margin(vectors: Tensor) -> Tensor:  # positive if the label flips
        logits: Tensor = model(batch, vectors).logits.double()
        return logits.scatter(-1, predicted, -torch.inf).max(-1).values - logits.gather(-1, predicted).squeeze(-1)

    units = units_of(batch, question=False)
    words, weight = units.mask.sum(-1), units.total(weights)
    delta, radius = torch.zeros_like(embedded), torch.full_like(embedded[:, 0, 0], torch.inf)
    radii = []
    for counts in rationale_sizes(words, SHARES).unbind(-1):
        top = units.tokens(top_k(weight, units.mask, counts))
        with with_gradients(model):
            delta, radius = _search_radius(margin, embedded, top, unit, (delta, radius))
        radii.append(radius.clamp_max(LARGEST).double())
    return torch.stack(radii, 1).masked_fill(words.unsqueeze(-1) == 0, torch.nan)


def _search_radius(
    margin: Callable[[Tensor], Tensor], center: Tensor, free: Tensor, unit: Tensor, start: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """The smallest δ that flips the label, and its norm; ∞ and the last δ if none does."""
    delta, high = start
    low = torch.full_like(high, SMALLEST)
    for round_ in range(ROUNDS):
        unflipped = high.isinf()
        radius = torch.where(unflipped, min(LARGEST, SMALLEST * GROWTH**round_), (low * high).sqrt())
        new = ascend(margin, delta, center=center, radius=radius * unit, norm="l2", steps=STEPS, keep=free)
        with torch.no_grad():
            flipped = margin(center + new) > 0
        delta = torch.where((flipped | unflipped)[:, None, None], new, delta)
        low, high = torch.where(flipped, low, radius), torch.where(flipped, radius, high)
    return delta, high


def _seat(case: AuditCase) -> Finding:
    if case.data.label is None:
        return Finding("seat-sensitivity", absent=NO_LABELS)
    key = RandomKey(case.config.seed).child(11)

    def work(_: Rows, batch: Batch) -> dict[str, Tensor]:
        probs = _in_chunks(batch, lambda chunk: worst(case.model, take_rows(batch, chunk), key))
        return {"error": measure.seat_sensitivity(probs, batch.gold)}

    values = case.gather(SEAT_TASK, work, case.sample)["error"]
    return Finding("seat-sensitivity", values, settings={"radii": ",".join(f"{radius:g}" for radius in RADII)})


def worst(model: Model, batch: Batch, key: RandomKey) -> Tensor:
    """Probabilities under an adversarial perturbation of all words, by radius.  -> (B,R,C)"""
    with inference(model):
        embedded = model.embed(batch)
    noise = 2 * key.uniform(text_key(batch), *embedded.shape[1:], dtype=embedded.dtype) - 1

    def loss(vectors: Tensor) -> Tensor:
        return nll_loss(model(batch, vectors).logits.double().log_softmax(-1), batch.gold, reduction="none")

    probs = []
    for radius in RADII:
        start = radius * noise
        with with_gradients(model):
            r = ascend(loss, start, center=embedded, radius=radius, norm="linf", steps=SEAT_STEPS, keep=batch.mask)
        probs.append(observe(model, batch, embedded + r).probs)
    return torch.stack(probs, 1)
