"""Audit bundles: written, signed, verified."""
