"""The questions an audit asks, one file each, in the order a report answers them."""

from collections.abc import Callable, Iterator

from steadygaze.audit.case import Case
from steadygaze.audit.finding import Finding
from steadygaze.audit.protocol.holds_still import holds_still
from steadygaze.audit.protocol.intervened import intervened
from steadygaze.audit.protocol.matters import matters
from steadygaze.audit.protocol.people import people
from steadygaze.audit.protocol.retrained import retrained
from steadygaze.audit.protocol.right import right
from steadygaze.audit.protocol.sensitivity import sensitivity
from steadygaze.audit.protocol.shortcut import shortcut

PROTOCOLS: dict[str, Callable[[Case], Iterator[Finding]]] = {
    "right": right,
    "holds-still": holds_still,
    "matters": matters,
    "intervened": intervened,
    "sensitivity": sensitivity,
    "retrained": retrained,
    "shortcut": shortcut,
    "people": people,
}
