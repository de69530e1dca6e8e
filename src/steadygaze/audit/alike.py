"""Models given beside the audited one: may they be compared with it, and do they differ by their seed alone?"""

from collections.abc import Sequence

from steadygaze.errors import UserError
from steadygaze.subject import Subject

SEED = "seed"


def comparable(subject: Subject, other: Subject) -> Subject:
    """The other one, which reads the same tokens and knows the same labels; refused where it does not."""
    if subject.fingerprint and subject.fingerprint == other.fingerprint:
        raise UserError(f"{other.name} is the audited model itself: another seed is another training")
    if not subject.alike(other):
        raise UserError(
            f"{other.name} was not trained alike: its labels or its vocabulary differ from {subject.name}'s"
        )
    return other


def difference(subject: Subject, others: Sequence[Subject]) -> str:
    """In what else than its seed the training of another model differs, as far as the facts tell; '': in nothing."""
    here = {"kind": subject.kind, **subject.facts}
    for other in others:
        there = {"kind": other.kind, **other.facts}
        for name in [*here, *(there.keys() - here.keys())]:
            ours, theirs = here.get(name, "not known"), there.get(name, "not known")
            if name != SEED and ours != theirs:
                return f"{other.name} was not trained alike ({name}: {theirs}, here {ours})"
        if SEED in here and here[SEED] == there.get(SEED):
            return f"{other.name} was not trained alike: its seed is {here[SEED]} too, but not its weights"
    return ""
