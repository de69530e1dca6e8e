"""How training runs, whatever the technique."""

from typing import Annotated, Literal

from steadygaze.config import Field, settings


@settings
class Training:
    """Defaults as in Jain & Wallace (arXiv:1902.10186), but chosen on validation data and no decay of word vectors."""

    epochs: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Times the training texts are read."""
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 32
    """Texts in a step."""
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-3
    """Step size of Adam."""
    encoder_learning_rate: Annotated[float, Field(gt=0, le=10)] | None = None
    """Step size for the encoder; by default `learning_rate`, or 5e-5 for a transformer."""
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 1e-5
    """L2 on encoder and decoder; never on word vectors (rare words would vanish) or attention."""
    amsgrad: bool = True
    """The variant of Adam that never forgets a large gradient."""
    clip: Annotated[float, Field(gt=0)] = 5.0
    """Longest gradient; a longer one is shortened to it."""
    schedule: Literal["constant", "linear"] = "constant"
    """Whether the step size stays or falls linearly to zero over a stage."""
    patience: Annotated[int, Field(ge=1)] = 3
    """Epochs without a better validation macro-F1 before training stops."""
    precision: Literal["no", "bf16", "fp16"] = "no"
    """Mixed precision, on a GPU."""
