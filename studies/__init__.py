"""What made the published numbers: a package for each study, outside the wheel.

`python -m studies list` names them.  A study has at most `plan.py`, `run.py`, `table.py` and `page.md.jinja`;
`records/` has the records of all studies.
"""
