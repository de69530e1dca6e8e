"""The questions an audit asks, one file each, under the headings of a report."""

from collections.abc import Callable, Iterator

from steadygaze.audit.audit_case import Case
from steadygaze.audit.finding import Finding
from steadygaze.audit.measure_names import of
from steadygaze.audit.protocols.attention_interventions import intervened
from steadygaze.audit.protocols.correctness import right
from steadygaze.audit.protocols.faithfulness import infidelity, matters, max_sensitivity
from steadygaze.audit.protocols.flip_radius import flip_radius
from steadygaze.audit.protocols.plausibility import people
from steadygaze.audit.protocols.seed_consistency import retrained
from steadygaze.audit.protocols.selection import agreed, leakage, selection
from steadygaze.audit.protocols.shortcut_leakage import shortcut
from steadygaze.audit.protocols.stability import holds_still

STILL, MATTERS = "Does it hold still?", "Does it matter to the prediction?"
RETRAINED = "Is it the same after retraining?"
SHORTCUT = "Is it more than position or a shortcut?"
Protocol = Callable[[Case], Iterator[Finding]]
PROTOCOLS: dict[str, tuple[Protocol, ...]] = {
    "Is the label right?": (right,),
    STILL: (holds_still, max_sensitivity),
    MATTERS: (matters, intervened, flip_radius, infidelity),
    RETRAINED: (retrained,),
    SHORTCUT: (shortcut, selection, leakage),
    "Do people agree?": (people, agreed),
}
COUNTING = (selection, agreed)
"""They ask of texts of which nothing is selected, too."""
THOROUGH: dict[Protocol, list[str]] = {
    flip_radius: of("flip-radius", "seat-sensitivity"),
    infidelity: of("infidelity"),
    max_sensitivity: of("max-sensitivity"),
}
"""Asked only by an audit that takes its time, and what it would find."""
