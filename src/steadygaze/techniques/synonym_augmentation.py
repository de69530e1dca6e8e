"""Synonym augmentation: cross-entropy on the text and on a copy with synonyms.

The control of `anchored` and `consensus`: the same substitutions at the same rate, without a reference.
Zhang et al., NeurIPS 2015 (arXiv:1509.01626), §2.4, augment with a thesaurus; Wei & Zou, EMNLP 2019 (arXiv:1901.11196)
with synonyms.

Equation
--------
    L  =  ℓ(y, f(x))  +  λ · ℓ(y, f(x′))

    x′  the text with each word that has a synonym replaced, with probability `share`; sampled in every step
    ℓ   cross-entropy      λ  `weight`

Without a table of synonyms it equals `vanilla`: nearest neighbors of a word vector are not synonyms.

Cost
----
One run, with a second forward and backward pass for the copy of each text.  No cost at prediction time.

When to use
-----------
To lower label flips under known synonyms, if you have a table.  Use `consensus` if attention must be stable under
other changes too.

Departs from the paper
----------------------
Both papers replace few words per text and add the copies once, before training.

Tested by tests/techniques/test_synonym_augmentation.py.
"""

from dataclasses import replace
from typing import Annotated, ClassVar

from torch import Tensor

from steadygaze.core.random_key import RandomKey
from steadygaze.core.search_space import SearchRange
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.perturbations.word_substitution import substitute_words
from steadygaze.techniques.technique import LossContext, Technique, is_zero, task_loss


def substitute_synonyms(batch: Batch, context: LossContext, key: RandomKey, share: float | Tensor) -> Batch | None:
    """Return the batch with synonyms; None without a table of synonyms."""
    synonyms = context.synonyms
    if synonyms is None or synonyms.origin == "none":
        return None
    return replace(batch, ids=substitute_words(batch.ids, batch.mask, synonyms, key, batch.index, share=share))


@settings
class SynonymAugmentation(Technique):
    """Cross-entropy on texts and on copies with synonyms."""

    stacked_settings: ClassVar[tuple[str, ...]] = ("weight", "share")

    weight: Annotated[float, Field(ge=0), SearchRange(0.1, 10.0, log=True)] = 1.0
    """λ: weight of the loss on the text with synonyms."""
    share: Annotated[float, Field(ge=0, le=1), SearchRange(0.1, 1.0)] = 0.8
    """Probability that a word with a synonym is replaced."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        terms = {"task": task_loss(model(batch).logits, batch)}
        copy = substitute_synonyms(batch, context, context.key, self.share) if self.substitutes_words else None
        if copy is not None:
            terms["synonyms"] = self.weight * task_loss(model(copy).logits, batch)
        return terms

    @property
    def substitutes_words(self) -> bool:
        return not (is_zero(self.weight) or is_zero(self.share))
