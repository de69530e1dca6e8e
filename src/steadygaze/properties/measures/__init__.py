"""Measures: tensors -> one number per example.  No measure calls a model."""
