"""Types, errors, settings, files, random keys and ragged arrays; `maths` has pure functions of tensors."""

__version__ = "0.1.0"
