"""How training runs, whatever the technique.

Departs from Jain & Wallace 2019 (arXiv:1902.10186), whose step size, decay, batches and AMSGrad these are: the epoch is
chosen by macro-F1 on validation data, where they take ROC-AUC; training stops after 3 epochs without a better one;
gradients are clipped at 5; word vectors do not decay; pairs too are read 8 times, where they read them 10 times; one
embedding serves both towers of a pair.

Few texts make few steps: 150 texts read 8 times are 40, after which nothing is learnt yet.  So where 8 epochs are fewer
than 300 steps (under 1,200 texts in batches of 32) the texts are read as often as makes 300, and patience grows in the
same proportion.  Whoever says how many epochs there are to be gets as many.

An epoch no better than guessing does not count against patience: what has not begun cannot have ended.  Guesses that
do not look at the text, whatever share each label gets, have a macro-F1 of 1/C or less.
"""

from typing import Annotated, Literal

from steadygaze.config import Field, settings

EPOCHS = 8
"""Times the texts are read where nobody says how often."""
STEPS = 300
"""Fewer steps than this are too few to learn anything: more epochs are run then."""


@settings
class Training:
    """How training runs; defaults after Jain & Wallace 2019."""

    epochs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Times the training texts are read at most; by default 8, and with few texts as often as makes 300 steps."""
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 32
    """Texts in a step."""
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-3
    """Step size of Adam."""
    encoder_learning_rate: Annotated[float, Field(gt=0, le=10)] | None = None
    """Step size for the encoder; by default `learning_rate`, or 5e-5 for a transformer."""
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 1e-5
    """L2 on all of a model but its word vectors (rare words would vanish) and its scorer."""
    amsgrad: bool = True
    """The variant of Adam that never forgets a large gradient."""
    clip: Annotated[float, Field(gt=0)] = 5.0
    """Longest gradient; a longer one is shortened to it."""
    schedule: Literal["constant", "linear"] = "constant"
    """Whether the step size stays or falls linearly to zero over a stage."""
    patience: Annotated[int, Field(ge=1)] = 3
    """Epochs without a better validation macro-F1 before training stops; those no better than guessing do not count."""
    precision: Literal["no", "bf16", "fp16"] = "no"
    """Mixed precision, on a GPU."""

    def longest(self, steps: int) -> int:
        """Epochs at most, of so many steps each."""
        return self.epochs or max(EPOCHS, -(-STEPS // steps))

    def patient(self, steps: int) -> int:
        """`patience`, and where more epochs than usual are read for want of steps, in proportion."""
        return self.patience if self.epochs else -(-self.patience * self.longest(steps) // EPOCHS)
