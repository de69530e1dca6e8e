"""Images: read, classified, explained and drawn.  Words have the rest of the house."""
