"""Explanations in which a word is selected or is not, and the texts of which none is.

Where nothing is selected there are no words to ask about: no heaviest one, no place of the weight, nothing to erase.
Such a text is left out, and the note says how many there are.  Only what a selection is (selection.py) counts them.
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.audit.case import Case
from steadygaze.audit.finding import Finding

NONE = "nothing is selected of any text"


def selecting(case: Case) -> list[str]:
    """Explanations in which a word is selected or is not."""
    return [name for name, one in case.explainers.items() if one.selects]


def nothing(case: Case, name: str) -> Tensor:
    """(N,) bool: texts with words, none of which is selected; False of explanations that do not select."""
    if name not in selecting(case):
        return torch.zeros(len(case), dtype=torch.bool)
    chosen = (case.saliency(name) != 0) & torch.from_numpy(case.data.text.words)  # NaN, where it was not asked, is no 0
    many = pad(chosen.cumsum(0), (1, 0))[torch.from_numpy(case.data.text.starts)].diff()
    return (many == 0) & (case.words > 0)


def without(case: Case, found: Finding, gone: Tensor) -> Finding:
    """What was found, less the texts of which nothing is selected (N,)."""
    many = int(gone.sum())
    if not many or found.explainer is None:
        return found
    asked = case.words[torch.from_numpy(case.rows(found.explainer))]
    if many == int((asked > 0).sum()):
        return Finding(found.measure, explainer=found.explainer, settings=found.settings, absent=NONE)
    if found.absent:
        return found
    note = f"nothing is selected of {many:,} of {len(asked):,} texts, which are left out"
    values = None if found.values is None else found.values.masked_fill(gone, torch.nan)
    return replace(found, values=values, note=f"{found.note}; {note}" if found.note else note)
