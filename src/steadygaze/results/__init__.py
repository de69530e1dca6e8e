"""Rows, explanations, verdicts, reports and comparisons as plain data.  No torch."""
