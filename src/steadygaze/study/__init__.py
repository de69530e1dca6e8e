"""Techniques side by side: every one trained with every seed, every model audited, one table of what differs."""
