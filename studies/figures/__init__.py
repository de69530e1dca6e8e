"""Figures and pictures of the documentation; `python -m studies.figures NAME` makes them."""
