"""Timings: one file each, with a docstring and a function `run` whose keyword arguments are the options.

`python -m timings list` names them, `python -m timings run NAME --help` shows the options of one.
"""
