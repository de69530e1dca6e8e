"""Encoders, attention, decoders; the Classifier, the Rationalizer and the Model protocol."""
