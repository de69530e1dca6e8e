"""Read, classify, explain and draw images."""
