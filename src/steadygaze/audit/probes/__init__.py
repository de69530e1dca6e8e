"""Interventions: do something to a text or a model, and look.  The model is left exactly as it was."""
