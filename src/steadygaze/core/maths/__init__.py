"""Functions of tensors: they know no model and no text."""
