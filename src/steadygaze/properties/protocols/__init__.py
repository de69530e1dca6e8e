"""The protocols of an audit, one file each, grouped by report section."""

from collections.abc import Callable, Iterator

from steadygaze.properties.audit_case import AuditCase, Finding
from steadygaze.properties.measures import correctness_measures, measure_names, probe_names
from steadygaze.properties.measures.measure import GRADIENTS, LABEL_KEPT, PERTURBATIONS
from steadygaze.properties.protocols.faithfulness import (
    ERASURES,
    attention_interventions,
    erasure,
    gradient_agreement,
    infidelity,
    max_sensitivity,
)
from steadygaze.properties.protocols.flip_radius import flip_radius
from steadygaze.properties.protocols.plausibility import correctness, plausibility
from steadygaze.properties.protocols.selection import label_leakage, rationale_agreement, selection
from steadygaze.properties.protocols.shortcut_leakage import shortcut_leakage
from steadygaze.properties.protocols.stability import seed_consistency, stability

STABILITY, FAITHFULNESS, SEEDS, SHORTCUT = "Stability", "Faithfulness", "Seed consistency", "No shortcut leakage"
Protocol = Callable[[AuditCase], Iterator[Finding]]
PROTOCOLS: dict[str, tuple[Protocol, ...]] = {
    "Correctness": (correctness,),
    STABILITY: (stability, max_sensitivity),
    FAITHFULNESS: (erasure, gradient_agreement, attention_interventions, flip_radius, infidelity),
    SEEDS: (seed_consistency,),
    SHORTCUT: (shortcut_leakage, selection, label_leakage),
    "Plausibility": (plausibility, rationale_agreement),
}
COUNTING = (selection, rationale_agreement)
"""Protocols that include texts with an empty selection."""
THOROUGH: dict[Protocol, list[str]] = {
    flip_radius: measure_names("flip-radius", "seat-sensitivity"),
    infidelity: measure_names("infidelity"),
    max_sensitivity: measure_names("max-sensitivity"),
}
"""Protocols of a thorough audit, with their measures."""
ALWAYS: dict[Protocol, list[str]] = {
    correctness: measure_names(*(measure.name for measure in correctness_measures.MEASURES)),
    stability: [
        *probe_names(*PERTURBATIONS, *LABEL_KEPT),
        *measure_names("normalized-entropy", "distance-to-uniform"),
    ],
}
"""Protocols of an audit of chosen measures, with their measures; stability runs only the probes that these name."""
SELECTABLE: dict[Protocol, list[str]] = {
    erasure: measure_names(*ERASURES),
    gradient_agreement: probe_names(*GRADIENTS),
    **THOROUGH,
}
"""Protocols of an audit of chosen measures that run only for their own measures."""
