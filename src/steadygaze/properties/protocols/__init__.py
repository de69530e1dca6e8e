"""Protocols: an audited case -> findings."""
