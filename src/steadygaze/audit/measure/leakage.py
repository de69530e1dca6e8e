"""Label leakage through a mask: the formulas are in `maths/leakage.py`, where training can use them."""

from steadygaze.maths.leakage import independent_reader_accuracy, leakage_gap

__all__ = ["independent_reader_accuracy", "leakage_gap"]
