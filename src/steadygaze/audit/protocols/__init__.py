"""The protocols of an audit, one file each, grouped by report section."""

from collections.abc import Callable, Iterator

from steadygaze.audit.audit_case import AuditCase, Finding
from steadygaze.audit.measures import measure_names
from steadygaze.audit.protocols.attention_interventions import attention_interventions
from steadygaze.audit.protocols.faithfulness import faithfulness, infidelity, max_sensitivity
from steadygaze.audit.protocols.flip_radius import flip_radius
from steadygaze.audit.protocols.plausibility import correctness, plausibility
from steadygaze.audit.protocols.selection import label_leakage, rationale_agreement, selection
from steadygaze.audit.protocols.shortcut_leakage import shortcut_leakage
from steadygaze.audit.protocols.stability import seed_consistency, stability

STABILITY, FAITHFULNESS, SEEDS, SHORTCUT = "Stability", "Faithfulness", "Seed consistency", "No shortcut leakage"
Protocol = Callable[[AuditCase], Iterator[Finding]]
PROTOCOLS: dict[str, tuple[Protocol, ...]] = {
    "Correctness": (correctness,),
    STABILITY: (stability, max_sensitivity),
    FAITHFULNESS: (faithfulness, attention_interventions, flip_radius, infidelity),
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
