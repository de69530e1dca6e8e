"""Does an explainer order the words of short texts as exact Shapley values do?

    shapley-agreement    the Gini correlation, see measures/faithfulness_measures.py: 0 for shuffled weights, 1 for the
                         order of the Shapley values

    v(S)    the probability of the class predicted on the full text, with the words S alone
    φ_j     the Shapley value of the word j in the game v

The values are exact: every subset of the words is predicted, once for all explainers and for the ends of
`relative_erasure`.  Longer texts have no value.

The row is shown and decides no verdict: an explanation can be faithful without being a Shapley value, such as one of
two words that suffice each, and Shapley values delete words as comprehensiveness does.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from steadygaze.core.maths.distributions import ordered_differences
from steadygaze.core.maths.subsets import shapley_values
from steadygaze.core.types import Batch
from steadygaze.perturbations.word_removal import units_of
from steadygaze.properties.audit_case import (
    ONLY_RANDOM,
    AuditCase,
    Finding,
    Rows,
    lacks,
    missing_findings,
    other_explainers,
)
from steadygaze.properties.probes.subset_predictions import FEWEST_WORDS
from steadygaze.properties.protocols.faithfulness import erasure_caveat
from steadygaze.results.note import NoteCode, note

NAME = "shapley-agreement"


def shapley_agreement(case: AuditCase) -> Iterator[Finding]:
    if not other_explainers(case):
        yield from missing_findings([NAME], ONLY_RANDOM)
        return
    if case.config.removal == "zero" and "embeddings" not in case.model.capabilities:
        yield from missing_findings([NAME], lacks("embeddings"))
        return
    values = _values_of_words(case)
    short = values[:, 0].isfinite().nonzero().squeeze(-1).numpy()
    if not len(short):
        reason = note(NoteCode.NO_SHORT_TEXTS, fewest=FEWEST_WORDS, most=case.most_enumerated)
        yield from missing_findings([NAME], reason)
        return
    settings: dict[str, str | int | float] = {"erase": case.config.removal, "enumerated": case.most_enumerated}
    for name in other_explainers(case):

        def work(rows: Rows, batch: Batch, name: str = name) -> dict[str, Tensor]:
            units = units_of(batch, question=False)
            weights = units.total(case.gather_rows(case.saliency(name), rows, batch))
            known = values[torch.from_numpy(rows), : weights.shape[1]].to(weights.device)
            own, most = ordered_differences(weights, known, units.mask)
            return {"own": own, "most": most}

        columns = case.gather(f"Shapley values and {name}", work, short)
        own, most = columns["own"], columns["most"]
        caveat = erasure_caveat(case, name)
        yield Finding(NAME, own, name, settings, caveat=caveat, floor=torch.zeros_like(own), best=most)


def _values_of_words(case: AuditCase) -> Tensor:
    """(N,most_enumerated) the Shapley values of the words of short texts; NaN elsewhere."""
    table = case.subset_probabilities
    values = torch.full((len(case), case.most_enumerated), torch.nan, dtype=torch.float64)
    for words in range(FEWEST_WORDS, case.most_enumerated + 1):
        rows = (case.words == words) & table[:, 0].isfinite()
        if rows.any():
            values[rows, :words] = shapley_values(table[rows, : 1 << words])
    return values
