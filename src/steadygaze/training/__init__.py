"""Training: carries out what a technique declares."""
