"""Interventions on a text or a copy of a model.  The model itself never changes."""
