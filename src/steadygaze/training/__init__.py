"""Training: runs the stages that a technique declares."""
