"""Consensus: anchored to what several teachers say together.

The loss is that of techniques/anchored.py; the anchor is the mean attention and the mean prediction of K teachers that
differ in their seed alone:

    w  =  1/K Σ_k w_k(x),     p  =  1/K Σ_k y_k(x)

What one seed happens to look at averages out, and one student of the mean is as cheap to use as any of them.  It starts
from the first teacher.

Students of different seeds have different teachers, so that what they agree on is not what one group happened to say;
`first_teacher` lets several students share one group.  Teachers are ordinary models: the next student finds them ready.
Ours.  Pinned by tests/objective/test_consensus.py.
"""

from typing import Annotated, Literal

from steadygaze.core.settings import Field, settings
from steadygaze.techniques.anchored import AnchoringTechnique
from steadygaze.techniques.technique import Stage, Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.techniques.word_at import WordAT


@settings
class Consensus(AnchoringTechnique):
    """Attention anchored to the mean of several teachers: what we recommend."""

    teachers: Annotated[int, Field(ge=1, le=100)] = 5
    """K: how many teachers are asked."""
    teacher: Literal["vanilla", "word-at"] = "vanilla"
    """How they are trained; word-at makes the steadiest students."""
    teacher_epsilon: Annotated[float, Field(ge=0, le=100)] = 0.2
    """Length of word-at's perturbation, in mean lengths of a word vector."""
    first_teacher: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    """Seed of the first teacher, the others following; None: seed × teachers."""

    def stages(self, seed: int) -> tuple[Stage, ...]:
        first = seed * self.teachers if self.first_teacher is None else self.first_teacher
        how: Technique = Vanilla() if self.teacher == "vanilla" else WordAT(epsilon=self.teacher_epsilon)
        group = [
            Stage(f"teacher {i + 1} of {self.teachers}", technique=how, model=f"teacher-{i}", seed=first + i)
            for i in range(self.teachers)
        ]
        return *group, Stage("student", start="teacher-0", select="last", schedule="linear")
