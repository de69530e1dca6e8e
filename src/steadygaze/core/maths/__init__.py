"""Pure functions of tensors, independent of models and texts."""
