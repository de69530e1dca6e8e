"""Capabilities of models, and what a missing one means.  Does not import torch."""

from typing import Literal

Capability = Literal["attention", "embeddings", "extension_points", "selection", "threads", "transformer"]
"""attention: it returns attention weights.  embeddings: it accepts token embeddings and has gradients by them.
extension_points: its hidden states can be decoded with other weights, as in `Classifier`.  selection: it selects a
rationale, as `Rationalizer` does.  threads: several threads can share it.  transformer: its layers are those of one."""
MISSING_CAPABILITY: dict[Capability, str] = {
    "attention": "the model has no attention weights",
    "embeddings": "the model is a black box: its word vectors cannot be perturbed",
    "extension_points": "the model does not accept other attention weights",
    "selection": "the model does not select a rationale",
    "threads": "the model is not known to be thread-safe",
    "transformer": "the model is not a transformer",
}
"""Message for a missing capability, for errors and reports."""
