"""How far a model and its highlighted words may be believed: measures, probes, and the certificate."""
