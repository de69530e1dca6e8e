"""Several models of one architecture as one network."""
