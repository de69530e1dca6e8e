"""Hugging Face models, pipelines, scikit-learn models and functions as ModelAdapter."""
