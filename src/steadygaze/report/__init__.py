"""Results as terminal output, HTML pages, Markdown cards and plots.  No torch."""
