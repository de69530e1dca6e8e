"""Consensus: anchoring to the mean of several teachers.

Equation
--------
The loss is that of techniques/anchored.py.  The reference is the mean attention and the mean prediction of K teachers
that differ only in their seed:

    w  =  1/K Σ_k w_k(x),     p  ∝  (1/K Σ_k y_k(x)) ^ (1/T)          T `target_temperature`

Averaging removes the dependence of attention on one seed.  The student costs as much at inference as one teacher, and
starts from the first teacher.

Students of different seeds have different teachers, so that their agreement does not come from one group of teachers.
`first_teacher` lets several students share one group.  Teachers are ordinary models, and later students reuse them.

Cost
----
About eight vanilla runs with five teachers; the teacher cache reuses them.  One ordinary model at prediction time.

When to use
-----------
For stable attention if models of different seeds must agree, or if `word-at` costs too much macro-F1.  Pass a synonym
table; without one the term of substituted words is left out.
With synonym groups, pass the table of the groups as `synonyms` too (docs/results/synonym-groups.md, long student).

Departs from the paper
----------------------
Not from a paper: ours.

Tested by tests/techniques/test_consensus.py.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import torch

from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch
from steadygaze.models.classifier import Classifier
from steadygaze.techniques.anchored import AnchoringTechnique
from steadygaze.techniques.technique import CachedTargets, Stage, Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.techniques.word_at import WordAT


@settings
class Consensus(AnchoringTechnique):
    """Attention anchored to the mean of several teachers."""

    stacked_settings: ClassVar[tuple[str, ...]] = (
        *AnchoringTechnique.stacked_settings,
        "teachers", "teacher", "teacher_epsilon", "teacher_epochs", "teacher_rate", "first_teacher",
        "target_temperature",
    )  # fmt: skip

    teachers: Annotated[int, Field(ge=1, le=100)] = 5
    """K: number of teachers."""
    teacher: Literal["vanilla", "word-at"] = "vanilla"
    """Technique that trains the teachers; word-at gives the most stable students."""
    teacher_epsilon: Annotated[float, Field(ge=0, le=100)] = 0.2
    """Length of word-at's perturbation, relative to the mean norm of a word vector."""
    teacher_epochs: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the epochs that a teacher trains; below 1, its learning rate decays linearly."""
    teacher_rate: Annotated[float, Field(gt=0, le=100)] = 1.0
    """Factor of the learning rate of teachers, except for a transformer."""
    student_epochs: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the epochs that the student trains."""
    target_temperature: Annotated[float, Field(ge=0.1, le=10)] = 1.0
    """T: temperature of the teachers' mean prediction; below 1, the student is more confident."""
    first_teacher: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    """Seed of the first teacher; the others follow in order; None: seed × teachers."""

    def stages(self, seed: int) -> tuple[Stage, ...]:
        first = seed * self.teachers if self.first_teacher is None else self.first_teacher
        technique: Technique = Vanilla() if self.teacher == "vanilla" else WordAT(epsilon=self.teacher_epsilon)
        group = [
            Stage(
                f"teacher {i + 1} of {self.teachers}",
                technique=technique,
                model=f"teacher-{i}",
                seed=first + i,
                must_learn=True,
                share=self.teacher_epochs,
                rate_factor=self.teacher_rate,
                schedule="linear" if self.teacher_epochs < 1 else None,
            )
            for i in range(self.teachers)
        ]
        student = Stage("student", start="teacher-0", select="last", schedule="linear", share=self.student_epochs)
        return *group, student

    def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
        """Return the mean attention of the teachers, and their mean prediction at the temperature T."""
        targets = super().cache_targets(models, batch)
        if self.target_temperature == 1:
            return targets
        probs = targets.texts["probs"]
        logs = probs.clamp_min(torch.finfo(probs.dtype).tiny).log()
        return replace(targets, texts={"probs": (logs / self.target_temperature).softmax(-1)})
