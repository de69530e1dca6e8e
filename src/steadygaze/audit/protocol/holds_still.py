"""Does it hold still?  The same texts, moved a little: do the highlighted words, and the prediction, move too?

A probe moves a text or its vectors; of what the model shows before and after it is asked

    jensen-shannon/<probe>       how far the saliency moved, as shares of its whole
    top-k-overlap/<probe>        which part of the k heaviest words stayed among them
    kendall/<probe>              whether the words stayed in their order                (Yin et al. 2022: stability)
    prediction-change/<probe>    ½ Σ |Δp|: how far the prediction moved
    flipped/<probe>              whether the label changed

and of the saliency itself, since one that is the same for every text holds still and says nothing: evenness and
distance to uniform.  NaN where a question makes no sense of a text: a move when no word had a synonym to be exchanged
for.  `exchanged/<probe>` is how many had.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from steadygaze.audit.case import Case, Rows, shares
from steadygaze.audit.finding import Finding
from steadygaze.audit.measure import agreement, sparsity, stability
from steadygaze.audit.probe import embeddings
from steadygaze.audit.probe.look import Moved, look
from steadygaze.audit.probe.words import exchanged
from steadygaze.explain.explainer import Explainer
from steadygaze.maths.chance import Chance
from steadygaze.perturb.words import Synonyms
from steadygaze.reader import Ability, Reader
from steadygaze.types import Batch

OF_TEXT = ("prediction-change", "flipped", "exchanged")
OF_WORDS = ("jensen-shannon", "top-k-overlap", "kendall")


@dataclass(frozen=True)
class Probe:
    """What is done to a batch, and what a model must have for it."""

    move: Callable[[Reader, Batch], Moved]
    needs: frozenset[Ability] = frozenset()
    vectors: bool = True
    """Whether vectors are moved, not words."""


def probes(case: Case) -> dict[str, Probe]:
    radius, chance = case.plan.radius, Chance(case.plan.seed)
    found = {
        "noise": Probe(lambda m, b: embeddings.noise(m, b, radius, chance.child(1)), frozenset({"vectors"})),
        "worst-label": Probe(lambda m, b: embeddings.worst_for_label(m, b, radius), frozenset({"vectors"})),
        "worst-attention": Probe(
            lambda m, b: embeddings.worst_for_attention(m, b, radius, chance.child(2)),
            frozenset({"vectors", "weights"}),
        ),
    }
    if taken := found.keys() & case.plan.synonyms.keys():
        raise ValueError(f"a probe is called {min(taken)} already: call the table of synonyms something else")
    for name, (table, number) in case.plan.synonyms.items():
        found[name] = Probe(_swaps(table, number, chance.child(3)), vectors=False)
    return found


def holds_still(case: Case) -> Iterator[Finding]:
    for name in case.explainers:
        weights = case.saliency(name)
        share = shares(weights, case.mask)
        share = torch.where(weights.isnan(), torch.nan, share)
        yield Finding("evenness", sparsity.evenness(share, case.mask), name)
        yield Finding("from-uniform", sparsity.from_uniform(share, case.mask), name)
    for name, probe in probes(case).items():
        if lacking := probe.needs - case.model.abilities:
            yield from _absent(case, name, LACKING[min(lacking)])
            continue
        yield from _asked(case, name, probe)


LACKING: dict[Ability, str] = {
    "weights": "the model shows no attention",
    "vectors": "the model is a black box: its word vectors cannot be moved",
    "seams": "the model cannot be read with other attention weights than its own",
}
"""What a model lacks, as a report says it."""


def _absent(case: Case, probe: str, why: str) -> Iterator[Finding]:
    for measure in OF_TEXT[:2]:
        yield Finding(f"{measure}/{probe}", absent=why)
    for name in case.explainers:
        for measure in OF_WORDS:
            yield Finding(f"{measure}/{probe}", explainer=name, absent=why)


def _asked(case: Case, name: str, probe: Probe) -> Iterator[Finding]:
    able = [e for e in case.explainers if not probe.vectors or case.explainers[e].needs]
    for other in case.explainers.keys() - set(able):
        for measure in OF_WORDS:
            yield Finding(f"{measure}/{name}", explainer=other, absent=f"{other} reads words, not vectors")
    chosen = {"radius": case.plan.radius} if probe.vectors else {}
    if name == "worst-attention":
        able = [e for e in able if e == "attention"]  # what it was made to move
    for rows, group in _groups(case, able):
        found = case.gather(name, lambda r, b, g=group: _measured(case, probe, g, r, b), rows)  # type: ignore[misc]
        for key, values in found.items():
            measure, _, explainer = key.partition("|")
            if measure == "exchanged" and probe.vectors:
                continue
            yield Finding(f"{measure}/{name}", values, explainer or None, chosen)


def _groups(case: Case, names: Sequence[str]) -> Iterator[tuple[Rows, list[str]]]:
    """Explainers asked about all texts, with the predictions themselves; then those asked about a sample."""
    cheap = [name for name in names if case.rows(name) is case.everything]
    yield case.everything, ["", *cheap]
    if expensive := [name for name in names if name not in cheap]:
        yield case.sample, expensive


def _measured(case: Case, probe: Probe, names: Sequence[str], rows: Rows, batch: Batch) -> dict[str, Tensor]:
    moved = probe.move(case.model, batch)
    still = moved.touched == 0
    found: dict[str, Tensor] = {}
    for name in names:
        found |= _of_text(case, rows, batch, moved) if not name else _of_words(case, name, rows, batch, moved)
    return {key: value if key == "exchanged" else value.masked_fill(still, torch.nan) for key, value in found.items()}


def _of_text(case: Case, rows: Rows, batch: Batch, moved: Moved) -> dict[str, Tensor]:
    before, after = (
        case.probs[torch.from_numpy(rows)].to(batch.ids.device),
        look(case.model, moved.batch, moved.embedded).probs,
    )
    return {
        "prediction-change": stability.prediction_change(before, after),
        "flipped": stability.flipped(before, after),
        "exchanged": moved.touched,
    }


def _of_words(case: Case, name: str, rows: Rows, batch: Batch, moved: Moved) -> dict[str, Tensor]:
    before = shares(case.of(case.saliency(name), rows, batch), batch.mask)
    after = shares(_explained(case.explainers[name], case.model, moved), batch.mask)
    return {
        f"jensen-shannon|{name}": stability.jensen_shannon(before, after, batch.mask),
        f"top-k-overlap|{name}": stability.overlap(before, after, batch.mask, case.plan.k),
        f"kendall|{name}": agreement.kendall(before, after, batch.mask),
    }


def _explained(explainer: Explainer, model: Reader, moved: Moved) -> Tensor:
    return explainer.explain(model, moved.batch, embedded=moved.embedded).weights.double()


def _swaps(table: Synonyms, number: int, chance: Chance) -> Callable[[Reader, Batch], Moved]:
    return lambda _, batch: exchanged(batch, table, number, chance)
