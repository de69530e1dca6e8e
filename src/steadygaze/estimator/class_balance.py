"""Advice to weight all classes equally, if the model finds few validation texts of a rare class."""

import numpy as np

from steadygaze.core.rounding import percent
from steadygaze.data.batches import Data
from steadygaze.estimator.inputs import Split
from steadygaze.models import inference
from steadygaze.models.inference import Model

RARE = 0.5
"""A class is rare below this multiple of its share in balanced data."""
LOW_RECALL = 0.6
FEWEST = 3
"""Validation texts of the class that a recall needs."""


def advice(model: Model, train: Split, validation: Data, classes: list[str]) -> str | None:
    """A sentence with the option; None if no class is rare, or if its recall is not low."""
    counts = [sum(str(label) == name for label in train.labels) for name in classes]
    rare = int(np.argmin(counts))
    share, label = counts[rare] / sum(counts), np.asarray(validation.label)
    of_class = label == rare
    if share >= RARE / len(classes) or of_class.sum() < FEWEST:
        return None
    predicted = inference.split_outputs(model, validation).logits.argmax(-1).numpy()
    recall = float((predicted[of_class] == rare).mean())
    if recall >= LOW_RECALL:
        return None
    texts = f"{of_class.sum():,} validation texts with the rare label {classes[rare]!r:.40}"
    return (
        f"the model finds {percent(recall)} of the {texts} ({percent(share)} of the training texts): add --balanced "
        '(class_weight="balanced") to weight all labels equally'
    )
