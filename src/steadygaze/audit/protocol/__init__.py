"""Whole audits: probes and measures, in the order a question asks for them."""
