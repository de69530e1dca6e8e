"""Does the label hang on these words?  Their vectors are moved, as little as will do, until it turns.

Yin et al., ACL 2022 (arXiv:2104.08782), who call it sensitivity; Captum and Quantus call something else so
(protocol/infidelity.py has that).

    R_q = min ‖δ‖_F   such that   argmax f(x + δ) ≠ argmax f(x),   δ_t = 0 unless t is among the ⌈q·n⌉ heaviest words

found by going further until the label turns, then halving what lies between, on a scale of ratios; in each round, a few
steps of projected gradient ascent of the margin max_{j≠c} z_j − z_c inside ‖δ‖ ≤ R, begun where the last round ended.
More words can only make it easier, so the larger sets begin with what the smaller ones found.

    flip-radius                the area under R_q: lower is better
    flip-radius/above-random   the same minus that of words drawn at random: below 0 is better than chance
    seat-sensitivity           Hu et al. 2022: all words moved to the worst.  It does not look at the explanation

Radii are in mean lengths of a word vector, SEAT's of the vectors' own scale.  Of a sample of the texts.

Departs from the paper: no code was released; sizes, steps and rounds are ours.  What is found is an upper bound of R_q.
SEAT clamps moved vectors to [0, 1], as if they were images; here they lie where they lie.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from steadygaze.audit.audit_case import RANDOM, AuditCase, Rows, other_explainers, random_weights
from steadygaze.audit.finding import NO_LABELS, ONLY_RANDOM, Finding, missing_findings, texts_without_selection
from steadygaze.audit.measure_names import measure_names
from steadygaze.audit.measures import faithfulness_measures as measure
from steadygaze.audit.measures.faithfulness_measures import LARGEST, RADII, SHARES
from steadygaze.audit.probes.erasure import rationale_sizes
from steadygaze.audit.probes.observation import observe
from steadygaze.core.maths.ranking import top_k
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.models.inference import inference, with_gradients
from steadygaze.models.model_protocol import MISSING_CAPABILITY, Model
from steadygaze.techniques.perturbations.gradient_ascent import ascend, embedding_norm
from steadygaze.techniques.perturbations.word_removal import row_chunks, take_rows, text_key, units_of

SMALLEST = LARGEST / 1024
RUNG = 4
"""How much further the next try goes while the label has not turned: six rungs from SMALLEST to LARGEST."""
ROUNDS = 10
"""Six rungs, and four times halved: to within 9 % of the radius, and nearer where fewer rungs are climbed."""
STEPS = 2
"""In each round, which begins where the last one ended."""
SEAT_STEPS = 10
TOKENS = 1 << 12
"""Moved at once: slopes keep all that was on the way."""


def flip_radius(case: AuditCase) -> Iterator[Finding]:
    if "embeddings" not in case.model.capabilities:
        yield from missing_findings(measure_names("flip-radius", "seat-sensitivity"), MISSING_CAPABILITY["embeddings"])
        return
    sizes = ",".join(f"{100 * share:g}" for share in SHARES)
    how: dict[str, str | int | float] = {"sizes": f"{sizes}%", "largest": LARGEST}
    unit = embedding_norm(case.model.vectors)
    by_chance = _radii(case, RANDOM, unit)
    yield Finding("flip-radius", measure.flip_radius(by_chance), RANDOM, how, _unturned(by_chance))
    if not other_explainers(case):
        yield from missing_findings(["flip-radius/above-random"], ONLY_RANDOM)
    for name in other_explainers(case):
        radii = _radii(case, name, unit)
        yield Finding("flip-radius", measure.flip_radius(radii), name, how, _unturned(radii))
        yield Finding("flip-radius/above-random", measure.flip_radius_above_random(radii, by_chance), name, how)
    yield _seat(case)


def _radii(case: AuditCase, name: str, unit: Tensor) -> Tensor:
    """(N,K), NaN in texts outside the sample, and in those without a word, or of which nothing is selected"""

    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        said = random_weights(case, name, rows, batch)
        return {"radii": _by_parts(batch, lambda some: smallest(case.model, take_rows(batch, some), said[some], unit))}

    found = case.gather(f"{name} moved", work, case.sample)["radii"]
    return found.masked_fill(texts_without_selection(case, name).unsqueeze(-1), torch.nan)


def _by_parts(batch: Batch, work: Callable[[Tensor], Tensor]) -> Tensor:
    return torch.cat([work(rows) for rows in row_chunks(batch, max(1, TOKENS // batch.ids.shape[1]))])


def _unturned(radii: Tensor) -> str:
    asked = ~radii.isnan().any(-1)
    never = int((radii[asked] >= LARGEST).any(-1).sum())
    return f"{never:,} of {int(asked.sum()):,} texts are not turned by {LARGEST:g} at every size" if never else ""


def smallest(model: Model, batch: Batch, weights: Tensor, unit: Tensor) -> Tensor:
    """How far the heaviest words of each text must move, by size; LARGEST where the label never turns.  -> (B,K)

    `unit`: the mean length of a word vector.
    """
    with inference(model):
        embedded = model.embed(batch)
    predicted = observe(model, batch).probs.argmax(-1, keepdim=True)

    def margin(vectors: Tensor) -> Tensor:  # over 0 where the label has turned
        logits: Tensor = model(batch, vectors).logits.double()
        return logits.scatter(-1, predicted, -torch.inf).max(-1).values - logits.gather(-1, predicted).squeeze(-1)

    units = units_of(batch, question=False)
    words, weight = units.mask.sum(-1), units.total(weights)
    delta, radius = torch.zeros_like(embedded), torch.full_like(embedded[:, 0, 0], torch.inf)
    found = []
    for many in rationale_sizes(words, SHARES).unbind(-1):
        heaviest = units.tokens(top_k(weight, units.mask, many))
        with with_gradients(model):
            delta, radius = _nearer(margin, embedded, heaviest, unit, (delta, radius))
        found.append(radius.clamp_max(LARGEST).double())
    return torch.stack(found, 1).masked_fill(words.unsqueeze(-1) == 0, torch.nan)


def _nearer(
    margin: Callable[[Tensor], Tensor], centre: Tensor, free: Tensor, unit: Tensor, known: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """The smallest δ found to turn the label and its length; ∞, and the last δ that was tried, where none does."""
    delta, high = known
    low = torch.full_like(high, SMALLEST)
    for round_ in range(ROUNDS):
        never = high.isinf()
        tried = torch.where(never, min(LARGEST, SMALLEST * RUNG**round_), (low * high).sqrt())
        new = ascend(margin, delta, centre=centre, radius=tried * unit, norm="l2", steps=STEPS, keep=free)
        with torch.no_grad():
            turned = margin(centre + new) > 0
        delta = torch.where((turned | never)[:, None, None], new, delta)
        low, high = torch.where(turned, low, tried), torch.where(turned, tried, high)
    return delta, high


def _seat(case: AuditCase) -> Finding:
    if case.data.label is None:
        return Finding("seat-sensitivity", absent=NO_LABELS)
    chance = RandomKey(case.plan.seed).child(11)

    def work(_: Rows, batch: Batch) -> dict[str, Tensor]:
        probs = _by_parts(batch, lambda some: worst(case.model, take_rows(batch, some), chance))
        return {"error": measure.seat_sensitivity(probs, batch.gold)}

    values = case.gather("all words moved", work, case.sample)["error"]
    return Finding("seat-sensitivity", values, settings={"radii": ",".join(f"{radius:g}" for radius in RADII)})


def worst(model: Model, batch: Batch, chance: RandomKey) -> Tensor:
    """Probabilities when all words have moved to where the label is least likely, by radius.  -> (B,R,C)"""
    with inference(model):
        embedded = model.embed(batch)
    drawn = 2 * chance.uniform(text_key(batch), *embedded.shape[1:], dtype=embedded.dtype) - 1

    def surprise(vectors: Tensor) -> Tensor:
        return nll_loss(model(batch, vectors).logits.double().log_softmax(-1), batch.gold, reduction="none")

    found = []
    for radius in RADII:
        start = radius * drawn
        with with_gradients(model):
            r = ascend(surprise, start, centre=embedded, radius=radius, norm="linf", steps=SEAT_STEPS, keep=batch.mask)
        found.append(observe(model, batch, embedded + r).probs)
    return torch.stack(found, 1)
