"""sg.audit and sg.evaluate: the audited case, the run over all protocols, and the report."""
