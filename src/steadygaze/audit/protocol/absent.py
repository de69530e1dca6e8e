"""Numbers that are not there.  A reason that is not an explainer's own is said once, whatever explainers were asked."""

from collections.abc import Iterable, Iterator

from steadygaze.audit.case import Case
from steadygaze.audit.finding import Finding
from steadygaze.audit.probe.moves import LACKING, OWN

NO_LABELS = "the texts have no labels"
ONLY_RANDOM = "no explanation was asked about but random words, which are the yardstick of the others"


def absent(names: Iterable[str], why: str) -> Iterator[Finding]:
    return (Finding(name, absent=why) for name in names)


def own(case: Case) -> str:
    """What the model shows of itself, by the name it was asked under; '': it was not asked."""
    return next((name for name in OWN if name in case.explainers), "")


def unasked(case: Case) -> str:
    """Why nothing is said of the attention; '': something is."""
    if own(case):
        return ""
    return "the attention was not asked about" if "weights" in case.model.abilities else LACKING["weights"]
