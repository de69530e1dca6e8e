"""Training techniques: one file each, one line each here."""

from steadygaze.objective.technique import Technique
from steadygaze.objective.vanilla import Vanilla

TECHNIQUES: dict[str, type[Technique]] = {
    "vanilla": Vanilla,
}
