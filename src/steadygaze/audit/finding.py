"""Finding: what a protocol found out, one number per text, before it becomes a Row.

Numbers that are not there.  A reason that is not an explainer's own is said once, whatever explainers were asked.

Explanations in which a word is selected or is not, and the texts of which none is.

Where nothing is selected there are no words to ask about: no heaviest one, no place of the weight, nothing to erase.
Such a text is left out, and the note says how many there are.  Only what a selection is (selection.py) counts them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.audit.audit_case import AuditCase
from steadygaze.audit.probes.text_perturbations import OWN
from steadygaze.models.model_protocol import MISSING_CAPABILITY
from steadygaze.results.verdict import Answer


@dataclass(frozen=True)
class Finding:
    measure: str
    """A name of the catalogue, and after a slash what it was asked of: jensen-shannon/noise."""
    values: Tensor | None = None
    """(N,) in the order of the texts; NaN where the question makes no sense of a text."""
    explainer: str | None = None
    """Whose words it is about; None: the prediction alone."""
    settings: Mapping[str, str | int | float] = field(default_factory=dict)
    """What else it depends on."""
    note: str = ""
    answer: Answer | None = None
    """Of one whose note answers a question, which is then said before anything else."""
    absent: str = ""
    """Why there is no number, where there is none: 'the model has no attention weights'."""
    value: float | None = None
    """Of a number that is no mean over texts."""
    interval: tuple[float, float] | None = None
    n: int = 0
    """Of how many texts that number is."""

    def __post_init__(self) -> None:
        if [self.values is not None, self.value is not None, bool(self.absent)].count(True) != 1:
            raise ValueError(f"{self.measure}: exactly one of values, value and absent must be given")


NO_LABELS = "the texts have no labels"
ONLY_RANDOM = "no explanation was asked about but random words, which are the yardstick of the others"


def missing_findings(names: Iterable[str], why: str) -> Iterator[Finding]:
    return (Finding(name, absent=why) for name in names)


def explainer_or_none(case: AuditCase) -> str:
    """What the model shows of itself, by the name it was asked under; '': it was not asked."""
    return next((name for name in OWN if name in case.explainers), "")


def missing_capability_reason(case: AuditCase) -> str:
    """Why nothing is said of the attention; '': something is."""
    if explainer_or_none(case):
        return ""
    return (
        "the attention was not asked about"
        if "attention" in case.model.capabilities
        else MISSING_CAPABILITY["attention"]
    )


NONE = "nothing is selected of any text"


def selecting_explainers(case: AuditCase) -> list[str]:
    """Explanations in which a word is selected or is not."""
    return [name for name, one in case.explainers.items() if one.selects_words]


def texts_without_selection(case: AuditCase, name: str) -> Tensor:
    """(N,) bool: texts with words, none of which is selected; False of explanations that do not select."""
    if name not in selecting_explainers(case):
        return torch.zeros(len(case), dtype=torch.bool)
    chosen = (case.saliency(name) != 0) & torch.from_numpy(case.data.text.words)  # NaN, where it was not asked, is no 0
    many = pad(chosen.cumsum(0), (1, 0))[torch.from_numpy(case.data.text.starts)].diff()
    return (many == 0) & (case.words > 0)


def drop_texts(case: AuditCase, found: Finding, gone: Tensor) -> Finding:
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
