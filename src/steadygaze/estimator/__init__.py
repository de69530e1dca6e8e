"""TextClassifier: input checks, configuration, fit, save and load."""
