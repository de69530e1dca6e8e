"""Tensors -> one number per example.  Nothing here calls a model; what each number means is in `audit.catalogue`."""
