"""Encoders, attention layers and decoders; Classifier, Rationalizer and the Model protocol."""
