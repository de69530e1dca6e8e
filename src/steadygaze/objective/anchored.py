"""Anchored: a model that keeps to what a frozen vanilla model says of the clean text, whatever is done to the text.

The loss is that of objective/anchoring.py; the anchor is one reference: given, or trained first.  The model starts from
it.  Its attention is as steady as the reference's is good: which seed the reference had, it inherits.
Ours.  Pinned by tests/objective/test_anchored.py.
"""

from steadygaze.config import settings
from steadygaze.objective.anchoring import Anchoring
from steadygaze.objective.technique import Stage
from steadygaze.objective.vanilla import Vanilla


@settings
class Anchored(Anchoring):
    """Attention anchored to a vanilla model's, under moved vectors and exchanged words."""

    def stages(self, seed: int) -> tuple[Stage, ...]:
        reference = Stage("reference", technique=Vanilla(), model="reference")
        return reference, Stage("student", start="reference", select="last", schedule="linear")
