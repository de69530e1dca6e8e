"""The questions an audit asks, one file each, under the headings of a report."""

from collections.abc import Callable, Iterator

from steadygaze.audit.case import Case
from steadygaze.audit.finding import Finding
from steadygaze.audit.names import of
from steadygaze.audit.protocol.flip_radius import flip_radius
from steadygaze.audit.protocol.holds_still import holds_still
from steadygaze.audit.protocol.infidelity import infidelity, max_sensitivity
from steadygaze.audit.protocol.intervened import intervened
from steadygaze.audit.protocol.leakage import leakage
from steadygaze.audit.protocol.matters import matters
from steadygaze.audit.protocol.people import people
from steadygaze.audit.protocol.retrained import retrained
from steadygaze.audit.protocol.right import right
from steadygaze.audit.protocol.selection import agreed, selection
from steadygaze.audit.protocol.shortcut import shortcut

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
