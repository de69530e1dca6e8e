"""Finding: the result of a protocol, one number per text, or the reason why it is missing.

Texts with an empty selection have no top-weighted words.  The findings leave them out and note their number;
selection.py includes them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from steadygaze.audit.audit_case import AuditCase
from steadygaze.audit.probes.text_perturbations import OWN
from steadygaze.models.model_protocol import MISSING_CAPABILITY, Model
from steadygaze.models.rationalizer import selects
from steadygaze.results.row import MeasureKey
from steadygaze.results.verdict import Answer


@dataclass(frozen=True)
class Finding:
    measure: str
    """A measure, or a measure and a probe: jensen-shannon/noise."""
    values: Tensor | None = None
    """(N,) in the order of the texts; NaN where undefined."""
    explainer: str | None = None
    """None: the finding is about the prediction."""
    settings: Mapping[str, str | int | float] = field(default_factory=dict)
    """Other settings that the finding depends on."""
    note: str = ""
    answer: Answer | None = None
    """The answer that the note explains; the report shows it first."""
    absent: str = ""
    """Why the number is missing: 'the model has no attention weights'."""
    value: float | None = None
    """A number that is not a mean over texts."""
    interval: tuple[float, float] | None = None
    n: int = 0
    """The number of texts behind `value`."""

    @property
    def key(self) -> MeasureKey:
        return MeasureKey.parse(self.measure)

    def __post_init__(self) -> None:
        if [self.values is not None, self.value is not None, bool(self.absent)].count(True) != 1:
            raise ValueError(f"{self.measure}: pass exactly one of values, value and absent")


NO_LABELS = "the texts have no labels"
ONLY_RANDOM = "the only explainer is the random baseline"


def missing_findings(names: Iterable[str], why: str) -> Iterator[Finding]:
    return (Finding(name, absent=why) for name in names)


def explainer_or_none(case: AuditCase) -> str:
    """The audited explanation that is part of the forward pass; '' if there is none."""
    return next((name for name in OWN if name in case.explainers), "")


def missing_capability_reason(case: AuditCase) -> str:
    """Why the attention is not audited; '' if it is."""
    if explainer_or_none(case):
        return ""
    return (
        "the attention is not among the audited explainers"
        if "attention" in case.model.capabilities
        else MISSING_CAPABILITY["attention"]
    )


NONE = "the selection is empty in every text"


def selecting_explainers(case: AuditCase) -> list[str]:
    """The explainers that select words."""
    return [name for name, explainer in case.explainers.items() if explainer.selects_words]


def texts_without_selection(case: AuditCase, name: str) -> Tensor:
    """(N,) bool: texts with words and an empty selection; all False for explainers that do not select words."""
    if name not in selecting_explainers(case):
        return torch.zeros(len(case), dtype=torch.bool)
    text = case.data.text
    selected = (case.saliency(name) != 0).numpy() & text.words  # NaN outside the sample counts
    return torch.from_numpy(text.counts(selected) == 0) & (case.words > 0)


def drop_texts(case: AuditCase, found: Finding, gone: Tensor) -> Finding:
    """The finding without the texts with an empty selection, `gone` (N,)."""
    count = int(gone.sum())
    if not count or found.explainer is None:
        return found
    words = case.words[torch.from_numpy(case.rows(found.explainer))]
    if count == int((words > 0).sum()):
        return Finding(found.measure, explainer=found.explainer, settings=found.settings, absent=NONE)
    if found.absent:
        return found
    note = f"left out: {count:,} of {len(words):,} texts with an empty selection"
    values = None if found.values is None else found.values.masked_fill(gone, torch.nan)
    return replace(found, values=values, note=f"{found.note}; {note}" if found.note else note)


def interlocking_not_applicable(model: Model) -> str:
    """Why the protocol does not apply; '' if it does."""
    if not selects(model):
        return "the model is not a rationalizer"
    return "" if model.selection_config.granularity == "sentence" else "the model selects words, not sentences"
