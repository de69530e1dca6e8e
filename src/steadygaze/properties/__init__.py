"""Properties: measures, probes, protocols and verdict rules."""
